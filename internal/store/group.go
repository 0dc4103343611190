package store

import "slices"

// urgency says how soon an open group is to be sealed.
type urgency uint8

const (
	urgencyNone urgency = iota
	urgencySoft         // nothing but delivered marks
	urgencyLazy         // something to write, nobody waits
	urgencyNow          // somebody waits, or there is a lot
)

// A group that nobody waits for is sealed when it has this many operations or bytes.
const (
	lazyMaxOps   = 16 << 10
	lazyMaxBytes = 1 << 20
)

// group is what is written together.
type group struct {
	number    uint64
	ops       []op
	live      int // ops without puts that were removed again
	bytes     int // of live puts
	delivered map[QueueID]uint64
	waiters   []waiting
	urgency   urgency
}

type waiting struct {
	w   Waiter
	tag uint64
}

// finish ends t: its operations go into the open group.
func (s *Store) finish(t *Tx, w waiting) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		tell(t.notified, ErrClosed)
		s.recycle(t)
		if w.w != nil {
			w.w.Committed(w.tag, ErrClosed)
		}
		return
	}
	g := s.open
	for i := range t.ops {
		g.add(&t.ops[i])
	}
	u := g.urgencyNow()
	g.waiters = append(g.waiters, t.notified...)
	if w.w != nil {
		g.waiters = append(g.waiters, w)
	}
	if w.w != nil || len(t.notified) > 0 {
		u = urgencyNow
	}
	wake := u > g.urgency
	if wake {
		g.urgency = u
	}
	s.noteRoom()
	s.mu.Unlock()

	if wake {
		s.awaken()
	}
	s.recycle(t)
}

func (s *Store) recycle(t *Tx) {
	clear(t.ops)
	t.ops = t.ops[:0]
	clear(t.notified)
	t.notified = t.notified[:0]
	if cap(t.ops) > 1024 {
		t.ops = nil
	}
	s.txs.Put(t)
}

func (g *group) add(o *op) {
	switch o.kind {
	case opPut:
		if o.put.cancelled {
			return
		}
		o.put.group = g.number
		g.bytes += int(o.size)
	case opRemove:
		if p := o.put; p != nil {
			if p.removed {
				return
			}
			p.removed = true
			if p.group == 0 || p.group == g.number {
				g.cancel(p)
				return
			}
			o.put, o.space, o.known, o.size = nil, spaceOf(p.transient), true, p.size
		}
	case opDelivered:
		if g.delivered == nil {
			g.delivered = make(map[QueueID]uint64)
		}
		g.delivered[o.q] = max(g.delivered[o.q], o.seq)
		return
	}
	g.ops = append(g.ops, *o)
	g.live++
}

// cancel takes back a put that is not sealed yet.
func (g *group) cancel(p *Put) {
	p.cancelled, p.record = true, nil
	if p.group == 0 {
		return
	}
	g.bytes -= int(p.size)
	g.live--
	if len(g.ops) > 1024 && g.live < len(g.ops)/2 {
		g.ops = slices.DeleteFunc(g.ops, func(o op) bool { return o.kind == opPut && o.put.cancelled })
	}
}

func (g *group) urgencyNow() urgency {
	switch {
	case g.live > lazyMaxOps || g.bytes > lazyMaxBytes:
		return urgencyNow
	case g.live > 0:
		return urgencyLazy
	case len(g.delivered) > 0:
		return urgencySoft
	}
	return urgencyNone
}

// size estimates the memory that g holds.
func (g *group) size() int {
	const perOp, perWaiter = 128, 24
	return g.bytes + perOp*len(g.ops) + perWaiter*len(g.waiters)
}

// reset empties g for reuse under another number.
func (g *group) reset(number uint64) {
	clear(g.ops)
	clear(g.waiters)
	clear(g.delivered)
	const keep = 64 << 10
	if cap(g.ops) > keep {
		g.ops = nil
	}
	if cap(g.waiters) > keep {
		g.waiters = nil
	}
	*g = group{number: number, ops: g.ops[:0], delivered: g.delivered, waiters: g.waiters[:0]}
}
