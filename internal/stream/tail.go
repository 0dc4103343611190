package stream

const (
	// tailMessages and tailBytes are how much of what is written stays in memory.
	tailMessages = 2048
	tailBytes    = 8 << 20
)

// tail is the newest records of a stream, with offsets that follow one another: all that
// may not be written yet, and some more.
type tail struct {
	list     []*record
	bytes    int
	unread   int // the first of list that was not seen to be written
	messages int // most that are written and kept
}

// first is the offset of the oldest record in memory; next is what it is if there is none.
func (t *tail) first(next uint64) uint64 {
	if len(t.list) == 0 {
		return next
	}
	return t.list[0].offset
}

func (t *tail) push(r *record) {
	t.list = append(t.list, r)
	t.bytes += r.msg.Memory()
	t.trim()
}

// written looks for the end of what is written, and returns the offset behind it; next is
// that if everything is.
func (t *tail) written(next uint64) uint64 {
	for t.unread < len(t.list) && t.list[t.unread].put.Committed() {
		t.unread++
	}
	t.trim()
	if t.unread < len(t.list) {
		return t.list[t.unread].offset
	}
	return next
}

// trim lets go of what is written and more than enough.
func (t *tail) trim() {
	for t.unread > 0 && (len(t.list) > t.messages || t.bytes > tailBytes) {
		t.pop()
	}
}

// dropBelow lets go of what retention has removed, all of which is written.
func (t *tail) dropBelow(first uint64) {
	for t.unread > 0 && t.list[0].offset < first {
		t.pop()
	}
}

func (t *tail) pop() {
	t.bytes -= t.list[0].msg.Memory()
	t.list[0] = nil
	t.list = t.list[1:]
	t.unread--
}

// from returns the records from an offset on that is not below first.
func (t *tail) from(offset uint64) []*record {
	return t.list[offset-t.list[0].offset:]
}
