package queue

import (
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

// refuses tells whether e is one too many for a queue that rejects what is. Dead
// letters that no queue has taken yet count too, as do delayed messages.
//
// A classic queue is exact. A quorum queue takes one more than its limit, and then
// nothing until it is down to four fifths of it, as RabbitMQ's does.
func (q *Queue) refuses(e *Entry) bool {
	s := &q.settings
	if s.Overflow == DropHead {
		return false
	}
	length, size := int64(len(q.outbox)+len(q.held))+q.length(), q.size()
	if s.Type == Classic {
		return s.MaxLength != Unlimited && length+1 > s.MaxLength || s.MaxBytes != Unlimited && size+e.weight() > s.MaxBytes
	}
	over := func(n, limit int64) bool {
		if q.full {
			limit = limit * 4 / 5
		}
		return n > limit
	}
	q.full = s.MaxLength != Unlimited && over(length, s.MaxLength) || s.MaxBytes != Unlimited && over(size, s.MaxBytes)
	return q.full
}

// length and size are what counts for the limits.
func (q *Queue) length() int64 { return int64(q.ready() + len(q.delays.heap)) }
func (q *Queue) size() int64   { return q.readyBytes() + q.delays.bytes }

// dropHead drops the oldest messages until the queue is within its limits.
// Source: https://www.rabbitmq.com/docs/maxlength.
func (q *Queue) dropHead(tx *store.Tx, now time.Time) {
	s := &q.settings
	for s.MaxLength != Unlimited && q.length() > s.MaxLength || s.MaxBytes != Unlimited && q.size() > s.MaxBytes {
		e := q.peek()
		if e == nil {
			return
		}
		q.pop(e)
		q.bury(tx, e, reasonMaxLength, now)
	}
}
