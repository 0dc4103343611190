package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Frame types and the octet that ends every frame (AMQP 0-9-1, 4.2.3).
const (
	FrameMethod    = 1
	FrameHeader    = 2
	FrameBody      = 3
	FrameHeartbeat = 8
	FrameEnd       = 0xCE
)

const (
	// FrameOverhead is what a frame has besides its payload, in octets.
	// frame-max includes it.
	FrameOverhead = 8
	// FrameMinSize is the smallest frame-max, in octets, that a peer may
	// negotiate. AMQP says 4096; so does RabbitMQ for the negotiated value.
	FrameMinSize = 4096

	frameHead = 7
	// frameFudge is how far a frame may exceed frame-max. RabbitMQ is that
	// lenient, because clients are often off by one or by the overhead.
	frameFudge = 8
)

// ProtocolHeader opens a connection: "AMQP" and the version 0-9-1.
const ProtocolHeader = "AMQP\x00\x00\x09\x01"

// Frame is a frame as it came. The payload belongs to the Reader and is valid
// until its next call.
type Frame struct {
	Type    uint8
	Channel uint16
	Payload []byte
}

// Reader yields the frames of a stream. It reads big pieces into a buffer of its
// own, which grows with the traffic, and hands out views of it.
type Reader struct {
	src        io.Reader
	buf        []byte
	start, end int // unread octets are buf[start:end]
	frameMax   uint32
	grow       bool // the last read filled the buffer
}

const (
	firstBuffer = 4 << 10
	maxBuffer   = 128 << 10 // unless one frame needs more
)

// NewReader returns a Reader of frames up to frameMax octets.
func NewReader(src io.Reader, frameMax uint32) *Reader {
	return &Reader{src: src, buf: make([]byte, firstBuffer), frameMax: frameMax}
}

// SetFrameMax sets the size of the biggest frame, in octets with overhead.
func (r *Reader) SetFrameMax(n uint32) { r.frameMax = n }

// Ready tells whether Next will return without waiting for the peer.
func (r *Reader) Ready() bool {
	b := r.buf[r.start:r.end]
	return len(b) > frameHead && uint64(len(b)) >= frameHead+uint64(binary.BigEndian.Uint32(b[3:]))+1
}

// ProtocolHeader reads the eight octets that open a connection.
func (r *Reader) ProtocolHeader() ([8]byte, error) {
	var h [8]byte
	if err := r.fill(len(h)); err != nil {
		return h, err
	}
	r.start += copy(h[:], r.buf[r.start:])
	return h, nil
}

// Next returns the next frame. It returns io.EOF at the end of the stream,
// io.ErrUnexpectedEOF when it ends inside a frame, and an *Exception (501) for a
// frame that is too large or does not end in FrameEnd; nothing can be read after
// that.
func (r *Reader) Next() (Frame, error) {
	if err := r.fill(frameHead); err != nil {
		return Frame{}, err
	}
	head := r.buf[r.start:]
	f := Frame{Type: head[0], Channel: binary.BigEndian.Uint16(head[1:])}
	size := binary.BigEndian.Uint32(head[3:])
	if uint64(size) > uint64(r.frameMax)-FrameOverhead+frameFudge {
		return f, f.exception(fmt.Sprintf("{frame_too_large,%d,%d}", size, r.frameMax-FrameOverhead))
	}
	whole := frameHead + int(size) + 1
	if err := r.fill(whole); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return f, err
	}
	b := r.buf[r.start : r.start+whole : r.start+whole]
	r.start += whole
	f.Payload = b[frameHead : whole-1]
	if last := b[whole-1]; last != FrameEnd {
		return f, f.exception(fmt.Sprintf("{invalid_frame_end_marker,%d}", last))
	}
	return f, nil
}

// fill makes sure that n unread octets lie in the buffer.
func (r *Reader) fill(n int) error {
	if r.end-r.start >= n {
		return nil
	}
	if r.start == r.end {
		r.start, r.end = 0, 0
	}
	size := len(r.buf)
	if r.grow && size < maxBuffer {
		size *= 2
	}
	size = max(size, n)
	switch {
	case size > len(r.buf):
		buf := make([]byte, size)
		r.end = copy(buf, r.buf[r.start:r.end])
		r.start, r.buf = 0, buf
	case r.start+n > len(r.buf):
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	for empty := 0; r.end-r.start < n; {
		m, err := r.src.Read(r.buf[r.end:])
		r.end += m
		switch {
		case r.end-r.start >= n:
		case errors.Is(err, io.EOF):
			if r.end > r.start {
				return io.ErrUnexpectedEOF
			}
			return io.EOF
		case err != nil:
			return err
		case m == 0:
			if empty++; empty == 100 {
				return io.ErrNoProgress
			}
		}
	}
	r.grow = r.end == len(r.buf)
	return nil
}

// WellFormed tells whether the payload is as long as the type of the frame demands.
// It is false for types that the protocol does not have.
func (f Frame) WellFormed() bool {
	switch f.Type {
	case FrameMethod:
		return len(f.Payload) >= methodSize
	case FrameHeader:
		return len(f.Payload) >= contentHeaderSize
	case FrameBody:
		return true
	case FrameHeartbeat:
		return len(f.Payload) == 0
	}
	return false
}

// exception is a frame error (501) in RabbitMQ's words.
func (f Frame) exception(reason string) *Exception {
	return Errorf(FrameError, "%s: %s", f.snippet(), reason)
}

// Unknown is the exception for a frame that is not well-formed.
func (f Frame) Unknown() *Exception { return f.exception("unknown_frame") }

// Unexpected is the exception for a frame that may not come at this point.
func (f Frame) Unexpected() *Exception {
	return Errorf(UnexpectedFrame, "%s", f.snippet())
}

// snippet describes the frame as RabbitMQ does, which prints the octets as an
// Erlang binary.
func (f Frame) snippet() string {
	which, octets := "all", f.Payload
	if len(octets) > 16 {
		which, octets = "first 16", octets[:16]
	}
	return fmt.Sprintf("type %d, %s octets = %s", f.Type, which, erlangBinary(octets))
}

func erlangBinary(b []byte) string {
	if len(b) == 0 {
		return "<<>>"
	}
	printable := utf8.Valid(b)
	for _, r := range string(b) {
		printable = printable && unicode.IsPrint(r)
	}
	if printable {
		return fmt.Sprintf("<<%q>>", b)
	}
	var s strings.Builder
	s.WriteString("<<")
	for i, o := range b {
		if i > 0 {
			s.WriteString(",")
		}
		fmt.Fprint(&s, o)
	}
	return s.String() + ">>"
}

// ContentHeader is the payload of a content header frame. Properties aliases it.
type ContentHeader struct {
	Class      uint16
	Weight     uint16 // always 0
	BodySize   uint64
	Properties []byte // flags and list, see ViewProperties
}

// contentHeaderSize is the size of a content header without properties' flags.
const contentHeaderSize = 12

// ParseContentHeader parses the payload of a content header frame, but not the
// properties. It returns false if the frame is not well-formed.
func ParseContentHeader(payload []byte) (h ContentHeader, ok bool) {
	if len(payload) < contentHeaderSize {
		return ContentHeader{}, false
	}
	return ContentHeader{
		Class:      binary.BigEndian.Uint16(payload),
		Weight:     binary.BigEndian.Uint16(payload[2:]),
		BodySize:   binary.BigEndian.Uint64(payload[4:]),
		Properties: payload[contentHeaderSize:],
	}, true
}

// AppendFrameHead appends what stands before the payload of a frame. The caller
// appends size octets and FrameEnd.
func AppendFrameHead(dst []byte, typ uint8, channel uint16, size int) []byte {
	dst = append(dst, typ, byte(channel>>8), byte(channel))
	return binary.BigEndian.AppendUint32(dst, uint32(size))
}

// BeginMethod appends the head of a method frame whose size is not known yet.
// The caller appends the method and hands the returned mark to EndMethod. Unlike
// AppendMethod it lets a method stay on the caller's stack.
func BeginMethod(dst []byte, channel uint16) (b []byte, mark int) {
	dst = AppendFrameHead(dst, FrameMethod, channel, 0)
	return dst, len(dst)
}

// EndMethod completes the frame that BeginMethod began.
func EndMethod(dst []byte, mark int) []byte {
	binary.BigEndian.PutUint32(dst[mark-4:], uint32(len(dst)-mark))
	return append(dst, FrameEnd)
}

// AppendMethod appends a method frame.
func AppendMethod(dst []byte, channel uint16, m Method) []byte {
	dst, mark := BeginMethod(dst, channel)
	return EndMethod(m.AppendTo(dst), mark)
}

// AppendHeader appends a content header frame of class basic. The properties are
// flags and list as Properties.AppendTo writes them.
func AppendHeader(dst []byte, channel uint16, bodySize int, properties []byte) []byte {
	dst = AppendFrameHead(dst, FrameHeader, channel, contentHeaderSize+len(properties))
	dst = append(dst, 0, byte(IDBasicPublish>>16), 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, uint64(bodySize))
	dst = append(dst, properties...)
	return append(dst, FrameEnd)
}

// AppendBody appends the body frames of a message: none for an empty body, else
// as many as frameMax demands.
func AppendBody(dst []byte, channel uint16, frameMax uint32, body []byte) []byte {
	for limit := int(frameMax - FrameOverhead); len(body) > 0; {
		part := body[:min(len(body), limit)]
		body = body[len(part):]
		dst = AppendFrameHead(dst, FrameBody, channel, len(part))
		dst = append(append(dst, part...), FrameEnd)
	}
	return dst
}

// AppendHeartbeat appends a heartbeat frame.
func AppendHeartbeat(dst []byte) []byte {
	return append(dst, FrameHeartbeat, 0, 0, 0, 0, 0, 0, FrameEnd)
}
