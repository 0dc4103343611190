package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// write writes g as one batch, syncs it if its operations or the policy ask for it, and makes its counters those that readers see.
func (s *Store) write(g *group) error {
	e := s.engine.current
	if err := e.guard.failure(); err != nil {
		return err
	}
	w := batchWriter{s: s, e: e, g: g, b: e.batch}
	if err := w.encode(); err != nil {
		return err
	}
	if !w.b.Empty() {
		binary.BigEndian.PutUint64(w.set([]byte{spaceGroup}, 8), g.number)
		err := e.db.Apply(w.b, s.syncFor(w.durable))
		if failure := e.guard.failure(); failure != nil {
			return failure
		}
		if err != nil {
			return err
		}
		w.b.Reset()
		s.committer.written = g.number
	}
	s.publish()
	g.written()
	s.trim()
	return nil
}

// syncFor says whether a batch is synced. Of what is not durable anyway, it never is.
func (s *Store) syncFor(durable bool) *pebble.WriteOptions {
	switch {
	case !durable, s.sync == SyncNever:
		return pebble.NoSync
	case s.sync == SyncInterval:
		if s.committer.unsynced.IsZero() {
			s.committer.unsynced = time.Now()
		}
		if time.Since(s.committer.unsynced) < s.tuning.sync {
			return pebble.NoSync
		}
		s.committer.unsynced = time.Time{}
	}
	return pebble.Sync
}

// syncNow syncs what was not under SyncInterval. If that fails, the engine's failure says so.
func (s *Store) syncNow() {
	s.committer.unsynced = time.Time{}
	if err := s.engine.current.db.LogData(nil, pebble.Sync); err != nil {
		s.engine.current.guard.fail(err)
	}
}

// written tells the puts of g that they are on disk.
func (g *group) written() {
	for i := range g.ops {
		if p := g.ops[i].put; p != nil && !p.cancelled {
			p.record = nil
			p.committed.Store(true)
		}
	}
}

// touch returns the state of q with next set up for g.
func (s *Store) touch(q QueueID, g *group) *queueState {
	c := &s.committer
	if c.last != nil && c.last.id == q {
		return c.last
	}
	st := s.states.byID[q]
	if st == nil {
		st = &queueState{id: q}
		s.states.Lock()
		s.states.byID[q] = st
		s.states.Unlock()
	}
	if st.group != g.number {
		st.group, st.next, st.dropped = g.number, st.now, false
		c.touched = append(c.touched, st)
	}
	c.last = st
	return st
}

// publish makes next the current counters of all queues touched.
func (s *Store) publish() {
	c := &s.committer
	s.states.Lock()
	for _, st := range c.touched {
		st.now = st.next
		if st.dropped {
			delete(s.states.byID, st.id)
		}
	}
	s.states.Unlock()
	c.last = nil
}

// trim looks for the first record of those queues touched last from which more than trimAfter records were removed since the last time, and
// deletes the range below: readers then pass it at once, and Pebble drops whole tables without reading them. It is not synced, since nothing
// depends on it.
func (s *Store) trim() {
	for _, st := range s.committer.touched {
		if st.removed < s.tuning.trimAfter || st.dropped {
			continue
		}
		st.removed = 0
		head := st.now.NextSeq
		if st.now.Messages > 0 {
			first := openCursor(s.engine.current, spaceDurable, st.id, span{st.now.head, maxSeq})
			if first.next() {
				head = first.seq
			}
			if first.close() != nil {
				continue
			}
		}
		if head > st.trimmed {
			s.engine.current.deleteRange(spaceDurable, st.id, span{st.trimmed, head})
			st.trimmed = head
		}
		s.states.Lock()
		st.now.head = max(st.now.head, head)
		s.states.Unlock()
	}
}

// batchWriter encodes a group.
type batchWriter struct {
	s       *Store
	e       *engine
	g       *group
	b       *pebble.Batch
	durable bool // the batch has something that must be synced
	key     [recordKeyLen]byte
	end     [recordKeyLen]byte
}

// set adds a Set and returns the value to fill.
func (w *batchWriter) set(key []byte, size int) []byte {
	d := w.b.SetDeferred(len(key), size)
	copy(d.Key, key)
	_ = d.Finish() // fails for indexed batches only
	return d.Value
}

func (w *batchWriter) recordKey(space byte, q QueueID, seq uint64, part byte) []byte {
	return appendRecordKey(w.key[:0], space, q, seq, part)
}

// deleteSpan deletes the records and marks of q in r.
func (w *batchWriter) deleteSpan(space byte, q QueueID, r span) {
	_ = w.b.DeleteRange(w.recordKey(space, q, r.lo, partMark), appendRecordKey(w.end[:0], space, q, r.hi, partMark), nil)
}

// encode fills the batch with g's operations and the counters that follow from them. It may run again for the same group, on another engine.
func (w *batchWriter) encode() error {
	w.b.Reset()
	w.s.committer.touched = w.s.committer.touched[:0]
	w.s.committer.last = nil
	for q, upTo := range w.g.delivered {
		next := &w.s.touch(q, w.g).next
		next.Delivered = max(next.Delivered, upTo)
		next.NextSeq = max(next.NextSeq, upTo+1)
	}
	for i := range w.g.ops {
		o := &w.g.ops[i]
		var err error
		switch o.kind {
		case opPut:
			w.put(o)
		case opRemove:
			err = w.remove(o)
		case opMark:
			w.mark(o)
		case opSet:
			copy(w.set(append([]byte{spaceDefinition}, o.more.key...), len(o.more.value)), o.more.value)
			w.durable = true
		case opDelete:
			_ = w.b.Delete(append([]byte{spaceDefinition}, o.more.key...), nil)
			w.durable = true
		case opDrop:
			err = w.drop(o, i)
		case opPurge:
			err = w.purge(o, i)
		}
		if err != nil {
			return err
		}
	}
	for _, st := range w.s.committer.touched {
		w.counters(st)
	}
	return nil
}

func (w *batchWriter) put(o *op) {
	if o.put.cancelled {
		return
	}
	value := w.set(w.recordKey(o.space, o.q, o.seq, partRecord), int(o.size))
	if got := o.put.record.AppendTo(value[:0]); len(got) != len(value) || len(got) > 0 && &got[0] != &value[0] {
		panic(fmt.Sprintf("store: record %d/%d has %d bytes, its Size was %d", o.q, o.seq, len(got), len(value)))
	}
	st := w.s.touch(o.q, w.g)
	st.dropped = false
	st.next.add(o.space, o.seq, uint64(o.size))
	if o.space == spaceTransient {
		st.transient.add(o.seq)
	} else {
		w.durable = true
	}
}

func (w *batchWriter) remove(o *op) error {
	st := w.s.touch(o.q, w.g)
	if st.dropped {
		return nil
	}
	w.findSpace(st, o)
	if o.space == spaceTransient && !st.transient.has(o.seq) {
		o.kind = opNone // lost when the disk failed
		return nil
	}
	key := w.recordKey(o.space, o.q, o.seq, partRecord)
	if !o.known || w.s.committer.doubt {
		size, err := w.sizeOf(key)
		if errors.Is(err, pebble.ErrNotFound) {
			o.kind = opNone
			return nil
		}
		if err != nil {
			return err
		}
		o.known, o.size = true, uint32(size)
	}
	_ = w.b.SingleDelete(key, nil)
	if st.next.marksOf(o.space).contains(o.seq) {
		_ = w.b.Delete(w.recordKey(o.space, o.q, o.seq, partMark), nil)
	}
	st.next.take(o.space, 1, uint64(o.size))
	if o.space == spaceTransient {
		st.transient.remove(o.seq)
	} else {
		st.removed++
		w.durable = true
	}
	return nil
}

// findSpace finds out whether an operation that was given a sequence number only is about a transient record.
func (w *batchWriter) findSpace(st *queueState, o *op) {
	if o.space == 0 {
		o.space = spaceOf(st.transient.has(o.seq))
	}
}

// sizeOf looks up the size of a record. The size of a damaged one counts as 0: it must still be possible to remove it.
func (w *batchWriter) sizeOf(key []byte) (int, error) {
	value, closer, err := w.e.db.Get(key)
	if err != nil {
		return 0, w.tolerate(readError(err))
	}
	return len(value), closer.Close()
}

func (w *batchWriter) mark(o *op) {
	st := w.s.touch(o.q, w.g)
	if st.dropped {
		return
	}
	w.findSpace(st, o)
	if o.space == spaceDurable && o.seq < st.next.head {
		return // there is no such record
	}
	copy(w.set(w.recordKey(o.space, o.q, o.seq, partMark), len(o.more.value)), o.more.value)
	marks := st.next.marksOf(o.space)
	*marks = marks.extended(o.seq)
	w.durable = w.durable || o.space == spaceDurable
}

// dropMarksBelow drops the marks of sequence numbers below head. There are no records, but some marks may be left of records that
// vanished, or that were set after the removal.
func (w *batchWriter) dropMarksBelow(st *queueState, space byte, head uint64) {
	marks := st.next.marksOf(space)
	if marks.empty() || marks.lo >= head {
		return
	}
	w.deleteSpan(space, st.id, span{marks.lo, min(marks.hi, head)})
	if marks.lo = head; marks.empty() {
		*marks = span{} // so that equal states compare equal
	}
}

// counters finishes a queue: it drops marks that were left behind, and writes the counters if they changed.
func (w *batchWriter) counters(st *queueState) {
	key := appendCounterKey(w.key[:0], st.id)
	if st.dropped {
		if st.onDisk {
			_ = w.b.Delete(key, nil)
			w.durable = true
		}
		return
	}
	if st.next.Messages == 0 {
		st.next.head = st.next.NextSeq
		w.dropMarksBelow(st, spaceDurable, maxSeq)
	} else {
		w.dropMarksBelow(st, spaceDurable, st.next.head)
	}
	if st.next.TransientMessages == 0 {
		w.dropMarksBelow(st, spaceTransient, maxSeq)
	}
	if st.next.durable() == st.now.durable() && st.onDisk {
		return
	}
	if st.next.durable() == (tally{}) && !st.onDisk {
		return
	}
	var value [8 * binary.MaxVarintLen64]byte
	b := st.next.appendTo(value[:0])
	copy(w.set(appendCounterKey(w.key[:0], st.id), len(b)), b)
	st.onDisk = true
	w.durable = w.durable || st.next.Delivered != st.now.Delivered
}
