package message

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dormousemq/dormouse/internal/wire"
	"github.com/dormousemq/dormouse/internal/xdeath"
)

func properties(p wire.Properties) []byte { return p.AppendTo(nil) }

func TestExpiration(t *testing.T) {
	for value, want := range map[string]string{
		"0": "", "+5": "", "5000": "", "4294967296": "", "315360000000": "", "007": "",
		"":                        "invalid expiration '': no_integer",
		"abc":                     "invalid expiration 'abc': no_integer",
		" 5":                      "invalid expiration ' 5': no_integer",
		"-":                       "invalid expiration '-': no_integer",
		"1.5":                     `invalid expiration '1.5': {leftover_string,".5"}`,
		"5000ms":                  `invalid expiration '5000ms': {leftover_string,"ms"}`,
		"5 ":                      `invalid expiration '5 ': {leftover_string," "}`,
		"-1":                      "invalid expiration '-1': {value_negative,-1}",
		"315360000001":            "invalid expiration '315360000001': {value_too_large,315360000001}",
		"99999999999999999999999": "invalid expiration '99999999999999999999999': {value_too_large,99999999999999999999999}",
	} {
		_, err := New("", "q", properties(wire.Properties{Flags: wire.FlagExpiration, Expiration: value}), nil)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", value, err)
			}
			continue
		}
		var x *wire.Exception
		if !errors.As(err, &x) || x.Code != wire.PreconditionFailed || x.Text != want {
			t.Errorf("%q: got %v, want %s", value, err, want)
		}
	}
}

func TestCarbonCopies(t *testing.T) {
	headers := wire.Table{
		{Name: "CC", Value: []any{"c1", int32(7), "c2"}},
		{Name: "app", Value: "kept"},
		{Name: "BCC", Value: []any{"b1"}},
	}
	m, err := New("x", "key", properties(wire.Properties{Flags: wire.FlagHeaders | wire.FlagDeliveryMode, DeliveryMode: 2, Headers: headers}), []byte("body"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"key", "c1", "c2"}; !slices.Equal(m.Keys, want) {
		t.Errorf("keys %q, want %q", m.Keys, want)
	}
	if want := []string{"key", "c1", "c2", "b1"}; !slices.Equal(m.AllKeys(), want) {
		t.Errorf("all keys %q, want %q", m.AllKeys(), want)
	}
	if got := m.Headers(); !reflect.DeepEqual(got, headers[:2]) {
		t.Errorf("headers %v, want %v", got, headers[:2])
	}
	if !m.Persistent {
		t.Error("not persistent")
	}
	_, err = New("x", "key", properties(wire.Properties{Flags: wire.FlagHeaders, Headers: wire.Table{{Name: "CC", Value: "c1"}}}), nil)
	if x := new(wire.Exception); !errors.As(err, &x) || x.Code != wire.PreconditionFailed {
		t.Errorf("a CC that is no array: %v", err)
	}
}

func TestDeadLetter(t *testing.T) {
	at := time.Unix(1_700_000_000, 123_000_000)
	p := wire.Properties{
		Flags: wire.FlagExpiration | wire.FlagHeaders | wire.FlagMessageID, Expiration: "300", MessageID: "id",
		Headers: wire.Table{{Name: "zebra", Value: int32(1)}, {Name: "x-death", Value: "a client's"}, {Name: "ant", Value: true}},
	}
	m, err := New("orders", "created", properties(p), []byte("body"))
	if err != nil {
		t.Fatal(err)
	}
	before := *m
	key := "retry"
	dead := m.DeadLetter(Death{Queue: "work", Reason: "expired", Time: at, Exchange: "dlx", RoutingKey: &key})
	if !reflect.DeepEqual(*m, before) {
		t.Fatal("the message itself has changed")
	}
	if dead.Exchange != "dlx" || !slices.Equal(dead.Keys, []string{"retry"}) || dead.Expiration != NoExpiration {
		t.Fatalf("dead letter %+v", dead)
	}
	got, err := wire.ParseProperties(dead.Delivered(Counts{}))
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Properties{Flags: wire.FlagHeaders | wire.FlagMessageID, MessageID: "id", Headers: wire.Table{
		{Name: "ant", Value: true},
		{Name: "x-death", Value: []any{wire.Table{
			{Name: "original-expiration", Value: "300"},
			{Name: "count", Value: int64(1)},
			{Name: "reason", Value: "expired"},
			{Name: "queue", Value: "work"},
			{Name: "time", Value: wire.Timestamp(1_700_000_000)},
			{Name: "exchange", Value: "orders"},
			{Name: "routing-keys", Value: []any{"created"}},
		}}},
		{Name: "x-first-death-exchange", Value: "orders"},
		{Name: "x-first-death-queue", Value: "work"},
		{Name: "x-first-death-reason", Value: "expired"},
		{Name: "x-last-death-exchange", Value: "orders"},
		{Name: "x-last-death-queue", Value: "work"},
		{Name: "x-last-death-reason", Value: "expired"},
		{Name: "zebra", Value: int32(1)},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("delivered\n%+v, want\n%+v", got, want)
	}
}

func TestUntouchedPropertiesAreDeliveredAsTheyCame(t *testing.T) {
	raw := properties(wire.Properties{Flags: wire.FlagHeaders, Headers: wire.Table{{Name: "z", Value: "1"}, {Name: "a", Value: "2"}}})
	m, err := New("", "q", raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Delivered(Counts{}); &got[0] != &raw[0] {
		t.Error("they were copied")
	}
	p, err := wire.ParseProperties(m.Delivered(Counts{Returns: 2, Failures: 1}))
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Table{
		{Name: "a", Value: "2"}, {Name: "x-acquired-count", Value: int64(2)},
		{Name: "x-delivery-count", Value: int64(1)}, {Name: "z", Value: "1"},
	}
	if !reflect.DeepEqual(p.Headers, want) {
		t.Errorf("with counts: %v", p.Headers)
	}
}

func TestEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 0, 3)
		m := &Message{
			Exchange:   rapid.String().Draw(t, "exchange"),
			Keys:       rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "keys"),
			BCC:        texts.Draw(t, "bcc"),
			Properties: rapid.SliceOf(rapid.Byte()).Draw(t, "properties"),
			Body:       rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
			Persistent: rapid.Bool().Draw(t, "persistent"),
			Priority:   rapid.IntRange(NoPriority, 255).Draw(t, "priority"),
			Expiration: NoExpiration,
			Returns:    rapid.Uint32().Draw(t, "returns"),
			Failures:   rapid.Uint32().Draw(t, "failures"),
		}
		if len(m.BCC) == 0 {
			m.BCC = nil
		}
		if rapid.Bool().Draw(t, "expires") {
			m.Expiration = time.Duration(rapid.Int64Range(0, MaxTTL.Milliseconds()).Draw(t, "expiration")) * time.Millisecond
		}
		for range rapid.IntRange(0, 4).Draw(t, "deaths") {
			m.Deaths = m.Deaths.Record(xdeath.Event{
				Queue:  rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "queue"),
				Reason: rapid.SampledFrom([]string{"rejected", "expired"}).Draw(t, "reason"),
				Time:   time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "time")), Keys: []string{"k"},
			})
		}
		encoded := m.AppendTo(nil)
		if len(encoded) != m.EncodedSize() {
			t.Fatalf("EncodedSize %d, encoded %d", m.EncodedSize(), len(encoded))
		}
		got, err := Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("got\n%+v, want\n%+v", got, m)
		}
		if cut := rapid.IntRange(0, len(encoded)-1).Draw(t, "cut"); len(encoded) > 0 {
			if _, err := Decode(encoded[:cut]); err == nil {
				t.Fatalf("the first %d of %d bytes were accepted", cut, len(encoded))
			}
		}
	})
}
