package wire

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestReplaceProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Properties{
			Flags:       rapid.Uint16().Draw(t, "flags") &^ noProperty,
			ContentType: "text/plain", ContentEncoding: "gzip", Headers: Table{{"a", int32(1)}}, DeliveryMode: 2, Priority: 3,
			CorrelationID: "c", ReplyTo: "r", Expiration: rapid.StringN(0, 20, 20).Draw(t, "expiration"), MessageID: "m",
			Timestamp: 7, Type: "t", UserID: "u", AppID: "a", ClusterID: "x",
		}
		raw := p.AppendTo(nil)
		before := bytes.Clone(raw)
		check := func(got []byte, err error) {
			if err != nil {
				t.Fatal(err)
			}
			if want := p.AppendTo(nil); !bytes.Equal(got, want) {
				t.Fatalf("%x becomes %x, want %x", raw, got, want)
			}
			if !bytes.Equal(raw, before) {
				t.Fatal("the original was changed")
			}
		}
		original := p
		p.Flags &^= FlagExpiration
		check(ReplaceProperty(raw, FlagExpiration, nil))
		p = original
		p.Flags |= FlagHeaders
		p.Headers = Table{{"b", "new"}, {"c", nil}}
		check(ReplaceProperty(raw, FlagHeaders, AppendTable(nil, p.Headers)))
		p = original
		p.Flags |= FlagClusterID
		p.ClusterID = "other"
		check(ReplaceProperty(raw, FlagClusterID, []byte("\x05other")))
	})
}

func TestReplacePropertyOfWhatIsMalformed(t *testing.T) {
	for _, raw := range []string{"", "\x80", "\x80\x00", "\x80\x00\x05abc", "\x20\x00\x00\x00\x00\x09", "\x10\x00"} {
		if _, err := ReplaceProperty([]byte(raw), FlagClusterID, nil); err == nil {
			t.Errorf("%x is taken", raw)
		}
	}
}

func TestRawFieldsAreThoseOfTheTable(t *testing.T) {
	table := Table{{"a", "text"}, {"b", int64(-3)}, {"a", Table{{"x", true}}}, {"c", []any{int8(1), nil}}}
	encoded := table.AppendTo(nil)
	var joined []byte
	i := 0
	for f := range RawFields(encoded) {
		if string(f.Name) != table[i].Name || !bytes.Equal(f.Field, table[i:i+1].AppendTo(nil)) {
			t.Errorf("field %d is %q, %x", i, f.Name, f.Field)
		}
		joined = append(joined, f.Field...)
		i++
	}
	if !bytes.Equal(joined, encoded) {
		t.Errorf("the fields are %x, want %x", joined, encoded)
	}
	for range RawFields(encoded[:3]) {
		t.Error("a field of a table that is cut off")
	}
}

func TestAppendedFieldsAreReadBack(t *testing.T) {
	b := AppendStringField(nil, "s", "text")
	b = AppendInt64Field(b, "i", -5)
	b, array := BeginArrayField(b, "a")
	b, element := BeginTableElement(b)
	b = AppendTimestampField(b, "t", 9)
	b = EndField(b, element)
	b = AppendStringElement(b, "last")
	b = EndField(b, array)
	want := Table{{"s", "text"}, {"i", int64(-5)}, {"a", []any{Table{{"t", Timestamp(9)}}, "last"}}}
	got, err := ParseTable(b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if !bytes.Equal(b, want.AppendTo(nil)) {
		t.Error("encoded otherwise than as a Table")
	}
}
