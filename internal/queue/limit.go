package queue

import (
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

// wouldOverflow tells whether e is one too many. Dead letters that no queue has taken
// yet count too.
func (q *Queue) wouldOverflow(e *Entry) bool {
	s := &q.settings
	return s.MaxLength != Unlimited && int64(q.ready()+len(q.outbox)+len(q.held)+1) > s.MaxLength ||
		s.MaxBytes != Unlimited && q.readyBytes()+e.bodySize() > s.MaxBytes
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
