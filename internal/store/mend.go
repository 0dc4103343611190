package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// damagedFolder is where damaged tables are kept, in the data folder.
const damagedFolder = "damaged"

// damage is the tables of one engine that have been found damaged. Reads and compactions report them.
type damage struct {
	mu     sync.Mutex
	tables map[string]keySpan // by path
	dealt  chan struct{}      // closed when the engine has been replaced, or will not be
	once   sync.Once
}

// end tells those who wait that nothing more is done about the damage in this engine.
func (d *damage) end() { d.once.Do(func() { close(d.dealt) }) }

func (d *damage) report(path string, bounds keySpan) (first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tables == nil {
		d.tables = map[string]keySpan{}
	}
	_, known := d.tables[path]
	d.tables[path] = bounds
	return !known
}

func (d *damage) found() map[string]keySpan {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.tables)
}

// mended waits until the committer has dealt with the damage of e, and reports whether it is worth while to read again.
func (s *Store) mended(e *engine) bool {
	if s.memory || len(e.damage.found()) == 0 {
		return false
	}
	<-e.damage.dealt
	s.engine.RLock()
	defer s.engine.RUnlock()
	return s.engine.current != nil && s.engine.current != e
}

// mend sets damaged tables aside, puts what can be read of them in their place, and goes on with a new engine and counters that are
// right again. Readers wait meanwhile. Only when definitions may be among what is lost does it refuse, and ends the engine as a failed
// write would: without them nobody knows whose the records are.
func (s *Store) mend() {
	s.engine.Lock()
	defer s.engine.Unlock()
	old := s.engine.current
	defer old.damage.end()
	e, err := s.replace(old)
	if err != nil {
		s.logger.Error("cannot mend the data folder", "folder", s.dir, "err", err)
		if errors.Is(err, ErrDamaged) {
			s.beyondRepair = err
		}
		old.guard.fail(err)
		return
	}
	s.engine.current = e
}

// replace opens an engine in place of one that has found damage.
func (s *Store) replace(old *engine) (*engine, error) {
	var lost []keySpan
	before := s.states.byID
	for {
		more, err := s.mendTables(old)
		if err != nil {
			return nil, err
		}
		lost = append(lost, more...)
		e, err := s.openEngine()
		if err != nil {
			return nil, err
		}
		err = s.recover(e, lost)
		if err == nil {
			return e, nil
		}
		if !errors.Is(err, ErrDamaged) || len(e.damage.found()) == 0 {
			return nil, errors.Join(err, e.close())
		}
		s.states.byID = before
		old = e // it came upon another damaged table
	}
}

// planMending mends, in memory only, the tables that an engine has found damaged.
func (s *Store) planMending(e *engine) (mended map[string]salvaged, lost []keySpan, err error) {
	tables := e.damage.found()
	mended = map[string]salvaged{}
	for _, path := range slices.Sorted(maps.Keys(tables)) {
		content, err := readFile(s.files, path)
		if err != nil {
			return nil, nil, err
		}
		r, err := mendTable([]byte(content), tables[path], e.options)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
		}
		mended[path] = r
		lost = append(lost, r.lost...)
	}
	for _, l := range lost {
		if l.intersects([]byte{spaceDefinition}) {
			return nil, nil, fmt.Errorf("%w: definitions of queues and exchanges may be among what cannot be read of %s; stop the broker and restore the folder from a copy",
				ErrDamaged, strings.Join(slices.Sorted(maps.Keys(tables)), ", "))
		}
	}
	return mended, lost, nil
}

// mendTables closes an engine and mends the tables that it has found damaged.
func (s *Store) mendTables(e *engine) (lost []keySpan, err error) {
	mended, lost, err := s.planMending(e)
	if err != nil {
		return nil, errors.Join(err, e.guard.failure())
	}
	if err := e.close(); err != nil {
		return nil, err
	}
	if err := e.guard.failure(); err != nil {
		return nil, err
	}
	for path, r := range mended {
		if err := s.setAside(path, r); err != nil {
			return nil, err
		}
	}
	return lost, nil
}

// setAside moves a damaged table to damagedFolder, beside a text that says what is lost, and puts another in its place.
func (s *Store) setAside(path string, r salvaged) error {
	folder := s.files.PathJoin(s.dir, damagedFolder)
	if err := s.files.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	aside := s.files.PathJoin(folder, filepath.Base(path))
	if err := s.files.Link(path, aside); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var text strings.Builder
	for _, l := range r.lost {
		fmt.Fprintln(&text, l)
	}
	if err := writeFile(s.files, aside+".lost", text.String()); err != nil {
		return err
	}
	if err := syncFolder(s.files, folder); err != nil {
		return err
	}
	if err := writeFile(s.files, path+".tmp", string(r.table)); err != nil {
		return err
	}
	if err := s.files.Rename(path+".tmp", path); err != nil {
		return err
	}
	if len(r.lost) == 0 {
		s.logger.Warn("a file of the data folder had a flipped bit, which was mended; nothing is lost. Check the disk and the memory of this machine",
			"file", path, "damaged", aside)
	} else {
		s.logger.Error("a part of the data folder is damaged and was set aside; all else is still there. Check the disk and the memory of this machine",
			"file", path, "damaged", aside, "lost", strings.TrimSpace(text.String()))
	}
	return syncFolder(s.files, s.dir)
}

// checkReadable reads what a broker cannot do without, and touches nothing. The error is ErrDamaged for a folder that is damaged beyond
// what mend can do.
func (s *Store) checkReadable() error {
	e, err := openEngine(s.dir, engineOptions{fs: s.files, lock: s.lock, logger: slog.New(slog.DiscardHandler), onFail: func() {}, block: s.tuning.block, readOnly: true})
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return nil // it was being made
	}
	if err != nil {
		return err
	}
	read := func([]byte, []byte) error { return nil }
	for _, space := range []byte{spaceDefinition, spaceCounters, spaceGroup} {
		if err = e.each([]byte{space}, read); err == nil {
			continue
		}
		if len(e.damage.found()) == 0 {
			break
		}
		if _, _, err = s.planMending(e); err != nil {
			break
		}
	}
	return errors.Join(err, e.close())
}

// recover loads what the committer knows from e, where some keys are lost, and counts again what they may have been counted in.
func (s *Store) recover(e *engine, lost []keySpan) error {
	before := s.states.byID
	if before == nil {
		if err := e.dropTransient(); err != nil {
			return err
		}
	}
	if err := s.load(e, before); err != nil {
		return err
	}
	uncounted := slices.ContainsFunc(lost, func(l keySpan) bool { return l.intersects([]byte{spaceCounters}) })
	if uncounted {
		if err := s.findQueues(e, before); err != nil {
			return err
		}
	}
	b := e.db.NewBatch()
	defer b.Close()
	for q, st := range s.states.byID {
		prefix := binary.BigEndian.AppendUint64([]byte{spaceDurable}, uint64(q))
		if !uncounted && !slices.ContainsFunc(lost, func(l keySpan) bool { return l.intersects(prefix) }) {
			continue
		}
		if err := st.recount(e); err != nil {
			return err
		}
		st.onDisk = true
		if err := b.Set(appendCounterKey(nil, q), st.now.appendTo(nil), nil); err != nil {
			return err
		}
	}
	if b.Empty() {
		return nil
	}
	if err := e.db.Apply(b, pebble.Sync); err != nil {
		return err
	}
	return e.guard.failure()
}

// skippedNumbers is how far the numbering of a queue goes on whose counters are lost, so that no number is used twice.
const skippedNumbers = 1 << 32

// findQueues finds the queues whose counters are lost or of an earlier time: those that were known before, and those that have records.
func (s *Store) findQueues(e *engine, before map[QueueID]*queueState) error {
	s.states.Lock()
	defer s.states.Unlock()
	state := func(q QueueID) *queueState {
		st := s.states.byID[q]
		if st == nil {
			st = &queueState{id: q}
			s.states.byID[q] = st
		}
		return st
	}
	for q, old := range before {
		st := state(q)
		st.now.NextSeq = max(st.now.NextSeq, old.now.NextSeq)
		st.now.Delivered = max(st.now.Delivered, old.now.Delivered)
	}
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceDurable}, UpperBound: []byte{spaceDurable + 1}})
	if err != nil {
		return err
	}
	for it.First(); it.Valid(); {
		if len(it.Key()) != recordKeyLen {
			return errors.Join(fmt.Errorf("record key of %d bytes: %w", len(it.Key()), ErrDamaged), it.Close())
		}
		q, _, _ := splitRecordKey(it.Key())
		st := state(q)
		if before[q] == nil {
			st.now.NextSeq += skippedNumbers
		}
		it.SeekGE(prefixEnd(binary.BigEndian.AppendUint64([]byte{spaceDurable}, uint64(q))))
	}
	return readError(it.Close())
}

// recount counts the durable records of a queue.
func (st *queueState) recount(e *engine) error {
	c := openCursor(e, spaceDurable, st.id, span{0, maxSeq})
	t := &st.now
	t.Messages, t.Bytes, t.head = 0, 0, 0
	for c.next() {
		t.add(spaceDurable, c.seq, uint64(c.size()))
	}
	if t.Messages == 0 {
		t.head = t.NextSeq
	}
	t.marks, st.trimmed = span{t.head, t.NextSeq}, 0
	return c.close()
}

// String says it as a person wants to know it.
func (k keySpan) String() string {
	return fmt.Sprintf("what was between %s and %s", describeKey(k.after, "the beginning"), describeKey(k.before, "the end"))
}

func describeKey(key []byte, none string) string {
	switch {
	case key == nil:
		return none
	case len(key) == recordKeyLen && (key[0] == spaceDurable || key[0] == spaceTransient):
		q, seq, _ := splitRecordKey(key)
		return fmt.Sprintf("message %d of queue %d", seq, q)
	case len(key) == counterKeyLen && key[0] == spaceCounters:
		return fmt.Sprintf("the counters of queue %d", binary.BigEndian.Uint64(key[1:]))
	case key[0] == spaceDefinition:
		return fmt.Sprintf("the definition %q", bytes.ReplaceAll(key[1:], []byte{0}, []byte{' '}))
	}
	return fmt.Sprintf("key %x", key)
}
