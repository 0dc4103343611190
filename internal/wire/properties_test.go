package wire

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func properties() *rapid.Generator[Properties] {
	return rapid.Custom(func(t *rapid.T) Properties {
		p := Properties{Flags: rapid.Uint16().Draw(t, "flags") &^ noProperty}
		short := func(flag uint16, s *string) {
			if p.Has(flag) {
				*s = rapid.StringN(0, 20, 255).Draw(t, "string")
			}
		}
		short(FlagContentType, &p.ContentType)
		short(FlagContentEncoding, &p.ContentEncoding)
		short(FlagCorrelationID, &p.CorrelationID)
		short(FlagReplyTo, &p.ReplyTo)
		short(FlagExpiration, &p.Expiration)
		short(FlagMessageID, &p.MessageID)
		short(FlagType, &p.Type)
		short(FlagUserID, &p.UserID)
		short(FlagAppID, &p.AppID)
		short(FlagClusterID, &p.ClusterID)
		if p.Has(FlagHeaders) {
			p.Headers = tables(1).Draw(t, "headers")
		}
		if p.Has(FlagDeliveryMode) {
			p.DeliveryMode = rapid.Byte().Draw(t, "delivery mode")
		}
		if p.Has(FlagPriority) {
			p.Priority = rapid.Byte().Draw(t, "priority")
		}
		if p.Has(FlagTimestamp) {
			p.Timestamp = Timestamp(rapid.Uint64().Draw(t, "timestamp"))
		}
		return p
	})
}

func TestPropertiesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := properties().Draw(t, "properties")
		raw := want.AppendTo(nil)
		got, err := ParseProperties(raw)
		if err != nil {
			t.Fatal(err)
		}
		if again := got.AppendTo(nil); !bytes.Equal(again, raw) {
			t.Fatalf("encoded again: % x, want % x", again, raw)
		}
		if !reflect.DeepEqual(normal(got.Headers), normal(want.Headers)) {
			t.Fatalf("headers %v, want %v", got.Headers, want.Headers)
		}
		got.Headers, want.Headers = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestPropertyView(t *testing.T) {
	raw := Properties{
		Flags:   FlagHeaders | FlagDeliveryMode | FlagExpiration | FlagUserID,
		Headers: Table{{"x-delay", int32(5)}}, DeliveryMode: Persistent, Expiration: "60000", UserID: "guest",
	}.AppendTo(nil)
	v, err := ViewProperties(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !v.Has(FlagExpiration) || v.Has(FlagPriority) || v.DeliveryMode != Persistent ||
		string(v.Expiration) != "60000" || string(v.UserID) != "guest" || v.ContentType != nil {
		t.Errorf("got %+v", v)
	}
	if d, ok := v.Header("x-delay"); !ok || d != int32(5) {
		t.Errorf("x-delay = %v, %v", d, ok)
	}
	if &v.UserID[0] != &raw[len(raw)-5] {
		t.Error("the view does not alias what it shows")
	}
}

func TestPropertiesRejects(t *testing.T) {
	all := Properties{Flags: 0xfffc, Headers: Table{{"a", true}}, ContentType: "t", Expiration: "1"}.AppendTo(nil)
	for n := range all {
		if v, err := ViewProperties(all[:n]); err == nil {
			t.Errorf("cut to %d octets: %+v", n, v)
		}
	}
	for name, raw := range map[string]string{
		"octets left":  "\x00\x00z",
		"bad headers":  "\x20\x00\x00\x00\x00\x03\x01aQ",
		"long headers": "\x20\x00\xff\xff\xff\xff\x01aV",
	} {
		if v, err := ViewProperties([]byte(raw)); err == nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v, err := ViewProperties([]byte{0x00, 0x03}); err != nil || v.Flags != 0 {
		t.Errorf("bits of no property: %+v, %v; want them ignored", v, err)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add([]byte{0, 0})
	f.Add(Properties{Flags: 0xfffc, Headers: Table{{"a", true}}, ContentType: "t", Expiration: "1"}.AppendTo(nil))
	f.Add([]byte("\x20\x00\x00\x00\x00\x03\x01aV"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, verr := ViewProperties(raw)
		p, err := ParseProperties(raw)
		if (err == nil) != (verr == nil) {
			t.Fatalf("ParseProperties: %v, ViewProperties: %v", err, verr)
		}
		if err != nil {
			return
		}
		again, err := ParseProperties(p.AppendTo(nil))
		if err != nil {
			t.Fatal(err)
		}
		p.Headers, again.Headers = nil, nil
		if !reflect.DeepEqual(p, again) {
			t.Fatalf("%+v became %+v", p, again)
		}
	})
}
