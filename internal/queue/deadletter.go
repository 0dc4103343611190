package queue

import (
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

const (
	// outboxBatch is how many dead letters move in one unit of work.
	outboxBatch = 256
	// outboxLimit is how many wait there before no more messages expire.
	outboxLimit = 4 * outboxBatch
	// maxHeld is how many dead letters that nobody takes an at-least-once queue holds
	// before it stands still, as in RabbitMQ.
	maxHeld = 32
	// heldRetry is how long until these are tried again. RabbitMQ waits three minutes.
	heldRetry = 10 * time.Second
)

// dead is a message that has left the ready and the unacknowledged ones and waits to
// be dead-lettered.
type dead struct {
	entry  *Entry
	reason string
	at     time.Time
}

// The reasons of a dead letter. Source: https://www.rabbitmq.com/docs/dlx.
const (
	reasonRejected      = "rejected"
	reasonExpired       = "expired"
	reasonMaxLength     = "maxlen"
	reasonDeliveryLimit = "delivery_limit"
)

// bury ends e: at once if the queue has no dead-letter exchange, else by way of the
// outbox.
func (q *Queue) bury(tx *store.Tx, e *Entry, reason string, now time.Time) {
	if q.settings.DeadLetterExchange == nil {
		q.remove(tx, e)
		return
	}
	q.outbox = append(q.outbox, dead{entry: e, reason: reason, at: now})
	q.dying.Store(true)
}

// Settle publishes the dead letters of the queue, if it has any, and those that this
// makes in other queues. Call it, holding no unit of work, after each call that may
// have made some.
func (q *Queue) Settle() {
	for q.dying.Load() {
		batch, to := q.takeDead()
		if batch == nil {
			return
		}
		for _, target := range q.publishDead(batch, to) {
			target.Settle()
		}
	}
}

// letterbox is where a queue's dead letters are published.
type letterbox struct {
	exchange   *string // nil if the queue has none any more
	routingKey *string
}

// takeDead gives the caller the next dead letters to publish, and where to. Until it
// has done so nobody else gets any, which keeps them in order.
func (q *Queue) takeDead() ([]dead, letterbox) {
	q.mu.Lock()
	defer q.mu.Unlock()
	to := letterbox{q.settings.DeadLetterExchange, q.settings.DeadLetterRoutingKey}
	if q.draining {
		return nil, to
	}
	n := min(len(q.outbox), outboxBatch)
	if q.settings.AtLeastOnce {
		n = min(n, maxHeld-len(q.held))
	}
	if n == 0 {
		q.dying.Store(false)
		return nil, to
	}
	batch := q.outbox[:n:n]
	q.outbox = q.outbox[n:]
	if len(q.outbox) == 0 {
		q.outbox = nil
	}
	q.draining = true
	return batch, to
}

// publishDead publishes dead letters and removes them here in one unit of work. It
// returns the queues that took some. What nobody takes is dropped, or held if the
// queue dead-letters at least once.
func (q *Queue) publishDead(batch []dead, to letterbox) (touched []Target) {
	tx := q.store.Begin()
	taken := make([]bool, len(batch))
	for i, d := range batch {
		if to.exchange == nil {
			break
		}
		m := d.entry.msg.DeadLetter(message.Death{
			Queue: q.name, Reason: d.reason, Time: d.at, Exchange: *to.exchange, RoutingKey: to.routingKey,
		})
		m.Returns, m.Failures = d.entry.failures, d.entry.failures // as RabbitMQ 4.3: other returns are forgotten
		var targets []Target
		targets, taken[i] = q.host.DeadLetter(tx, d.reason, m)
		touched = append(touched, targets...)
	}
	q.mu.Lock()
	q.draining = false
	if !q.deleted {
		for i, d := range batch {
			if taken[i] || !q.settings.AtLeastOnce {
				q.remove(tx, d.entry)
			} else {
				q.hold(d)
			}
		}
		if q.overdue {
			q.expire(tx, q.clock.Now())
		}
	}
	q.mu.Unlock()
	tx.End()
	return touched
}

// forgetDead drops the dead letters that no queue has taken yet and returns how many.
func (q *Queue) forgetDead(tx *store.Tx) int {
	n := len(q.outbox) + len(q.held)
	for _, list := range [][]dead{q.outbox, q.held} {
		for _, d := range list {
			q.remove(tx, d.entry)
		}
	}
	q.outbox, q.held = nil, nil
	q.retry.Stop()
	return n
}

func (q *Queue) hold(d dead) {
	if len(q.held) == 0 {
		q.log.Warn("no queue takes the dead letters of an at-least-once queue; they are held and tried again",
			"queue", q.name, "exchange", *q.settings.DeadLetterExchange, "every", heldRetry)
		q.retry.Reset(q.clock.Now().Add(heldRetry))
	}
	q.held = append(q.held, d)
}

// retryHeld tries the held dead letters again.
func (q *Queue) retryHeld() {
	q.mu.Lock()
	if !q.deleted {
		q.outbox = append(q.held, q.outbox...)
		q.held = nil
		q.dying.Store(true)
	}
	q.mu.Unlock()
	q.Settle()
}
