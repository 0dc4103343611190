package queue

import (
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

// Configure puts settings that policies have changed in the place of those in effect.
// What a queue is made with stays: its Type, Durable, priorities and
// SingleActiveConsumer.
//
// Messages that are in the queue keep their expiry. Limits hold at once,
// also when a classic queue stops dropping in the same moment. An Expires runs
// from now in a classic queue, from the last use in a quorum queue. When a queue
// ceases to dead-letter at least once, what no queue has taken yet is dropped.
// All of that is what RabbitMQ 4.3 does.
func (q *Queue) Configure(s Settings) {
	q.change(func(tx *store.Tx, now time.Time) {
		old := q.settings
		q.settings = s
		if old.AtLeastOnce && !s.AtLeastOnce {
			q.forgetDead(tx)
		}
		classic := s.Type == Classic
		if s.Overflow == DropHead || classic && old.Overflow == DropHead {
			q.dropHead(tx, now)
		}
		if classic {
			q.used = now
		}
		q.armIdle()
	})
}
