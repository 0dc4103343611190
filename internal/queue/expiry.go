package queue

import (
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

// expiryDue is what the timer calls when a message at a head may have expired.
func (q *Queue) expiryDue() {
	q.mu.Lock()
	q.expiryAt, q.readAgain = 0, 0
	q.mu.Unlock()
	q.change(func(*store.Tx, time.Time) {})
}

// expireLimit is how many messages end at most in one unit of work.
const expireLimit = 8 << 10

// expire dead-letters what has expired at the heads, and sets the timer for the next.
// Only there: a message behind one that has not expired waits for it.
// Source: https://www.rabbitmq.com/docs/ttl#per-message-ttl-caveats.
//
// What has expired stays where it is while the outbox is full, so that a backlog which
// expires at one moment is not read into memory as a whole: publishDead goes on with it.
func (q *Queue) expire(tx *store.Tx, now time.Time) {
	q.overdue = false
	for n := 0; ; n++ {
		e := q.soonest()
		switch {
		case e == nil || !e.expired(now) || n == expireLimit:
			q.armFor(e)
			return
		case len(q.outbox) >= outboxLimit:
			q.overdue = true
			q.armFor(nil)
			return
		}
		q.pop(e)
		q.bury(tx, e, reasonExpired, now)
	}
}

// armFor sets the timer for the expiry of e, which may be nil.
func (q *Queue) armFor(e *Entry) {
	at := int64(0)
	if e != nil {
		at = e.expires
	}
	if q.readAgain != 0 && (at == 0 || q.readAgain < at) {
		at = q.readAgain
	}
	if at == q.expiryAt {
		return
	}
	q.expiryAt = at
	if at == 0 {
		q.expiry.Stop()
		return
	}
	q.expiry.Reset(time.Unix(0, at))
}

// soonest returns that of the messages at a head which expires first, nil if none
// does. A classic queue has one head: what it would deliver next. A quorum queue has
// one for each priority and one for what came back, as RabbitMQ since 4.3.
func (q *Queue) soonest() *Entry {
	if q.settings.Type == Classic {
		if e := q.peek(); e != nil && e.expires != 0 {
			return e
		}
		return nil
	}
	var first *Entry
	consider := func(e *Entry) {
		if e != nil && e.expires != 0 && (first == nil || e.expires < first.expires) {
			first = e
		}
	}
	consider(q.returned.peek())
	for _, b := range q.levels {
		e, err := b.peek()
		if err != nil {
			q.unreadable(err)
			continue
		}
		consider(e)
	}
	return first
}

// Declared says that the queue has been declared again, also passively. That is a use
// of a classic queue, not of a quorum queue: RabbitMQ does not renew the latter's lease.
func (q *Queue) Declared() {
	if q.Settings().Type == Classic {
		q.Touch()
	}
}

// Touch says that the queue is in use: its Expires runs from now.
func (q *Queue) Touch() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used = q.clock.Now()
	q.armIdle()
}

// armIdle sets the timer of an unused queue that is to expire.
func (q *Queue) armIdle() {
	switch {
	case !q.deleted && len(q.consumers) == 0 && q.settings.Expires != Unlimited:
		if q.idle == nil {
			q.idle = q.clock.AfterFunc(q.idleDue)
		}
		q.idle.Reset(q.used.Add(q.settings.Expires))
	case q.idle != nil:
		q.idle.Stop()
	}
}

// idleDue is what the timer calls when the queue may have been unused for long enough.
func (q *Queue) idleDue() {
	q.mu.Lock()
	due := len(q.consumers) == 0 && q.settings.Expires != Unlimited && !q.clock.Now().Before(q.used.Add(q.settings.Expires))
	q.mu.Unlock()
	if due {
		q.host.Expired(q)
	}
}
