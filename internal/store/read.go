package store

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"
)

// reader returns the engine for reading, until release is called.
func (s *Store) reader() (e *engine, release func(), err error) {
	s.engine.RLock()
	if e := s.engine.current; e == nil || e.closed {
		err := s.engine.err
		if e != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, e.guard.failure())
		}
		s.engine.RUnlock()
		return nil, nil, err
	}
	return s.engine.current, s.engine.RUnlock, nil
}

// Scan calls fn with the records of q whose sequence number is from or greater, in order, at most limit of them (0 is all), until fn
// returns an error, which Scan returns. mark is nil for a record without one. Both slices are valid during the call only.
//
// Scan reads what is written, that is at least each record whose Put is Committed and that was not removed. A record may be seen a
// moment before it is confirmed. fn must not call the store. When Scan comes upon damage, it waits until that is mended and goes on behind
// what is lost. Other errors are ErrDamaged (that cannot be mended), ErrUnavailable and ErrClosed.
func (s *Store) Scan(q QueueID, from uint64, limit int, fn func(seq uint64, record, mark []byte) error) error {
	for n := 0; limit == 0 || n < limit; {
		e, err := s.scan(q, from, limit-n, func(seq uint64, record, mark []byte) error {
			n++
			from = seq + 1
			return fn(seq, record, mark)
		})
		if e == nil || !errors.Is(err, ErrDamaged) || !s.mended(e) {
			return err
		}
	}
	return nil
}

// scan is Scan on one engine, which it returns if it was reading that failed.
func (s *Store) scan(q QueueID, from uint64, limit int, fn func(seq uint64, record, mark []byte) error) (*engine, error) {
	e, release, err := s.reader()
	if err != nil {
		return nil, err
	}
	defer release()

	s.states.RLock()
	head, transient := uint64(0), uint64(0)
	if st := s.states.byID[q]; st != nil {
		head, transient = st.now.head, st.now.TransientMessages
	}
	s.states.RUnlock()

	durable := openCursor(e, spaceDurable, q, span{max(from, head), maxSeq})
	defer durable.close()
	lower := durable
	durable.next()
	var other *cursor
	if transient > 0 {
		other = openCursor(e, spaceTransient, q, span{from, maxSeq})
		defer other.close()
		other.next()
	}
	for n := 0; limit <= 0 || n < limit; n++ {
		lower = durable
		if other != nil && other.valid && (!durable.valid || other.seq < durable.seq) {
			lower = other
		}
		if err := errors.Join(durable.err(), other.err()); err != nil {
			return e, s.readFailed(e, err) // one of them may have been next
		}
		if !lower.valid {
			break
		}
		record, err := lower.record()
		if err != nil {
			return e, s.readFailed(e, err)
		}
		if err := fn(lower.seq, record, lower.mark()); err != nil {
			return nil, err
		}
		lower.next()
	}
	return nil, nil
}

// readFailed says why a read failed: an engine that has failed cannot be believed.
func (s *Store) readFailed(e *engine, err error) error {
	if failure := e.guard.failure(); failure != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, failure)
	}
	return fmt.Errorf("read %s: %w", s.dir, err)
}

// Definitions returns the committed definitions whose key begins with prefix, in the order of their keys. The values are the caller's.
func (s *Store) Definitions(prefix string) (iter.Seq2[string, []byte], error) {
	e, release, err := s.reader()
	if err != nil {
		return nil, err
	}
	defer release()
	var keys []string
	var values [][]byte
	err = e.each(append([]byte{spaceDefinition}, prefix...), func(key, value []byte) error {
		keys = append(keys, string(key[1:]))
		values = append(values, bytes.Clone(value))
		return nil
	})
	if err != nil {
		return nil, s.readFailed(e, err)
	}
	return func(yield func(string, []byte) bool) {
		for i, key := range keys {
			if !yield(key, values[i]) {
				return
			}
		}
	}, nil
}

// each calls fn with each key that begins with prefix, and its value.
func (e *engine) each(prefix []byte, fn func(key, value []byte) error) error {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return readError(err)
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return readError(err)
		}
		if err := fn(it.Key(), value); err != nil {
			return err
		}
	}
	return readError(it.Error())
}

// eachRecordKey calls fn with the key of each record and mark of q in r.
func (e *engine) eachRecordKey(space byte, q QueueID, r span, fn func(key []byte)) error {
	it, err := e.recordIterator(space, q, r)
	if err != nil {
		return readError(err)
	}
	for it.First(); it.Valid(); it.Next() {
		fn(it.Key())
	}
	return readError(it.Close())
}

func (e *engine) recordIterator(space byte, q QueueID, r span) (*pebble.Iterator, error) {
	return e.db.NewIter(&pebble.IterOptions{
		LowerBound: appendRecordKey(nil, space, q, r.lo, partMark),
		UpperBound: appendRecordKey(nil, space, q, r.hi, partMark),
	})
}

// prefixEnd is the first key after all that begin with prefix.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// cursor reads the records of a queue, in order.
type cursor struct {
	it      *pebble.Iterator
	failed  error
	started bool
	valid   bool
	seq     uint64

	marked  bool // markSeq has a mark
	markSeq uint64
	buffer  []byte
}

// openCursor returns a cursor before the first record of q in r.
func openCursor(e *engine, space byte, q QueueID, r span) *cursor {
	c := &cursor{}
	if r.empty() {
		return c
	}
	c.it, c.failed = e.recordIterator(space, q, r)
	return c
}

// next moves to the next record and reports whether there is one.
func (c *cursor) next() bool {
	c.valid = false
	if c.it == nil || c.failed != nil {
		return false
	}
	for {
		ok := false
		if c.started {
			ok = c.it.Next()
		} else {
			ok, c.started = c.it.First(), true
		}
		if !ok {
			c.failed = readError(c.it.Error())
			return false
		}
		_, seq, part := splitRecordKey(c.it.Key())
		if part == partRecord {
			c.seq, c.valid = seq, true
			return true
		}
		mark, err := c.it.ValueAndErr()
		if err != nil {
			c.failed = readError(err)
			return false
		}
		c.marked, c.markSeq, c.buffer = true, seq, append(c.buffer[:0], mark...)
	}
}

func (c *cursor) record() ([]byte, error) {
	value, err := c.it.ValueAndErr()
	return value, readError(err)
}

// size is the length of the record, which need not be read for it.
func (c *cursor) size() int {
	v := c.it.LazyValue()
	return v.Len()
}

func (c *cursor) mark() []byte {
	if c.marked && c.markSeq == c.seq {
		return c.buffer
	}
	return nil
}

func (c *cursor) err() error {
	if c == nil {
		return nil
	}
	return c.failed
}

func (c *cursor) close() error {
	if c.it == nil {
		return c.failed
	}
	err := c.it.Close()
	if c.failed != nil {
		return c.failed
	}
	return readError(err)
}
