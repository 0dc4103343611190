package store

import (
	"context"
	"slices"
	"sync/atomic"
)

// Record is the content of one record. The store encodes it if and when its group is written, in the committer's goroutine;
// it must not change before.
type Record interface {
	// AppendTo appends the encoded record to dst. It appends exactly Size bytes.
	AppendTo(dst []byte) []byte
	Size() int
}

// Waiter is told when a unit of work is durable.
type Waiter interface {
	// Committed is called once per Tx.Commit, in the order of the commits, in the committer's goroutine; after Close, by Commit itself.
	// It must not block, nor call Begin. tag is the one given to Commit. After ErrUnavailable the unit of work is still pending, and
	// becomes durable when the disk takes writes again, if the process lives that long. After ErrClosed it does not.
	Committed(tag uint64, err error)
}

// Put is a record handed to a Tx. Keep it for Tx.Remove as long as the record has not been read back from the store.
type Put struct {
	size      uint32
	transient bool
	committed atomic.Bool

	// Under Store.mu until the group is sealed; the committer's from then on.
	record    Record // nil once it is written, or removed
	group     uint64 // 0 until its Tx has ended
	cancelled bool   // removed before it was sealed, so never written

	removed bool // under Store.mu
}

// Committed reports whether the record has been written, and so can be read by Scan. A record that was removed before is never written.
func (p *Put) Committed() bool { return p.committed.Load() }

// Tx is a unit of work: what is added between Begin and Commit, Wait or End becomes durable as a whole or not at all. The sequence of
// operations is that in which the units of work end, and within one that of its calls.
//
// A Tx belongs to one goroutine; it must end exactly once, and must not be used after it ended. An open Tx holds no lock.
type Tx struct {
	s        *Store
	ops      []op
	notified []waiting
}

type opKind uint8

const (
	opNone opKind = iota
	opPut
	opRemove
	opMark
	opDelivered
	opSet
	opDelete
	opDrop
	opPurge
)

// op is one operation of a Tx or a group.
type op struct {
	kind  opKind
	space byte   // spaceDurable or spaceTransient; 0: the committer finds out
	known bool   // size is known; otherwise the committer looks it up
	size  uint32 // of the record that is put or removed
	q     QueueID
	seq   uint64
	put   *Put
	more  *opDetail
}

// opDetail is what only the rarer operations need.
type opDetail struct {
	to    uint64 // end of a purge
	known amount // what it removes, if op.known
	key   string // of a definition
	value []byte // of a definition or a mark
}

// Begin opens a unit of work. It blocks while too much waits to be written (more than MaxPending bytes), so do not call it while holding a
// lock that a Waiter takes. After Close it returns a Tx that does nothing and whose waiters are told ErrClosed.
func (s *Store) Begin() *Tx {
	if s.full.Load() {
		s.awaitRoom()
	}
	return s.txs.Get().(*Tx)
}

// Put adds a record. seq must be new in q. A transient record need not survive: it waits for no sync, and the next Open drops it.
func (t *Tx) Put(q QueueID, seq uint64, r Record, transient bool) *Put {
	p := &Put{record: r, size: uint32(r.Size()), transient: transient}
	t.ops = append(t.ops, op{kind: opPut, space: spaceOf(transient), known: true, size: p.size, q: q, seq: seq, put: p})
	return p
}

// Remove removes a record and its mark. p is what Put returned, or nil for a record that was read by Scan; then RemoveScanned is
// faster. If p still waits in the open group, both vanish and are never written. Removing a record twice is an error of the caller.
func (t *Tx) Remove(q QueueID, seq uint64, p *Put) {
	t.ops = append(t.ops, op{kind: opRemove, q: q, seq: seq, put: p})
}

// RemoveScanned is Remove for a record that was read by Scan; size is the length of what Scan gave. The store need not look it up.
func (t *Tx) RemoveScanned(q QueueID, seq uint64, size int) {
	t.ops = append(t.ops, op{kind: opRemove, known: true, size: uint32(size), q: q, seq: seq})
}

// Mark sets the mark of a record: a small mutable state beside it. It replaces the mark before, and goes with the record. m is copied.
func (t *Tx) Mark(q QueueID, seq uint64, m []byte) {
	t.ops = append(t.ops, op{kind: opMark, q: q, seq: seq, more: &opDetail{value: slices.Clone(m)}})
}

// Delivered raises the high-water mark of delivered sequence numbers of q to upTo, if it is higher than before. It is written with
// the next group that has something to write, or a quarter of a second later.
func (t *Tx) Delivered(q QueueID, upTo uint64) {
	if n := len(t.ops); n > 0 && t.ops[n-1].kind == opDelivered && t.ops[n-1].q == q {
		t.ops[n-1].seq = max(t.ops[n-1].seq, upTo)
		return
	}
	t.ops = append(t.ops, op{kind: opDelivered, q: q, seq: upTo})
}

// SetDefinition sets the definition of key. value is copied.
func (t *Tx) SetDefinition(key string, value []byte) {
	t.ops = append(t.ops, op{kind: opSet, more: &opDetail{key: key, value: slices.Clone(value)}})
}

// DeleteDefinition deletes the definition of key, if there is one.
func (t *Tx) DeleteDefinition(key string) {
	t.ops = append(t.ops, op{kind: opDelete, more: &opDetail{key: key}})
}

// DropQueue removes all records, marks and counters of q. q must not be used again.
func (t *Tx) DropQueue(q QueueID) {
	t.ops = append(t.ops, op{kind: opDrop, q: q})
}

// Purge removes the records of q with from <= seq < to, and their marks. A record that still waits in the open group counts as written
// before; do not Remove it as well. The cost is that of counting what is purged, or what is not, whichever is less.
func (t *Tx) Purge(q QueueID, from, to uint64) {
	if from < to {
		t.ops = append(t.ops, op{kind: opPurge, q: q, seq: from, more: &opDetail{to: to}})
	}
}

// PurgeKnown is Purge for a range of which the caller knows how many durable records it has and the sum of their sizes. It costs the
// same however many they are.
func (t *Tx) PurgeKnown(q QueueID, from, to, messages, bytes uint64) {
	if from < to {
		t.ops = append(t.ops, op{kind: opPurge, known: true, q: q, seq: from, more: &opDetail{to: to, known: amount{messages, bytes}}})
	}
}

// Notify has w told with tag as well when the unit of work is durable, before the one that is given to Commit. Of calls with
// the same w in a row only the last counts.
func (t *Tx) Notify(w Waiter, tag uint64) {
	if n := len(t.notified); n > 0 && t.notified[n-1].w == w {
		t.notified[n-1].tag = tag
		return
	}
	t.notified = append(t.notified, waiting{w, tag})
}

// End ends the unit of work; nobody is told but by Notify.
func (t *Tx) End() { t.s.finish(t, waiting{}) }

// Commit ends the unit of work; w is told with tag when it, and all that ended before it, is durable. That holds for a unit of work without
// operations too, so the order of confirms is that of commits.
func (t *Tx) Commit(w Waiter, tag uint64) { t.s.finish(t, waiting{w, tag}) }

// Wait ends the unit of work and waits until it is durable. When ctx ends first, it returns the context's error and the unit of
// work goes its way.
func (t *Tx) Wait(ctx context.Context) error {
	done := make(waitChannel, 1)
	t.Commit(done, 0)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type waitChannel chan error

func (c waitChannel) Committed(_ uint64, err error) { c <- err }

func spaceOf(transient bool) byte {
	if transient {
		return spaceTransient
	}
	return spaceDurable
}
