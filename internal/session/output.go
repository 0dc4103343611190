package session

import (
	"net"
	"sync"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/wire"
)

const (
	// deliverLimit is how much waits to be written, in bytes, when deliveries stop.
	deliverLimit = 256 << 10
	// replyLimit is how much waits when a client that does not read is not read
	// either. It is higher, so that deliveries alone never stop a client's acks.
	replyLimit = 1 << 20
	// copyLimit is the largest body, in bytes, that is copied into the buffer. Larger
	// ones are written from where they are.
	copyLimit = 16 << 10
	// keepBuffer is the largest buffer that is used again.
	keepBuffer = 1 << 20
)

// output is what waits to be written to a connection: a buffer, and large pieces
// that stand between parts of it.
type output struct {
	buf    *[]byte
	pieces []piece
	size   int // of all, in bytes
}

// piece is written in front of what the buffer has from at on.
type piece struct {
	at    int
	bytes []byte
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 4<<10)
	return &b
}}

// begin returns the buffer to append to. What was appended is kept by end.
func (o *output) begin() []byte {
	if o.buf == nil {
		o.buf = buffers.Get().(*[]byte)
	}
	return *o.buf
}

func (o *output) end(b []byte) {
	o.size += len(b) - len(*o.buf)
	*o.buf = b
}

func (o *output) method(channel uint16, m wire.Method) {
	o.end(wire.AppendMethod(o.begin(), channel, m))
}

// content appends the content header and body frames of m.
func (o *output) content(channel uint16, frameMax uint32, properties []byte, m *message.Message) {
	b := wire.AppendHeader(o.begin(), channel, len(m.Body), properties)
	if len(m.Body) <= copyLimit {
		o.end(wire.AppendBody(b, channel, frameMax, m.Body))
		return
	}
	for body := m.Body; len(body) > 0; {
		part := body[:min(len(body), int(frameMax-wire.FrameOverhead))]
		body = body[len(part):]
		b = wire.AppendFrameHead(b, wire.FrameBody, channel, len(part))
		o.pieces = append(o.pieces, piece{at: len(b), bytes: part})
		o.size += len(part)
		b = append(b, wire.FrameEnd)
	}
	o.end(b)
}

// writeTo writes all of it and gives its buffer back.
func (o *output) writeTo(c net.Conn) error {
	if o.buf == nil {
		return nil
	}
	b := *o.buf
	var err error
	if len(o.pieces) == 0 {
		_, err = c.Write(b)
	} else {
		parts := make(net.Buffers, 0, 2*len(o.pieces)+1)
		from := 0
		for _, p := range o.pieces {
			parts = append(parts, b[from:p.at], p.bytes)
			from = p.at
		}
		parts = append(parts, b[from:])
		_, err = parts.WriteTo(c)
	}
	if cap(b) <= keepBuffer {
		*o.buf = b[:0]
		buffers.Put(o.buf)
	}
	*o = output{}
	return err
}
