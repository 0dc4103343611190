package queue

import "container/heap"

// returns are the messages that came back. A classic queue delivers them in their old
// places; a quorum queue in the order of their return, ahead of all others.
type returns struct {
	ahead bool
	fifo  ring      // if ahead
	heap  entryHeap // if not
	bytes int64
}

func newReturns(s Settings) returns { return returns{ahead: s.Type == Quorum} }

func (r *returns) len() int { return r.fifo.len() + len(r.heap) }

func (r *returns) push(e *Entry) {
	r.bytes += e.weight()
	if r.ahead {
		r.fifo.pushBack(e)
		return
	}
	heap.Push(&r.heap, e)
}

func (r *returns) peek() *Entry {
	switch {
	case r.fifo.len() > 0:
		return r.fifo.at(0)
	case len(r.heap) > 0:
		return r.heap[0]
	}
	return nil
}

func (r *returns) pop() *Entry {
	var e *Entry
	if r.fifo.len() > 0 {
		e = r.fifo.popFront()
	} else {
		e = heap.Pop(&r.heap).(*Entry)
	}
	r.bytes -= e.weight()
	return e
}

func (r *returns) clear() []*Entry {
	all := make([]*Entry, 0, r.len())
	for r.len() > 0 {
		all = append(all, r.pop())
	}
	return all
}

// entryHeap has the highest priority first, and within one the oldest.
type entryHeap []*Entry

func (h entryHeap) Len() int { return len(h) }
func (h entryHeap) Less(i, j int) bool {
	if h[i].level != h[j].level {
		return h[i].level.id > h[j].level.id
	}
	return h[i].seq < h[j].seq
}
func (h entryHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *entryHeap) Push(x any)   { *h = append(*h, x.(*Entry)) }
func (h *entryHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
