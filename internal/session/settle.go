package session

import (
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// verdict is what a client says of a message that it got.
type verdict int

const (
	acked         verdict = iota
	nackedRequeue         // basic.nack does not count as a failed delivery,
	nackedDiscard         // basic.reject does: RabbitMQ 4.3
	rejectedRequeue
	rejectedDiscard
)

func nacked(requeue bool) verdict {
	if requeue {
		return nackedRequeue
	}
	return nackedDiscard
}

func rejected(requeue bool) verdict {
	if requeue {
		return rejectedRequeue
	}
	return rejectedDiscard
}

// settle applies a verdict to the message with that tag, or to all up to it. The tag
// 0 means all there are, but only with multiple.
func (ch *channel) settle(tag uint64, multiple bool, v verdict) error {
	c := ch.conn
	list := c.settling[:0]
	known := true
	c.mu.Lock()
	if tag == 0 && multiple {
		list = ch.unacked.takeAll(list)
	} else {
		list, known = ch.unacked.take(list, tag, multiple)
	}
	c.mu.Unlock()
	if !known {
		return wire.Errorf(wire.PreconditionFailed, "unknown delivery tag %d", tag)
	}
	if ch.transaction != nil {
		ch.transaction.settle(v, list)
		return nil
	}
	c.apply(v, list)
	ch.resumeHeld()
	clear(list)
	c.settling = list[:0]
	return nil
}

// apply tells the queues.
func (c *conn) apply(v verdict, list []unacked) {
	c.eachQueue(list, func(q *queue.Queue, entries []*queue.Entry) {
		switch v {
		case acked:
			q.Ack(entries...)
		case nackedRequeue:
			q.Requeue(false, entries...)
		case nackedDiscard:
			q.Reject(false, entries...)
		case rejectedRequeue:
			q.Requeue(true, entries...)
		case rejectedDiscard:
			q.Reject(true, entries...)
		}
	})
}

// eachQueue calls f for each queue with the entries of list that are the queue's, in
// order. It uses list up.
func (c *conn) eachQueue(list []unacked, f func(*queue.Queue, []*queue.Entry)) {
	for len(list) > 0 {
		q, entries, others := list[0].queue, c.entries[:0], list[:0]
		for _, u := range list {
			if u.queue == q {
				entries = append(entries, u.entry)
			} else {
				others = append(others, u)
			}
		}
		list = others
		f(q, entries)
		clear(entries)
		c.entries = entries[:0]
	}
}

// recover gives all unacknowledged messages back to their queues.
func (ch *channel) recover(requeue bool) error {
	if !requeue {
		return wire.Errorf(wire.NotImplemented, "requeue=false")
	}
	ch.conn.mu.Lock()
	list := ch.unacked.takeAll(nil)
	ch.conn.mu.Unlock()
	ch.conn.apply(nackedRequeue, list)
	ch.resumeHeld()
	return nil
}
