package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

const frameMax = 131072

func TestFramesComeOutAsTheyWentIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type frame struct {
			typ     uint8
			channel uint16
			payload []byte
		}
		var want []frame
		var stream []byte
		for range rapid.IntRange(0, 20).Draw(t, "frames") {
			// Sizes of all orders: within the first buffer, around it, far beyond.
			size := rapid.OneOf(rapid.IntRange(0, 64), rapid.IntRange(firstBuffer-16, firstBuffer+16), rapid.IntRange(0, frameMax)).Draw(t, "size")
			f := frame{rapid.Byte().Draw(t, "type"), rapid.Uint16().Draw(t, "channel"), bytes.Repeat([]byte{byte(size)}, size)}
			want = append(want, f)
			stream = AppendFrameHead(stream, f.typ, f.channel, size)
			stream = append(append(stream, f.payload...), FrameEnd)
		}
		src := io.Reader(bytes.NewReader(stream))
		if rapid.Bool().Draw(t, "in dribs") {
			src = iotest.DataErrReader(iotest.HalfReader(src))
		}
		r := NewReader(src, frameMax)
		for i, w := range want {
			got, err := r.Next()
			if err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
			if got.Type != w.typ || got.Channel != w.channel || !bytes.Equal(got.Payload, w.payload) {
				t.Fatalf("frame %d: got %d %d and %d octets, want %d %d and %d", i, got.Type, got.Channel, len(got.Payload), w.typ, w.channel, len(w.payload))
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

func TestOneOctetAtATime(t *testing.T) {
	stream := append([]byte(ProtocolHeader), AppendMethod(nil, 7, &BasicAck{DeliveryTag: 3})...)
	r := NewReader(iotest.OneByteReader(bytes.NewReader(stream)), frameMax)
	if h, err := r.ProtocolHeader(); err != nil || string(h[:]) != ProtocolHeader {
		t.Fatalf("protocol header %q, %v", h, err)
	}
	f, err := r.Next()
	if err != nil || f.Type != FrameMethod || f.Channel != 7 {
		t.Fatalf("%+v, %v", f, err)
	}
}

func TestReady(t *testing.T) {
	frame := AppendMethod(nil, 1, &BasicAck{})
	for n := range 2 * len(frame) {
		stream := append(append([]byte{}, frame...), append(frame, frame...)[:n]...)
		r := NewReader(bytes.NewReader(stream), frameMax)
		if r.Ready() {
			t.Fatal("ready before anything was read")
		}
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if got, want := r.Ready(), n >= len(frame); got != want {
			t.Errorf("ready is %v with %d octets of the next frame's %d", got, n, len(frame))
		}
	}
}

func TestFrameErrors(t *testing.T) {
	for _, test := range []struct{ name, stream, text string }{
		{"too large", "\x01\x00\x01\x00\xff\xff\xff", "FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,16777215,131064}"},
		{"far too large", "\x01\x00\x01\xff\xff\xff\xff", "FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,4294967295,131064}"},
		{"a little too large", "\x03\x00\x01\x00\x02\x00\x01", "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131073,131064}"},
		{"bad end", "\x01\x00\x01\x00\x00\x00\x04\x00\x14\x00\x0aX", "FRAME_ERROR - type 1, all octets = <<0,20,0,10>>: {invalid_frame_end_marker,88}"},
		{"bad end of a long frame", "\x01\x00\x01\x00\x00\x00\x14abcdefghijklmnopqrst\x00", `FRAME_ERROR - type 1, first 16 octets = <<"abcdefghijklmnop">>: {invalid_frame_end_marker,0}`},
	} {
		_, err := NewReader(bytes.NewReader([]byte(test.stream)), frameMax).Next()
		var e *Exception
		if !errors.As(err, &e) || e.Code != FrameError || !e.IsConnection() || e.ReplyText() != test.text {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestFrameMayExceedTheLimitByItsOverhead(t *testing.T) {
	stream := AppendFrameHead(nil, FrameBody, 1, frameMax)
	stream = append(append(stream, make([]byte, frameMax)...), FrameEnd)
	if _, err := NewReader(bytes.NewReader(stream), frameMax).Next(); err != nil {
		t.Error(err)
	}
}

func TestStreamEnds(t *testing.T) {
	whole := AppendMethod(nil, 1, &BasicAck{})
	for n := 1; n < len(whole); n++ {
		if _, err := NewReader(bytes.NewReader(whole[:n]), frameMax).Next(); err != io.ErrUnexpectedEOF {
			t.Errorf("cut to %d octets: %v", n, err)
		}
	}
	broken := errors.New("broken")
	if _, err := NewReader(iotest.ErrReader(broken), frameMax).Next(); err != broken {
		t.Errorf("%v", err)
	}
}

// A header that promises much must not make the reader allocate much.
func TestBufferGrowsWithWhatComes(t *testing.T) {
	stream := bytes.Repeat(AppendMethod(nil, 1, &BasicAck{}), 100)
	r := NewReader(iotest.OneByteReader(bytes.NewReader(stream)), frameMax)
	for range 100 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.buf) != firstBuffer {
		t.Errorf("a trickle grew the buffer to %d", len(r.buf))
	}
	r = NewReader(bytes.NewReader(bytes.Repeat(stream, 1000)), frameMax)
	for range 100_000 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.buf) != maxBuffer {
		t.Errorf("a flood left the buffer at %d", len(r.buf))
	}
}

func TestContentFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		props := properties().Draw(t, "properties").AppendTo(nil)
		body := bytes.Repeat([]byte("b"), rapid.IntRange(0, 3*FrameMinSize).Draw(t, "size"))
		stream := AppendHeader(nil, 9, len(body), props)
		stream = AppendBody(stream, 9, FrameMinSize, body)
		r := NewReader(bytes.NewReader(stream), FrameMinSize)
		f, err := r.Next()
		if err != nil || f.Type != FrameHeader || f.Channel != 9 {
			t.Fatalf("%+v, %v", f, err)
		}
		h, _ := ParseContentHeader(f.Payload)
		if !f.WellFormed() || h.Class != 60 || h.BodySize != uint64(len(body)) || !bytes.Equal(h.Properties, props) {
			t.Fatalf("%+v", h)
		}
		var got []byte
		for len(got) < len(body) {
			f, err := r.Next()
			if err != nil || f.Type != FrameBody || len(f.Payload) == 0 || len(f.Payload) > FrameMinSize-FrameOverhead {
				t.Fatalf("%d: %d octets, %v", f.Type, len(f.Payload), err)
			}
			got = append(got, f.Payload...)
		}
		if _, err := r.Next(); err != io.EOF || !bytes.Equal(got, body) {
			t.Fatalf("%v", err)
		}
	})
}

func TestWellFormed(t *testing.T) {
	for _, test := range []struct {
		typ  uint8
		size int
		want bool
	}{
		{FrameMethod, 4, true}, {FrameMethod, 3, false},
		{FrameHeader, 12, true}, {FrameHeader, 11, false},
		{FrameBody, 0, true},
		{FrameHeartbeat, 0, true}, {FrameHeartbeat, 1, false},
		{0, 0, false}, {4, 100, false},
	} {
		if got := (Frame{Type: test.typ, Payload: make([]byte, test.size)}).WellFormed(); got != test.want {
			t.Errorf("type %d with %d octets: %v", test.typ, test.size, got)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	f, err := NewReader(bytes.NewReader(AppendHeartbeat(nil)), frameMax).Next()
	if err != nil || f.Type != FrameHeartbeat || f.Channel != 0 || len(f.Payload) != 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(AppendMethod(nil, 1, &BasicPublish{Exchange: []byte("x")}))
	f.Add(AppendBody(AppendHeader(nil, 1, 5, []byte{0, 0}), 1, frameMax, []byte("hello")))
	f.Add(AppendHeartbeat(nil))
	f.Add([]byte("\x01\x00\x01\x00\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewReader(iotest.HalfReader(bytes.NewReader(stream)), FrameMinSize)
		var again []byte
		for {
			ready := r.Ready()
			frame, err := r.Next()
			if err != nil {
				if _, ok := errors.AsType[*Exception](err); ready && !ok {
					t.Fatalf("a frame was ready, then %v", err)
				}
				break
			}
			if len(r.buf) > maxBuffer {
				t.Fatalf("%d octets are buffered for frames up to %d", len(r.buf), FrameMinSize)
			}
			again = AppendFrameHead(again, frame.Type, frame.Channel, len(frame.Payload))
			again = append(append(again, frame.Payload...), FrameEnd)
		}
		if !bytes.HasPrefix(stream, again) {
			t.Fatalf("% x read as % x", stream, again)
		}
	})
}
