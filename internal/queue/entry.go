package queue

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

// Entry is a message's place in one queue. A Sink keeps it with the delivery tag and
// gives it back to Ack, Reject or Requeue.
type Entry struct {
	msg     *message.Message
	level   *backlog
	seq     uint64     // position; the returned messages of a classic queue go back to it
	expires int64      // Unix nanoseconds, 0 for never
	put     *store.Put // nil if it was read from disk or never stored
	stored  bool       // there is a record of it in the store
	loaded  int        // length of the record if it was read from disk

	consumer    *Consumer // who has it unacknowledged
	lapsed      bool      // was out for too long: another entry has its place
	redelivered bool
	returns     uint32
	failures    uint32

	due           int64  // Unix nanoseconds of when it lapses, or its delay is over; 0 for never
	before, after *Entry // by that, of those that the consumer has
}

// weight is what counts for x-max-length-bytes: the body, and in a quorum queue of RabbitMQ 4.3 the properties as
// they are encoded.
func (e *Entry) weight() int64 {
	n := len(e.msg.Body)
	if e.level.countsProperties {
		n += len(e.msg.Properties)
	}
	return int64(n)
}

func (e *Entry) expired(now time.Time) bool {
	return e.expires != 0 && e.expires <= now.UnixNano()
}

// AppendTo appends the record that the store keeps: when it expires, then the message.
// It reads only what never changes, since the store calls it later.
func (e *Entry) AppendTo(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.expires))
	return e.msg.AppendTo(dst)
}

// Size is the length of the record.
func (e *Entry) Size() int {
	return (bits.Len64(uint64(e.expires)|1)+6)/7 + e.msg.EncodedSize()
}

// mark is the part of an entry that changes while it is stored: its counts, and when
// its delay is over if it has one.
func (e *Entry) mark() []byte {
	b := binary.AppendUvarint(nil, uint64(e.returns))
	b = binary.AppendUvarint(b, uint64(e.failures))
	if e.due != 0 {
		b = binary.AppendUvarint(b, uint64(e.due))
	}
	return b
}

func (e *Entry) readMark(b []byte) {
	returns, n := binary.Uvarint(b)
	if n <= 0 {
		return
	}
	b = b[n:]
	failures, n := binary.Uvarint(b)
	if n <= 0 {
		return
	}
	e.redelivered, e.returns, e.failures = true, uint32(returns), uint32(failures)
	if due, n := binary.Uvarint(b[n:]); n > 0 {
		e.due = int64(due)
	}
}

func decodeEntry(b []byte) (*Entry, error) {
	expires, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, message.ErrEncoding
	}
	m, err := message.Decode(b[n:])
	if err != nil {
		return nil, err
	}
	return &Entry{
		msg: m, expires: int64(expires), stored: true, loaded: len(b),
		failures: m.Failures,
	}, nil
}

// CheckRecord tells whether a record of a queue in the store can be read.
func CheckRecord(record []byte) error {
	_, err := decodeEntry(record)
	return err
}
