package message

import (
	"slices"
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
	"github.com/dormousemq/dormouse/internal/xdeath"
)

func TestDeliveredAt(t *testing.T) {
	own := wire.Field{Name: "x-stream-offset", Value: int64(1 << 40)}
	mine, other := wire.Field{Name: "z", Value: "1"}, wire.Field{Name: "a", Value: int32(2)}
	full := wire.Properties{
		Flags:       wire.FlagContentType | wire.FlagContentEncoding | wire.FlagHeaders | wire.FlagDeliveryMode | wire.FlagTimestamp | wire.FlagAppID,
		ContentType: "text/plain", ContentEncoding: "gzip", Headers: wire.Table{mine, other}, DeliveryMode: 2, Timestamp: 1_700_000_000, AppID: "app",
	}
	encoded := full
	encoded.Flags, encoded.Headers = encoded.Flags&^wire.FlagHeaders, nil
	encoded.ContentType = ""
	for name, c := range map[string]struct {
		of   wire.Properties
		want wire.Table
	}{
		"nothing":          {wire.Properties{}, wire.Table{own}},
		"no headers":       {encoded, wire.Table{own}},
		"headers in order": {full, wire.Table{mine, other, own}},
		"taken":            {wire.Properties{Flags: wire.FlagHeaders, Headers: wire.Table{mine, {Name: "x-stream-offset", Value: "theirs"}, other}}, wire.Table{mine, other, own}},
	} {
		m := &Message{Properties: c.of.AppendTo(nil)}
		got, err := wire.ParseProperties(m.DeliveredAt(1 << 40))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(got.Headers, c.want) {
			t.Errorf("%s: headers %v, want %v", name, got.Headers, c.want)
		}
		got.Headers, c.of.Headers = nil, nil
		c.of.Flags |= wire.FlagHeaders | wire.FlagDeliveryMode
		if c.of.DeliveryMode == 0 {
			c.of.DeliveryMode = wire.Transient
		}
		if string(got.AppendTo(nil)) != string(c.of.AppendTo(nil)) {
			t.Errorf("%s: properties %+v, want %+v", name, got, c.of)
		}
	}
	var deaths *xdeath.History
	dead := &Message{Keys: []string{"k"}, Properties: []byte{0, 0}, Deaths: deaths.Record(xdeath.Event{Queue: "q", Reason: "rejected", Time: time.Unix(1, 0), Keys: []string{"k"}})}
	got, err := wire.ParseProperties(dead.DeliveredAt(3))
	if err != nil {
		t.Fatal(err)
	}
	_, died := got.Headers.Get("x-death")
	if offset, _ := got.Headers.Get("x-stream-offset"); !died || offset != int64(3) {
		t.Errorf("headers of a dead letter: %v", got.Headers)
	}
	if damaged := (&Message{Properties: []byte{1}}).DeliveredAt(3); len(damaged) != 1 {
		t.Errorf("damaged properties became %v", damaged)
	}
}
