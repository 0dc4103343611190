package stream

import (
	"encoding/binary"
	"math/bits"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

// record is one message of a stream.
type record struct {
	offset uint64
	at     int64 // when it arrived, Unix milliseconds
	msg    *message.Message
	put    *store.Put // nil if it was read from disk
}

// AppendTo appends what the store keeps: when the message arrived, and the message.
func (r *record) AppendTo(dst []byte) []byte {
	return r.msg.AppendTo(binary.AppendUvarint(dst, uint64(r.at)))
}

// Size is the length of that.
func (r *record) Size() int { return (bits.Len64(uint64(r.at)|1)+6)/7 + r.msg.EncodedSize() }

func decodeTime(b []byte) (at int64, rest []byte, err error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, message.ErrEncoding
	}
	return int64(v), b[n:], nil
}

func decodeRecord(offset uint64, b []byte) (*record, error) {
	at, rest, err := decodeTime(b)
	if err != nil {
		return nil, err
	}
	m, err := message.Decode(rest)
	if err != nil {
		return nil, err
	}
	return &record{offset: offset, at: at, msg: m}, nil
}
