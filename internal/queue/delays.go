package queue

import (
	"cmp"
	"container/heap"
	"errors"
	"time"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/store"
)

// delays are the messages of a quorum queue that came back and wait for their next
// delivery. They are not ready, but count for the limits and are purged with those that
// are. When their time has come they are returned messages.
type delays struct {
	heap  dueHeap
	bytes int64
	timer clock.Timer // nil until a message waits
}

func (d *delays) push(e *Entry) {
	d.bytes += e.weight()
	heap.Push(&d.heap, e)
}

// popDue takes the next message whose time has come, nil if there is none.
func (d *delays) popDue(now time.Time) *Entry {
	if len(d.heap) == 0 || d.heap[0].due > now.UnixNano() {
		return nil
	}
	e := heap.Pop(&d.heap).(*Entry)
	d.bytes -= e.weight()
	e.due = 0
	return e
}

func (d *delays) clear() []*Entry {
	all := d.heap
	d.heap, d.bytes = nil, 0
	return all
}

// armDelays sets the timer for the next message.
func (q *Queue) armDelays() {
	d := &q.delays
	if d.timer == nil {
		d.timer = q.clock.AfterFunc(q.delayDue)
	}
	if len(d.heap) == 0 {
		d.timer.Stop()
		return
	}
	d.timer.Reset(time.Unix(0, d.heap[0].due))
}

// delayDue is what the timer calls when the time of a message may have come.
func (q *Queue) delayDue() {
	q.change(func(_ *store.Tx, now time.Time) {
		for e := q.delays.popDue(now); e != nil; e = q.delays.popDue(now) {
			q.returned.push(e)
		}
		if len(q.delays.heap) > 0 {
			q.armDelays()
		}
	})
}

// recoverDelays finds the messages that waited before a restart and still do. They have
// been delivered before, so nothing else need be read; what else had been delivered stands
// at the head of its level, as if it had been read when it was needed.
func (q *Queue) recoverDelays() {
	now := q.clock.Now().UnixNano()
	for _, b := range q.levels {
		q.unreadableIf(b.refillDelivered(func(e *Entry) bool {
			if e.due <= now {
				e.due = 0
				return false
			}
			q.delays.push(e)
			return true
		}))
	}
	if len(q.delays.heap) > 0 {
		q.armDelays()
	}
}

// refillDelivered reads all messages that had been delivered before the restart to
// the head, but for those that taken takes.
func (b *backlog) refillDelivered(taken func(*Entry) bool) error {
	if b.disk == 0 || b.delivered == 0 {
		return nil
	}
	err := b.store.Scan(b.id, b.diskFrom, b.disk, func(seq uint64, record, mark []byte) error {
		if seq > b.delivered {
			return errEnough
		}
		if e := b.load(seq, record, mark); e != nil && !taken(e) {
			b.keep(e)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// dueHeap has the message first whose time comes first, and of several the oldest.
type dueHeap []*Entry

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].due, h[j].due), cmp.Compare(h[i].seq, h[j].seq)) < 0
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)   { *h = append(*h, x.(*Entry)) }
func (h *dueHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
