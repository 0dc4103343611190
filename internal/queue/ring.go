package queue

// ring is a double-ended queue of entries in a slice that wraps around.
type ring struct {
	slots []*Entry // length is zero or a power of two
	first int
	n     int
}

func (r *ring) len() int { return r.n }

func (r *ring) at(i int) *Entry { return r.slots[(r.first+i)&(len(r.slots)-1)] }

func (r *ring) pushBack(e *Entry) {
	r.grow()
	r.slots[(r.first+r.n)&(len(r.slots)-1)] = e
	r.n++
}

func (r *ring) popFront() *Entry {
	e := r.slots[r.first]
	r.slots[r.first] = nil
	r.first = (r.first + 1) & (len(r.slots) - 1)
	if r.n--; r.n == 0 && len(r.slots) > 1024 {
		*r = ring{}
	}
	return e
}

func (r *ring) grow() {
	if r.n < len(r.slots) {
		return
	}
	slots := make([]*Entry, max(16, 2*len(r.slots)))
	for i := range r.n {
		slots[i] = r.at(i)
	}
	r.slots, r.first = slots, 0
}
