package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// methodIDs are all methods of spec.txt: the generator's own test sees to it
// that code and spec agree.
func methodIDs() (ids []MethodID) {
	for class := range MethodID(100) {
		for n := range MethodID(130) {
			if id := class<<16 | n; newMethod(id) != nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// fillIn sets every field of a method to something random.
func fillIn(t *rapid.T, m Method) {
	v := reflect.ValueOf(m).Elem()
	for _, field := range v.Fields() {
		switch f := field; f.Interface().(type) {
		case bool:
			f.SetBool(rapid.Bool().Draw(t, "bit"))
		case string:
			f.SetString(rapid.StringN(0, 20, 255).Draw(t, "string"))
		case []byte:
			f.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 255).Draw(t, "view"))
		case Table:
			if table := tables(1).Draw(t, "table"); len(table) > 0 {
				f.Set(reflect.ValueOf(table))
			}
		default:
			f.SetUint(rapid.Uint64().Draw(t, "number") >> (64 - f.Type().Bits()))
		}
	}
}

func TestMethodsRoundTrip(t *testing.T) {
	ids := methodIDs()
	if len(ids) != 66 {
		t.Errorf("%d methods", len(ids))
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom(ids).Draw(t, "method")
		want := newMethod(id)
		fillIn(t, want)
		encoded := want.AppendTo(nil)
		gotID, args, _ := SplitMethod(encoded)
		if gotID != id || want.ID() != id {
			t.Fatalf("identifier %v, want %v", gotID, id)
		}
		got, err := ParseMethod(id, args)
		if err != nil {
			t.Fatal(err)
		}
		if again := got.AppendTo(nil); !bytes.Equal(again, encoded) {
			t.Fatalf("%+v encoded again as % x, want % x", got, again, encoded)
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		for n := range args {
			if _, err := ParseMethod(id, args[:n]); err == nil {
				t.Fatalf("%v cut to %d octets was parsed", id, n)
			}
		}
		if _, err := ParseMethod(id, append(args, 0)); err == nil {
			t.Fatalf("%v with an octet too many was parsed", id)
		}
	})
}

func TestMethodWireForm(t *testing.T) {
	for _, test := range []struct {
		m    Method
		wire string
	}{
		{&BasicPublish{Exchange: []byte("x"), RoutingKey: []byte("key"), Mandatory: true}, "\x00\x3c\x00\x28\x00\x00\x01x\x03key\x01"},
		{&BasicAck{DeliveryTag: 258, Multiple: true}, "\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x01\x02\x01"},
		{&BasicNack{DeliveryTag: 1, Requeue: true}, "\x00\x3c\x00\x78\x00\x00\x00\x00\x00\x00\x00\x01\x02"},
		{&BasicDeliver{ConsumerTag: "c", DeliveryTag: 1, Redelivered: true, Exchange: "x", RoutingKey: "k"},
			"\x00\x3c\x00\x3c\x01c\x00\x00\x00\x00\x00\x00\x00\x01\x01\x01x\x01k"},
		{&QueueDeclare{Queue: "q", Durable: true, AutoDelete: true}, "\x00\x32\x00\x0a\x00\x00\x01q\x0a\x00\x00\x00\x00"},
		{&ConnectionTune{ChannelMax: 2047, FrameMax: 131072, Heartbeat: 60}, "\x00\x0a\x00\x1e\x07\xff\x00\x02\x00\x00\x00\x3c"},
		{&ConnectionOpen{VirtualHost: "/"}, "\x00\x0a\x00\x28\x01/\x00\x00"},
		{&ChannelOpenOk{}, "\x00\x14\x00\x0b\x00\x00\x00\x00"},
		{&ExchangeUnbindOk{}, "\x00\x28\x00\x33"},
		{&ConfirmSelect{NoWait: true}, "\x00\x55\x00\x0a\x01"},
	} {
		if got := string(test.m.AppendTo(nil)); got != test.wire {
			t.Errorf("%v is %q, want %q", test.m.ID(), got, test.wire)
		}
	}
}

func TestUnknownAndMalformedMethods(t *testing.T) {
	_, err := ParseMethod(60<<16|999, nil)
	if e, ok := err.(*Exception); !ok || e.Code != CommandInvalid || e.Text != "unknown method 999 of class 60" {
		t.Errorf("unknown method: %v", err)
	}
	_, err = ParseMethod(IDQueueDeclare, []byte("\x00\x00\x05ab"))
	if e, ok := err.(*Exception); !ok || e.ReplyText() != "FRAME_ERROR - cannot decode <<0,0,5,97,98>>" {
		t.Errorf("malformed arguments: %v", err)
	}
	if !IDBasicPublish.HasContent() || IDBasicAck.HasContent() {
		t.Error("HasContent is wrong about basic.publish or basic.ack")
	}
	if s := IDBasicAck.String() + " " + MethodID(7).String(); s != "basic.ack method 7 of class 0" {
		t.Error(s)
	}
}

func TestPublishIsNotCopied(t *testing.T) {
	b := (&BasicPublish{Exchange: []byte("x"), RoutingKey: []byte("key")}).AppendTo(nil)
	var m BasicPublish
	if err := m.Parse(b[4:]); err != nil {
		t.Fatal(err)
	}
	if unsafe.SliceData(m.RoutingKey) != &b[9] {
		t.Error("the routing key does not alias the frame")
	}
}

func FuzzMethod(f *testing.F) {
	for _, id := range methodIDs() {
		f.Add(newMethod(id).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if !(Frame{Type: FrameMethod, Payload: payload}).WellFormed() {
			return
		}
		id, args, _ := SplitMethod(payload)
		m, err := ParseMethod(id, args)
		if err != nil {
			return
		}
		_, args, _ = SplitMethod(m.AppendTo(nil))
		again, err := ParseMethod(id, args)
		if err != nil || fmt.Sprintf("%+v", m) != fmt.Sprintf("%+v", again) {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}
