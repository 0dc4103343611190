package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Checked is what Check has found in a data folder.
type Checked struct {
	Files, Bytes int               // tables, and their size
	Queues       map[QueueID]Found // that have counters or durable records
	Definitions  map[string][]byte // by key
	Problems     []string          // what is not as it should be; empty if the folder is sound
	SetAside     []string          // damaged files that were set aside earlier
}

// Found is what there is of one queue.
type Found struct {
	Counters        // as they are written
	Counted, Length uint64
}

// CheckOptions are what Check takes beside the folder.
type CheckOptions struct {
	FS vfs.FS // nil is the operating system's
	// Record, if not nil, is called with each durable record. An error is a problem.
	Record func(q QueueID, seq uint64, record []byte) error
	// Progress, if not nil, is called now and then with how much of the folder's tables has been read, in bytes.
	Progress func(done, all int)
}

// maxProblems is how many problems Check tells.
const maxProblems = 100

// Check reads a data folder that nobody has open, without changing anything in it, and compares what is in it. The errors are those of
// Open, but for damage: as much of that as can be told is told as problems.
func Check(dir string, o CheckOptions) (*Checked, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	exists, err := checkFormat(o.FS, dir)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, fmt.Errorf("%s is no data folder: %w", dir, fs.ErrNotExist)
	}
	lock, _, err := lockFolder(o.FS, dir)
	if err != nil {
		return nil, err
	}
	c := checker{o: o, dir: dir, found: &Checked{Queues: map[QueueID]Found{}, Definitions: map[string][]byte{}}}
	err = c.run(lock)
	return c.found, errors.Join(err, lock.Close())
}

type checker struct {
	o     CheckOptions
	dir   string
	found *Checked
	e     *engine
}

func (c *checker) problem(format string, args ...any) {
	if len(c.found.Problems) < maxProblems {
		c.found.Problems = append(c.found.Problems, fmt.Sprintf(format, args...))
	}
}

func (c *checker) run(lock *pebble.Lock) error {
	aside, err := c.o.FS.List(c.o.FS.PathJoin(c.dir, damagedFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slices.Sort(aside)
	c.found.SetAside = aside
	c.e, err = openEngine(c.dir, engineOptions{
		fs: c.o.FS, lock: lock, logger: slog.New(slog.DiscardHandler), onFail: func() {}, block: defaultTuning.block, readOnly: true,
	})
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return nil // a folder that has not been used yet
	}
	if errors.Is(err, ErrDamaged) {
		c.problem("it cannot be opened: %v", firstLine(err))
		return nil
	}
	if err != nil {
		return err
	}
	err = c.tables()
	if err == nil {
		c.definitions()
		c.counters()
		c.records()
		c.compare()
	}
	return errors.Join(err, c.e.close())
}

// tables verifies the checksums of all tables.
func (c *checker) tables() error {
	levels, err := c.e.db.SSTables()
	if err != nil {
		return err
	}
	sizes := map[string]int{}
	for _, level := range levels {
		for _, t := range level {
			path := c.o.FS.PathJoin(c.dir, fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum)))
			sizes[path] = int(t.Size)
			c.found.Bytes += int(t.Size)
		}
	}
	c.found.Files = len(sizes)
	done := 0
	for _, path := range slices.Sorted(maps.Keys(sizes)) {
		content, err := readFile(c.o.FS, path)
		if err != nil {
			return err
		}
		if err := checkTable([]byte(content), c.e.options); err != nil {
			c.problem("%s is damaged: %v", path, firstLine(err))
		}
		done += sizes[path]
		if c.o.Progress != nil {
			c.o.Progress(done, c.found.Bytes)
		}
	}
	return nil
}

func (c *checker) definitions() {
	err := c.e.each([]byte{spaceDefinition}, func(key, value []byte) error {
		c.found.Definitions[string(key[1:])] = bytes.Clone(value)
		return nil
	})
	if err != nil {
		c.problem("definitions cannot be read: %v", firstLine(err))
	}
}

func (c *checker) counters() {
	err := c.e.each([]byte{spaceCounters}, func(key, value []byte) error {
		t, err := parseTally(value)
		if len(key) != counterKeyLen || err != nil {
			c.problem("the counters with the key %x cannot be read: %v", key, err)
			return nil
		}
		c.found.Queues[QueueID(binary.BigEndian.Uint64(key[1:]))] = Found{Counters: t.Counters}
		return nil
	})
	if err != nil {
		c.problem("counters cannot be read: %v", firstLine(err))
	}
}

// records counts all durable records.
func (c *checker) records() {
	err := c.e.each([]byte{spaceDurable}, func(key, value []byte) error {
		if len(key) != recordKeyLen {
			c.problem("there is a record with the key %x", key)
			return nil
		}
		q, seq, part := splitRecordKey(key)
		if part == partMark {
			return nil
		}
		f := c.found.Queues[q]
		f.Counted++
		f.Length += uint64(len(value))
		c.found.Queues[q] = f
		if seq >= f.NextSeq {
			c.problem("message %d of queue %d has a number that is still to be given", seq, q)
		}
		if c.o.Record != nil {
			if err := c.o.Record(q, seq, value); err != nil {
				c.problem("message %d of queue %d: %v", seq, q, err)
			}
		}
		return nil
	})
	if err != nil {
		c.problem("messages cannot be read: %v", firstLine(err))
	}
}

func (c *checker) compare() {
	for _, q := range slices.Sorted(maps.Keys(c.found.Queues)) {
		f := c.found.Queues[q]
		if f.Counted != f.Messages || f.Length != f.Bytes {
			c.problem("queue %d has %d messages of %d bytes, its counters say %d of %d", q, f.Counted, f.Length, f.Messages, f.Bytes)
		}
	}
}

// checkTable verifies the checksums of all blocks of a table.
func checkTable(table []byte, o *pebble.Options) error {
	blocks, err := blocksOf(&tableFile{content: table}, o)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, h := range blocks {
		end := h.Offset + h.Length + blockTrailer
		if end > uint64(len(table)) || syndrome(table[h.Offset:end]) != 0 {
			return fmt.Errorf("%w: %s has another checksum", ErrDamaged, blockName(h.Offset, h.Length))
		}
	}
	return nil
}

// firstLine is what an error says; Pebble's go on.
func firstLine(err error) string {
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return string(line)
}
