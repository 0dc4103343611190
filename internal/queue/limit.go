package queue

import (
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

// refuses tells whether e is one too many for a queue that rejects what is. Dead
// letters that no queue has taken yet count too.
//
// A classic queue is exact. A quorum queue takes one more than its limit, and then
// nothing until it is down to four fifths of it, as RabbitMQ's does.
func (q *Queue) refuses(e *Entry) bool {
	s := &q.settings
	if s.Overflow == DropHead {
		return false
	}
	length, size := int64(q.ready()+len(q.outbox)+len(q.held)), q.readyBytes()
	if s.Type == Classic {
		return s.MaxLength != Unlimited && length+1 > s.MaxLength || s.MaxBytes != Unlimited && size+e.bodySize() > s.MaxBytes
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

// dropHead drops the oldest messages until the queue is within its limits.
// Source: https://www.rabbitmq.com/docs/maxlength.
func (q *Queue) dropHead(tx *store.Tx, now time.Time) {
	s := &q.settings
	for s.MaxLength != Unlimited && int64(q.ready()) > s.MaxLength || s.MaxBytes != Unlimited && q.readyBytes() > s.MaxBytes {
		e := q.peek()
		if e == nil {
			return
		}
		q.pop(e)
		q.bury(tx, e, reasonMaxLength, now)
	}
}
