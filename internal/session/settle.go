package session

import (
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
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

// maxAcks is how many acks are gathered at most.
const maxAcks = 256

// ack settles the message with that tag, or all up to it. Acks that follow one
// another are gathered, as long as more has been read from the client, so that the
// queue is locked once for many: settleAcks tells it.
func (ch *channel) ack(tag uint64, multiple bool) error {
	if ch.transaction != nil {
		return ch.settle(tag, multiple, acked)
	}
	c := ch.conn
	if c.acksOf != ch || len(c.acks) >= maxAcks {
		c.settleAcks()
		c.acksOf = ch
	}
	var err error
	c.acks, err = ch.take(c.acks, tag, multiple, acked)
	return err
}

// settleAcks tells the queues of the acks that have been gathered. The reader calls it
// before it does anything else for the client, or waits.
func (c *conn) settleAcks() {
	if len(c.acks) == 0 {
		return
	}
	c.apply(acked, c.acks)
	c.acksOf.resumeHeld()
	clear(c.acks)
	c.acks = c.acks[:0]
}

// settle applies a verdict to the message with that tag, or to all up to it.
func (ch *channel) settle(tag uint64, multiple bool, v verdict) error {
	c := ch.conn
	list, err := ch.take(c.settling[:0], tag, multiple, v)
	if err != nil {
		return err
	}
	if ch.transaction != nil {
		ch.transaction.settle(v, list)
		ch.uncommitted.acks.Add(uint32(len(list)))
	} else {
		c.apply(v, list)
		ch.resumeHeld()
	}
	clear(list)
	c.settling = list[:0]
	return nil
}

// take appends to list the unacknowledged messages that a tag means: the one with that
// tag, or with multiple all up to it. The tag 0 means all there are, but only with
// multiple.
func (ch *channel) take(list []unacked, tag uint64, multiple bool, v verdict) ([]unacked, error) {
	ch.conn.mu.Lock()
	defer ch.conn.mu.Unlock()
	before := len(list)
	if tag == 0 && multiple {
		list = ch.unacked.takeAll(list)
	} else {
		var known bool
		if list, known = ch.unacked.take(list, tag, multiple); !known {
			return list, wire.Errorf(wire.PreconditionFailed, "unknown delivery tag %d", tag)
		}
	}
	if v == acked {
		ch.counts.Ack += uint64(len(list) - before)
	}
	return list, nil
}

// apply tells the queues, each in a unit of work of its own.
func (c *conn) apply(v verdict, list []unacked) {
	c.eachQueue(list, func(q queue.Source, entries []*queue.Entry) {
		tx := c.host.Begin()
		v.apply(tx, q, entries)
		tx.End()
		q.Settle()
	})
}

// apply tells a queue as a part of tx.
func (v verdict) apply(tx *store.Tx, q queue.Source, entries []*queue.Entry) {
	switch v {
	case acked:
		q.Ack(tx, entries...)
	case nackedRequeue:
		q.Requeue(tx, false, entries...)
	case nackedDiscard:
		q.Reject(tx, false, entries...)
	case rejectedRequeue:
		q.Requeue(tx, true, entries...)
	case rejectedDiscard:
		q.Reject(tx, true, entries...)
	}
}

// eachQueue calls f for each queue with the entries of list that are the queue's, in
// order. It uses list up.
func (c *conn) eachQueue(list []unacked, f func(queue.Source, []*queue.Entry)) {
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
