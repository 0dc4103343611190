package store

import (
	"encoding/binary"
	"fmt"
	"maps"
)

// Counters of one queue, exact as of the last committed group.
type Counters struct {
	Messages, Bytes uint64 // durable records, and the sum of their sizes

	TransientMessages, TransientBytes uint64 // transient records; zero after Open

	// NextSeq is greater than each sequence number of the queue that was ever written or marked as delivered. Numbering goes on from
	// here after a restart.
	NextSeq uint64

	// Delivered is the high-water mark set by Tx.Delivered.
	Delivered uint64
}

// span is a range of sequence numbers, lo included, hi not. It is empty when lo == hi.
type span struct{ lo, hi uint64 }

func (s span) empty() bool            { return s.lo >= s.hi }
func (s span) contains(n uint64) bool { return s.lo <= n && n < s.hi }
func (s span) extended(n uint64) span {
	if s.empty() {
		return span{n, n + 1}
	}
	return span{min(s.lo, n), max(s.hi, n+1)}
}

// tally is what the committer keeps of a queue. All but the transient part is on disk, under the queue's counter key, as uvarints:
// messages, bytes, next sequence number, delivered, head, and the marks' lo and hi.
type tally struct {
	Counters

	// head is not above the sequence number of any durable record: reading begins here, not among what was removed before.
	head uint64

	// marks covers each durable record that has a mark, transientMarks each transient one. A record outside is known to have none.
	marks, transientMarks span
}

func (t *tally) appendTo(dst []byte) []byte {
	for _, n := range [...]uint64{t.Messages, t.Bytes, t.NextSeq, t.Delivered, t.head, t.marks.lo, t.marks.hi} {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

func parseTally(b []byte) (tally, error) {
	var t tally
	for _, n := range [...]*uint64{&t.Messages, &t.Bytes, &t.NextSeq, &t.Delivered, &t.head, &t.marks.lo, &t.marks.hi} {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return tally{}, fmt.Errorf("counters end early: %w", ErrDamaged)
		}
		*n, b = v, b[size:]
	}
	if len(b) > 0 {
		return tally{}, fmt.Errorf("%d bytes after counters: %w", len(b), ErrDamaged)
	}
	return t, nil
}

// durable is t without what is not on disk, for comparison.
func (t tally) durable() tally {
	t.TransientMessages, t.TransientBytes, t.transientMarks = 0, 0, span{}
	return t
}

func (t *tally) add(space byte, seq, bytes uint64) {
	t.NextSeq = max(t.NextSeq, seq+1)
	if space == spaceTransient {
		t.TransientMessages++
		t.TransientBytes += bytes
		return
	}
	if t.Messages == 0 {
		t.head = seq
	}
	t.head = min(t.head, seq)
	t.Messages++
	t.Bytes += bytes
}

func (t *tally) take(space byte, n, bytes uint64) {
	messages, size := t.of(space)
	*messages -= min(*messages, n)
	*size -= min(*size, bytes)
}

func (t *tally) of(space byte) (messages, bytes *uint64) {
	if space == spaceTransient {
		return &t.TransientMessages, &t.TransientBytes
	}
	return &t.Messages, &t.Bytes
}

func (t *tally) marksOf(space byte) *span {
	if space == spaceTransient {
		return &t.transientMarks
	}
	return &t.marks
}

// queueState is what the store knows of one queue. It belongs to the committer; what readers look at, now and nothing else, changes
// under Store.states.
type queueState struct {
	id  QueueID
	now tally // as of the last committed group

	next    tally  // as of the group being written
	group   uint64 // the group that next belongs to
	dropped bool   // the group being written drops the queue

	onDisk    bool   // the queue has a counter key
	transient seqSet // which records are transient
	removed   uint64 // durable records removed since the last trim
	trimmed   uint64 // the end of what was trimmed
}

// Counters returns the counters of q; all are zero for a queue that has nothing.
func (s *Store) Counters(q QueueID) Counters {
	s.states.RLock()
	defer s.states.RUnlock()
	if st := s.states.byID[q]; st != nil {
		return st.now.Counters
	}
	return Counters{}
}

// Queues returns the counters of each queue that the store has anything of: records, or numbers to go on from.
func (s *Store) Queues() map[QueueID]Counters {
	s.states.RLock()
	defer s.states.RUnlock()
	all := make(map[QueueID]Counters, len(s.states.byID))
	for q, st := range maps.All(s.states.byID) {
		all[q] = st.now.Counters
	}
	return all
}
