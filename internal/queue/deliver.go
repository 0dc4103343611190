package queue

import (
	"errors"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

// pump gives ready messages to the consumers that wait for them.
func (q *Queue) pump(tx *store.Tx, now time.Time) {
	for len(q.line) > 0 {
		c := q.line[0]
		if !c.hasCredit() {
			q.line.leave(c)
			continue
		}
		e := q.peekLive(tx, now)
		if e == nil {
			return
		}
		if !c.Sink.Deliver(c, q.delivery(e, q.ready()-1)) {
			q.line.leave(c)
			continue
		}
		q.pop(e)
		q.served.delivered(e, c.NoAck)
		q.handOut(tx, e, c, now)
		q.line.served()
	}
}

func (q *Queue) delivery(e *Entry, remaining int) Delivery {
	d := Delivery{Queue: q, Entry: e, Message: e.msg, Redelivered: e.redelivered, Remaining: remaining}
	if q.settings.Type == Quorum {
		d.Counts = message.Counts{Returns: e.returns, Failures: e.failures}
		if e.returns == 0 {
			d.Counts.Returns = e.msg.Returns // what it brought along is told until it comes back here: RabbitMQ 4.3
		}
	}
	return d
}

// handOut records that e has been delivered to c.
func (q *Queue) handOut(tx *store.Tx, e *Entry, c *Consumer, now time.Time) {
	if c.NoAck {
		q.remove(tx, e)
		return
	}
	e.consumer = c
	q.unacked++
	q.lent += e.weight()
	c.unacked++
	if q.settings.Type == Quorum {
		q.watch(e, c, now)
	}
	if e.stored {
		tx.Delivered(e.level.id, e.seq)
	}
}

// peekLive returns the next message that is to be delivered, after dropping those at
// its front that have expired. A message that expires this very moment may still go
// to a consumer that waits, which is what a TTL of zero means.
func (q *Queue) peekLive(tx *store.Tx, now time.Time) *Entry {
	for {
		e := q.peek()
		if e == nil || !e.expired(now.Add(-1)) {
			return e
		}
		q.pop(e)
		q.bury(tx, e, reasonExpired, now)
	}
}

// peek returns the next message in order: what came back, then by priority. In a
// classic queue a returned message takes its old place.
func (q *Queue) peek() *Entry {
	back := q.returned.peek()
	if back != nil && q.returned.ahead {
		return back
	}
	for _, b := range q.levels {
		if back != nil && back.level == b && (b.head.len() == 0 || back.seq < b.head.at(0).seq) {
			return back
		}
		e, err := b.peek()
		if err != nil {
			q.unreadable(err)
			return nil
		}
		if e != nil {
			return e
		}
	}
	return back
}

// unreadableIf says that messages cannot be read if err is not nil.
func (q *Queue) unreadableIf(err error) {
	if err != nil {
		q.unreadable(err)
	}
}

// unreadable says that messages cannot be read, unless that is because the broker stops,
// and has that tried again.
func (q *Queue) unreadable(err error) {
	if errors.Is(err, store.ErrClosed) || q.readAgain != 0 {
		return
	}
	q.log.Error("cannot read the messages of a queue from the data folder", "queue", q.name, "error", err)
	q.readAgain = q.clock.Now().Add(readAgainAfter).UnixNano()
}

// readAgainAfter is when a queue that could not be read is tried again.
const readAgainAfter = time.Second

func (q *Queue) pop(e *Entry) {
	if q.returned.peek() == e {
		q.returned.pop()
		return
	}
	e.level.pop()
}

// Get takes one message, without a subscription. by is who gets it, used for this call
// only: with NoAck the message is done at once; else Sink, if there is one, has TimedOut
// called if the message is not settled in time. The second result is false if there is
// no message.
func (q *Queue) Get(by *Consumer) (Delivery, bool) {
	now := q.clock.Now()
	tx := q.store.Begin()
	q.mu.Lock()
	e := q.peekLive(tx, now.Add(1))
	var d Delivery
	if e != nil {
		q.pop(e)
		d = q.delivery(e, q.ready())
		q.served.got(e, by.NoAck)
		q.handOut(tx, e, by, now)
	} else {
		q.served.GetEmpty++
	}
	q.expire(tx, now)
	q.mu.Unlock()
	tx.End()
	q.Touch()
	q.Settle()
	return d, e != nil
}
