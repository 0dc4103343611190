package queue

import (
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

// remove ends e.
func (q *Queue) remove(tx *store.Tx, e *Entry) {
	switch {
	case !e.stored:
		return
	case e.put == nil:
		tx.RemoveScanned(e.level.id, e.seq, e.loaded)
	default:
		tx.Remove(e.level.id, e.seq, e.put)
	}
	e.stored = false
}

// release takes e from the unacknowledged ones. It returns false if e is none of them
// any more.
func (q *Queue) release(e *Entry) bool {
	if e.lapsed {
		q.settleLapsed(e)
		return false
	}
	if e.due != 0 {
		q.unwatch(e)
	}
	q.unacked--
	q.lent -= e.weight()
	e.consumer.unacked--
	q.elect()
	q.resume(e.consumer)
	return true
}

// Ack ends entries that have been delivered, each once, as a part of tx. Call Settle once
// tx has ended, also after Reject and Requeue.
func (q *Queue) Ack(tx *store.Tx, entries ...*Entry) {
	q.changeIn(tx, func(time.Time) {
		q.served.Ack += uint64(len(entries))
		for _, e := range entries {
			if q.release(e) {
				q.remove(tx, e)
			}
		}
	})
}

// Reject ends entries that have been delivered and dead-letters them. failed tells
// whether that counts as a failed delivery (basic.reject) or not (basic.nack).
func (q *Queue) Reject(tx *store.Tx, failed bool, entries ...*Entry) {
	q.changeIn(tx, func(now time.Time) {
		for _, e := range entries {
			if q.release(e) {
				q.cameBack(e, failed)
				q.bury(tx, e, reasonRejected, now)
			}
		}
	})
}

// Requeue gives entries back that have been delivered. failed tells whether that
// counts as a failed delivery (basic.reject, a lost channel) or not (basic.nack,
// basic.recover). Source: the table of RabbitMQ 4.3 in
// https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling.
func (q *Queue) Requeue(tx *store.Tx, failed bool, entries ...*Entry) {
	q.changeIn(tx, func(now time.Time) {
		for _, e := range entries {
			if q.release(e) {
				q.cameBack(e, failed)
				q.giveBack(tx, e, now, failed)
			}
		}
		if q.settings.Type == Quorum {
			q.pump(tx, now) // what a consumer takes at once is not dropped
		}
		if q.settings.Overflow == DropHead {
			q.dropHead(tx, now)
		}
	})
}

// cameBack counts that e came back from a consumer. A classic queue counts failures
// only, and tells them to nobody but the queue that e is dead-lettered to.
func (q *Queue) cameBack(e *Entry, failed bool) {
	e.consumer = nil
	e.redelivered = true
	if failed {
		e.failures++
	}
	if failed || q.settings.Type == Quorum {
		e.returns++
	}
}

// giveBack puts e among the returned messages, at once or after a delay.
func (q *Queue) giveBack(tx *store.Tx, e *Entry, now time.Time, failed bool) {
	if limit := q.settings.DeliveryLimit; limit >= 0 && int64(e.failures) > limit {
		q.bury(tx, e, reasonDeliveryLimit, now)
		return
	}
	if delay := q.settings.Retry.delay(failed, e.failures); delay > 0 {
		e.due = now.Add(delay).UnixNano()
		q.delays.push(e)
		q.armDelays()
	} else {
		q.returned.push(e)
	}
	if e.stored {
		tx.Mark(e.level.id, e.seq, e.mark())
	}
}
