package wire

import (
	"bytes"
	"io"
	"testing"
)

// publish is what a producer sends for one message of 1 KiB.
func publish() []byte {
	b := AppendMethod(nil, 1, &BasicPublish{Exchange: []byte("orders"), RoutingKey: []byte("order.created")})
	props := Properties{
		Flags: FlagContentType | FlagHeaders | FlagDeliveryMode, ContentType: "application/json",
		Headers: Table{{"trace", "0af7651916cd43dd8448eb211c80319c"}}, DeliveryMode: Persistent,
	}.AppendTo(nil)
	b = AppendHeader(b, 1, 1024, props)
	return AppendBody(b, 1, frameMax, make([]byte, 1024))
}

// readPublish does what a session does with a published message, but for
// routing it.
func readPublish(r *Reader) error {
	f, err := r.Next()
	if err != nil {
		return err
	}
	var m BasicPublish
	if id, args, _ := SplitMethod(f.Payload); id != IDBasicPublish {
		return io.ErrUnexpectedEOF
	} else if err := m.Parse(args); err != nil {
		return err
	}
	if f, err = r.Next(); err != nil {
		return err
	}
	h, _ := ParseContentHeader(f.Payload)
	v, err := ViewProperties(h.Properties)
	if err != nil {
		return err
	}
	if _, ok := v.Header("CC"); ok {
		return io.ErrUnexpectedEOF
	}
	_, err = r.Next()
	return err
}

type endless struct {
	data []byte
	at   int
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(p[n:], e.data[e.at:])
		e.at = (e.at + m) % len(e.data)
		n += m
	}
	return n, nil
}

func BenchmarkReadPublish(b *testing.B) {
	data := publish()
	r := NewReader(&endless{data: data}, frameMax)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := readPublish(r); err != nil {
			b.Fatal(err)
		}
	}
}

// writeDelivery is the same message on its way to a consumer.
func writeDelivery(dst, props, body []byte) []byte {
	m := BasicDeliver{ConsumerTag: "ctag", DeliveryTag: 1, Exchange: "orders", RoutingKey: "order.created"}
	dst, mark := BeginMethod(dst, 1)
	dst = EndMethod(m.AppendTo(dst), mark)
	dst = AppendHeader(dst, 1, len(body), props)
	return AppendBody(dst, 1, frameMax, body)
}

func BenchmarkWriteDelivery(b *testing.B) {
	body, props := make([]byte, 1024), []byte{0, 0}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = writeDelivery(out[:0], props, body)
	}
	b.SetBytes(int64(len(out)))
}

func BenchmarkParseAck(b *testing.B) {
	payload := (&BasicAck{DeliveryTag: 7}).AppendTo(nil)
	b.ReportAllocs()
	for b.Loop() {
		var m BasicAck
		_, args, _ := SplitMethod(payload)
		if err := m.Parse(args); err != nil {
			b.Fatal(err)
		}
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	r := NewReader(&endless{data: publish()}, frameMax)
	for range 1000 { // until the buffer has grown
		if err := readPublish(r); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, f func()) {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	check("reading a publish", func() {
		if readPublish(r) != nil {
			t.Fail()
		}
	})
	body, props := bytes.Repeat([]byte("b"), 1024), []byte{0, 0}
	out := make([]byte, 0, 4096)
	check("writing a delivery", func() { writeDelivery(out[:0], props, body) })
	payload := (&BasicAck{DeliveryTag: 7}).AppendTo(nil)
	check("parsing an ack", func() {
		var m BasicAck
		_, args, _ := SplitMethod(payload)
		if m.Parse(args) != nil || m.DeliveryTag != 7 {
			t.Fail()
		}
	})
}
