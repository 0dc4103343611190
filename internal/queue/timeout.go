package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

// A message of a quorum queue that stays unacknowledged for too long lapses: it comes
// back as a returned one, and its consumer gets no more until it has settled all that
// have lapsed with it. What the client says of a lapsed delivery then means no more than
// that: the message is another's by now.
// Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout, RabbitMQ 4.3.

// outstanding is the unacknowledged messages of one consumer, the next to lapse first.
type outstanding struct{ first, last *Entry }

// add puts e in its place, which is the last one unless a timeout has become shorter.
func (o *outstanding) add(e *Entry) {
	before := o.last
	for before != nil && before.due > e.due {
		before = before.before
	}
	e.before = before
	if before == nil {
		e.after, o.first = o.first, e
	} else {
		e.after, before.after = before.after, e
	}
	if e.after == nil {
		o.last = e
	} else {
		e.after.before = e
	}
}

func (o *outstanding) remove(e *Entry) {
	if e.before == nil {
		o.first = e.after
	} else {
		e.before.after = e.after
	}
	if e.after == nil {
		o.last = e.before
	} else {
		e.after.before = e.before
	}
	e.before, e.after, e.due = nil, nil, 0
}

// watch lets e lapse if c keeps it for too long.
func (q *Queue) watch(e *Entry, c *Consumer, now time.Time) {
	e.due = now.Add(q.patience(c)).UnixNano()
	c.out.add(e)
	q.holders[c] = struct{}{}
	if q.lapseAt == 0 || e.due < q.lapseAt {
		q.armLapse(e.due)
	}
}

// patience is how long c may keep a message.
func (q *Queue) patience(c *Consumer) time.Duration {
	if c.Timeout != nil {
		return *c.Timeout
	}
	if c.queue == nil {
		return q.settings.ConsumerTimeout
	}
	return c.timeout
}

// unwatch is the end of watching e.
func (q *Queue) unwatch(e *Entry) {
	c := e.consumer
	c.out.remove(e)
	if c.queue == nil && c.out.first == nil {
		delete(q.holders, c)
	}
}

func (q *Queue) armLapse(at int64) {
	q.lapseAt = at
	if q.lapse == nil {
		q.lapse = q.clock.AfterFunc(q.lapseDue)
	}
	q.lapse.Reset(time.Unix(0, at))
}

// lapseDue is what the timer calls when a message may have been out for too long. Most
// that it was set for have been settled by then, so it looks what is next.
func (q *Queue) lapseDue() {
	q.change(func(tx *store.Tx, now time.Time) {
		q.lapseAt = 0
		var late []*Consumer
		for c := range q.holders {
			if c.out.first != nil && c.out.first.due <= now.UnixNano() {
				late = append(late, c)
			}
		}
		slices.SortFunc(late, func(a, b *Consumer) int {
			x, y := a.out.first, b.out.first
			return cmp.Or(cmp.Compare(x.due, y.due), cmp.Compare(x.seq, y.seq))
		})
		for _, c := range late {
			q.lapsed(tx, c, now)
		}
		next := int64(0)
		for c := range q.holders {
			if e := c.out.first; e != nil && (next == 0 || e.due < next) {
				next = e.due
			}
		}
		if next != 0 {
			q.armLapse(next)
		}
	})
}

// lapsed takes back what c has kept for too long.
func (q *Queue) lapsed(tx *store.Tx, c *Consumer, now time.Time) {
	for c.out.first != nil && c.out.first.due <= now.UnixNano() {
		e := c.out.first
		q.unwatch(e)
		q.unacked--
		q.lent -= e.weight()
		c.unacked--
		c.lapsed++
		back := *e
		e.lapsed = true
		q.cameBack(&back, false)
		q.giveBack(tx, &back, now, false)
	}
	q.line.leave(c)
	if q.active == c {
		q.active = nil
		q.elect()
	}
	if c.Sink != nil {
		c.Sink.TimedOut(c)
	}
}

// settleLapsed is what is left to do when a client settles a delivery that has lapsed.
func (q *Queue) settleLapsed(e *Entry) {
	c := e.consumer
	if c.lapsed--; c.lapsed > 0 {
		return
	}
	q.elect()
	q.resume(c)
}
