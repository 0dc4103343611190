package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// load takes over from e what the committer and the readers need to know: the number of the last group, and the counters. before is what
// they knew until now, in a process that goes on after a failure, or nil.
func (s *Store) load(e *engine, before map[QueueID]*queueState) error {
	written, err := e.lastGroup()
	if err != nil {
		return err
	}
	byID := make(map[QueueID]*queueState)
	err = e.each([]byte{spaceCounters}, func(key, value []byte) error {
		if len(key) != counterKeyLen {
			return fmt.Errorf("counter key of %d bytes: %w", len(key), ErrDamaged)
		}
		q := QueueID(binary.BigEndian.Uint64(key[1:]))
		now, err := parseTally(value)
		if err != nil {
			return fmt.Errorf("queue %d: %w", q, err)
		}
		byID[q] = &queueState{id: q, now: now, onDisk: true, trimmed: now.head}
		return nil
	})
	if err != nil {
		return err
	}
	if err := e.loadTransient(byID, before); err != nil {
		return err
	}
	s.committer.written = written
	s.committer.touched, s.committer.last = nil, nil
	s.states.Lock()
	s.states.byID = byID
	s.states.Unlock()
	return nil
}

// loadTransient takes over the transient records. They were not synced: some may be missing, and some may be back that had been
// removed. The latter are removed again.
func (e *engine) loadTransient(byID, before map[QueueID]*queueState) error {
	back := e.db.NewBatch()
	defer back.Close()
	err := e.each([]byte{spaceTransient}, func(key, value []byte) error {
		if len(key) != recordKeyLen {
			return fmt.Errorf("record key of %d bytes: %w", len(key), ErrDamaged)
		}
		q, seq, part := splitRecordKey(key)
		if old := before[q]; old == nil || !old.transient.has(seq) {
			return back.Delete(key, nil)
		}
		st := byID[q]
		if st == nil {
			st = &queueState{id: q}
			byID[q] = st
		}
		if part == partMark {
			st.now.transientMarks = st.now.transientMarks.extended(seq)
			return nil
		}
		st.now.add(spaceTransient, seq, uint64(len(value)))
		st.transient.add(seq)
		return nil
	})
	if err != nil || back.Empty() {
		return err
	}
	if err := e.db.Apply(back, pebble.NoSync); err != nil {
		return err
	}
	return e.guard.failure()
}

func (e *engine) lastGroup() (uint64, error) {
	value, closer, err := e.db.Get([]byte{spaceGroup})
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, readError(err)
	}
	defer closer.Close()
	if len(value) != 8 {
		return 0, fmt.Errorf("group number of %d bytes: %w", len(value), ErrDamaged)
	}
	return binary.BigEndian.Uint64(value), nil
}

// dropTransient removes the transient records that an earlier process left.
func (e *engine) dropTransient() error {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceTransient}, UpperBound: []byte{spaceTransient + 1}})
	if err != nil {
		return readError(err)
	}
	found := it.First()
	if err := it.Close(); err != nil {
		return readError(err)
	}
	if found {
		if err := e.db.DeleteRange([]byte{spaceTransient}, []byte{spaceTransient + 1}, pebble.NoSync); err != nil {
			return err
		}
	}
	return e.guard.failure()
}
