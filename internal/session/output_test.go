package session

import (
	"bytes"
	"io"
	"net"
	"testing"

	"pgregory.net/rapid"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/wire"
)

// What is written from where it lies must look like what is copied.
func TestOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o output
		var want []byte
		size := uint32(rapid.SampledFrom([]int{wire.FrameMinSize, 8192, frameMax}).Draw(t, "frame max"))
		for range rapid.IntRange(0, 6).Draw(t, "messages") {
			n := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(copyLimit-1, copyLimit+1), rapid.IntRange(0, 3*frameMax)).Draw(t, "size")
			m := &message.Message{Body: bytes.Repeat([]byte{byte(n)}, n)}
			properties := []byte{0, 0}
			o.method(1, &wire.BasicGetEmpty{})
			o.content(1, size, properties, m)
			want = wire.AppendMethod(want, 1, &wire.BasicGetEmpty{})
			want = wire.AppendBody(wire.AppendHeader(want, 1, n, properties), 1, size, m.Body)
		}
		if o.size != len(want) {
			t.Fatalf("size %d, want %d", o.size, len(want))
		}
		here, there := net.Pipe()
		result := make(chan []byte)
		go func() {
			b, _ := io.ReadAll(there)
			result <- b
		}()
		if err := o.writeTo(here); err != nil {
			t.Fatal(err)
		}
		here.Close()
		if got := <-result; !bytes.Equal(got, want) {
			t.Fatalf("%d octets written, want %d", len(got), len(want))
		}
		if o.size != 0 || o.buf != nil || o.pieces != nil {
			t.Fatalf("something is left: %+v", o)
		}
	})
}
