package queue

import (
	"errors"
	"slices"
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

// ErrExclusiveUse is returned by Consume if an exclusive consumer is there, or the
// new one would be exclusive and is not the first, or the queue has a single active one.
var ErrExclusiveUse = errors.New("queue: in exclusive use")

// maxQuorumPrefetch is the most messages that a consumer of a quorum queue has
// unacknowledged if it sets no limit itself. Source: RabbitMQ.
const maxQuorumPrefetch = 2000

// Consume adds a consumer and begins to deliver to it.
func (q *Queue) Consume(c *Consumer) error {
	err := ErrDeleted
	q.change(func(*store.Tx, time.Time) {
		if q.settings.Type == Classic { // a quorum queue ignores it
			alone := c.Exclusive || len(q.consumers) > 0 && q.consumers[0].Exclusive
			if alone && (len(q.consumers) > 0 || q.settings.SingleActiveConsumer) {
				err = ErrExclusiveUse
				return
			}
		}
		err = nil
		c.queue = q
		if c.limit = c.Prefetch; c.limit == 0 && q.settings.Type == Quorum {
			c.limit = maxQuorumPrefetch
		}
		c.timeout = q.settings.ConsumerTimeout
		q.consumers = append(q.consumers, c)
		q.elect()
		q.resume(c)
	})
	if err == nil {
		q.Touch()
	}
	return err
}

// Cancel removes a consumer; what it has unacknowledged it keeps. It returns whether
// that was the queue's last consumer, false too if it was none of its consumers.
func (q *Queue) Cancel(c *Consumer) (last bool) {
	q.change(func(*store.Tx, time.Time) {
		i := slices.Index(q.consumers, c)
		if i < 0 {
			return
		}
		q.consumers = slices.Delete(q.consumers, i, i+1)
		q.line.leave(c)
		last = len(q.consumers) == 0
		if q.active == c {
			q.active = nil
		}
		q.elect()
		c.queue = nil
		if c.out.first == nil {
			delete(q.holders, c)
		}
	})
	q.Touch()
	return last
}

// Resume says that a consumer whose Sink has refused a delivery can take one again.
func (q *Queue) Resume(c *Consumer) {
	q.change(func(*store.Tx, time.Time) { q.resume(c) })
}

func (q *Queue) resume(c *Consumer) {
	if c.queue == Source(q) && c.hasCredit() && (!q.settings.SingleActiveConsumer || q.active == c && q.heir == nil) {
		q.line.join(c)
	}
}
