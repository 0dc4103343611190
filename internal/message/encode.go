package message

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"time"

	"github.com/dormousemq/dormouse/internal/xdeath"
)

// ErrEncoding is returned by Decode for bytes that AppendTo did not write.
var ErrEncoding = errors.New("message: damaged encoding")

// Flags of the stored form.
const (
	flagPersistent = 1 << iota
	flagExpiration
	flagDeaths
	flagCounts
	flagPriority
)

// AppendTo appends the stored form of the message to dst:
//
//	flags(1) priority(1) exchange keys bcc properties body
//	[expiration in ms] [first(3) last(3) deaths] [returns failures]
//
// Numbers are varints, strings carry their length, lists their count.
func (m *Message) AppendTo(dst []byte) []byte {
	var flags byte
	if m.Persistent {
		flags |= flagPersistent
	}
	if m.Expiration != NoExpiration {
		flags |= flagExpiration
	}
	if m.Deaths != nil {
		flags |= flagDeaths
	}
	if m.Returns != 0 || m.Failures != 0 {
		flags |= flagCounts
	}
	priority := byte(0)
	if m.Priority != NoPriority {
		flags |= flagPriority
		priority = byte(m.Priority)
	}
	dst = append(dst, flags, priority)
	dst = appendString(dst, m.Exchange)
	dst = appendStrings(dst, m.Keys)
	dst = appendStrings(dst, m.BCC)
	dst = appendString(dst, m.Properties)
	dst = appendString(dst, m.Body)
	if flags&flagExpiration != 0 {
		dst = binary.AppendUvarint(dst, uint64(m.Expiration.Milliseconds()))
	}
	if flags&flagDeaths != 0 {
		dst = appendDeaths(dst, m.Deaths)
	}
	if flags&flagCounts != 0 {
		dst = binary.AppendUvarint(dst, uint64(m.Returns))
		dst = binary.AppendUvarint(dst, uint64(m.Failures))
	}
	return dst
}

// EncodedSize is the number of bytes that AppendTo appends.
func (m *Message) EncodedSize() int {
	n := 2 + sizeOf(len(m.Exchange)) + sizeOfStrings(m.Keys) + sizeOfStrings(m.BCC) +
		sizeOf(len(m.Properties)) + sizeOf(len(m.Body))
	if m.Expiration != NoExpiration {
		n += uvarintSize(uint64(m.Expiration.Milliseconds()))
	}
	if m.Deaths != nil {
		n += sizeOfDeaths(m.Deaths)
	}
	if m.Returns != 0 || m.Failures != 0 {
		n += uvarintSize(uint64(m.Returns)) + uvarintSize(uint64(m.Failures))
	}
	return n
}

// uvarintSize is the length of a varint: seven bits in each byte.
func uvarintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// sizeOf is the encoded size of a string of n bytes.
func sizeOf(n int) int { return uvarintSize(uint64(n)) + n }

func sizeOfStrings(list []string) int {
	n := uvarintSize(uint64(len(list)))
	for _, s := range list {
		n += sizeOf(len(s))
	}
	return n
}

func appendDeaths(dst []byte, h *xdeath.History) []byte {
	for _, s := range []string{h.FirstQueue, h.FirstReason, h.FirstExchange, h.LastQueue, h.LastReason, h.LastExchange} {
		dst = appendString(dst, s)
	}
	dst = binary.AppendUvarint(dst, uint64(len(h.Deaths)))
	for _, d := range h.Deaths {
		dst = appendString(dst, d.Queue)
		dst = appendString(dst, d.Reason)
		dst = appendString(dst, d.Exchange)
		dst = appendStrings(dst, d.Keys)
		dst = binary.AppendUvarint(dst, uint64(d.Count))
		dst = binary.AppendVarint(dst, d.Time.UnixMilli())
		dst = appendString(dst, d.OriginalExpiration)
	}
	return dst
}

func sizeOfDeaths(h *xdeath.History) int {
	n := sizeOf(len(h.FirstQueue)) + sizeOf(len(h.FirstReason)) + sizeOf(len(h.FirstExchange)) +
		sizeOf(len(h.LastQueue)) + sizeOf(len(h.LastReason)) + sizeOf(len(h.LastExchange)) + uvarintSize(uint64(len(h.Deaths)))
	for i := range h.Deaths {
		d := &h.Deaths[i]
		at := d.Time.UnixMilli()
		n += sizeOf(len(d.Queue)) + sizeOf(len(d.Reason)) + sizeOf(len(d.Exchange)) + sizeOfStrings(d.Keys) +
			uvarintSize(uint64(d.Count)) + uvarintSize(uint64(at<<1^at>>63)) + sizeOf(len(d.OriginalExpiration))
	}
	return n
}

func appendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}

// Decode reads what AppendTo wrote. The message shares no memory with b.
func Decode(b []byte) (*Message, error) {
	d := decoder{rest: append([]byte(nil), b...)}
	flags, m := d.byte(), &Message{Expiration: NoExpiration, Priority: NoPriority}
	if priority := d.byte(); flags&flagPriority != 0 {
		m.Priority = int(priority)
	}
	m.Persistent = flags&flagPersistent != 0
	m.Exchange = string(d.bytes())
	m.Keys = d.strings()
	m.BCC = d.strings()
	m.Properties = d.bytes()
	m.Body = d.bytes()
	if flags&flagExpiration != 0 {
		m.Expiration = time.Duration(d.uvarint()) * time.Millisecond
	}
	if flags&flagDeaths != 0 {
		m.Deaths = d.deaths()
	}
	if flags&flagCounts != 0 {
		m.Returns, m.Failures = uint32(d.uvarint()), uint32(d.uvarint())
	}
	if d.failed || len(d.rest) != 0 || len(m.Keys) == 0 {
		return nil, ErrEncoding
	}
	return m, nil
}

// decoder reads fields off the front of rest; after a failure all it gives is empty.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) fail() { d.rest, d.failed = nil, true }

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

// count reads the length of a list whose elements take a byte at least.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) strings() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = string(d.bytes())
	}
	return list
}

func (d *decoder) deaths() *xdeath.History {
	h := &xdeath.History{}
	for _, s := range []*string{&h.FirstQueue, &h.FirstReason, &h.FirstExchange, &h.LastQueue, &h.LastReason, &h.LastExchange} {
		*s = string(d.bytes())
	}
	for range d.count() {
		h.Deaths = append(h.Deaths, xdeath.Death{
			Queue:              string(d.bytes()),
			Reason:             string(d.bytes()),
			Exchange:           string(d.bytes()),
			Keys:               d.strings(),
			Count:              int64(d.uvarint()),
			Time:               time.UnixMilli(d.varint()),
			OriginalExpiration: string(d.bytes()),
		})
	}
	return h
}
