package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// blob is a record of given bytes.
type blob []byte

func (b blob) AppendTo(dst []byte) []byte { return append(dst, b...) }
func (b blob) Size() int                  { return len(b) }

var testTuning = tuning{
	lazy: time.Millisecond, soft: 3 * time.Millisecond, sync: time.Millisecond,
	retry: time.Millisecond, retryMax: 5 * time.Millisecond,
	memTable: 64 << 10, // so that tests reach the tables
	block:    4 << 10,
	pending:  4 << 20,

	trimAfter: 3, fewRecords: 3,
}

// testOptions are options for a store in files. What it logs as an error, but for failed writes, fails the test.
func testOptions(t testingT, files vfs.FS) Options {
	return Options{FS: files, Logger: slog.New(slog.NewTextHandler(complain{t}, &slog.HandlerOptions{Level: slog.LevelError}))}
}

type complain struct{ t testingT }

func (c complain) Write(line []byte) (int, error) {
	if !bytes.Contains(line, []byte("cannot write")) {
		c.t.Errorf("logged: %s", line)
	}
	return len(line), nil
}

type testingT interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func mustOpen(t testingT, files vfs.FS) *Store {
	t.Helper()
	s, err := openStore("data", testOptions(t, files), testTuning, false)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// open opens a store that is verified and closed when the test ends.
func open(t *testing.T, files vfs.FS) *Store {
	t.Helper()
	s := mustOpen(t, files)
	t.Cleanup(func() { closeVerified(t, s) })
	return s
}

func closeVerified(t testingT, s *Store) {
	t.Helper()
	select {
	case <-s.done:
		return // the test closed it
	default:
	}
	barrier(t, s)
	verify(t, s)
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// barrier waits until all that ended before is committed.
func barrier(t testingT, s *Store) {
	t.Helper()
	done := make(waitChannel, 1)
	s.Begin().Commit(done, 0)
	if err := <-done; err != nil {
		t.Fatalf("barrier: %v", err)
	}
}

// settle waits until all that ended before is committed, after a failure of the disk, too.
func settle(t testingT, s *Store) {
	t.Helper()
	for range 10_000 {
		done := make(waitChannel, 1)
		s.Begin().Commit(done, 0)
		err := <-done
		if err == nil {
			return
		}
		if !errors.Is(err, ErrUnavailable) {
			t.Fatalf("settle: %v", err)
		}
		<-time.After(time.Millisecond)
	}
	t.Fatalf("the store does not recover: %v", s.Err())
}

// verify checks that what the store keeps of each queue follows from what is on disk. Nothing may be under way.
func verify(t testingT, s *Store) {
	t.Helper()
	e, release, err := s.reader()
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	defer release()
	found := map[QueueID]*tally{}
	orphans := map[QueueID]map[uint64]bool{}
	for _, space := range []byte{spaceDurable, spaceTransient} {
		err := e.each([]byte{space}, func(key, value []byte) error {
			q, seq, part := splitRecordKey(key)
			f := found[q]
			if f == nil {
				f = &tally{head: maxSeq}
				found[q] = f
				orphans[q] = map[uint64]bool{}
			}
			if part == partMark {
				*f.marksOf(space) = f.marksOf(space).extended(seq)
				orphans[q][seq] = true
				return nil
			}
			delete(orphans[q], seq)
			messages, bytes := f.of(space)
			*messages++
			*bytes += uint64(len(value))
			f.NextSeq = max(f.NextSeq, seq+1)
			if space == spaceDurable {
				f.head = min(f.head, seq)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("verify: %v", err)
		}
	}
	s.states.RLock()
	defer s.states.RUnlock()
	for q, f := range found {
		st := s.states.byID[q]
		if st == nil {
			t.Errorf("queue %d: %+v on disk, but no counters", q, f.Counters)
			continue
		}
		for _, space := range []byte{spaceDurable, spaceTransient} {
			m, b := f.of(space)
			gotM, gotB := st.now.of(space)
			if *m != *gotM || *b != *gotB {
				t.Errorf("queue %d: counters say %d messages of %d bytes in space %c, there are %d of %d", q, *gotM, *gotB, space, *m, *b)
			}
			if got, marks := *st.now.marksOf(space), *f.marksOf(space); !marks.empty() && (got.lo > marks.lo || got.hi < marks.hi) {
				t.Errorf("queue %d: marks of space %c in %v, there are some in %v", q, space, got, marks)
			}
		}
		if f.Messages > 0 && st.now.head > f.head {
			t.Errorf("queue %d: head %d, but there is a record %d", q, st.now.head, f.head)
		}
		if st.now.NextSeq < f.NextSeq {
			t.Errorf("queue %d: next sequence number %d, but there is a record %d", q, st.now.NextSeq, f.NextSeq-1)
		}
	}
	for q, st := range s.states.byID {
		if found[q] == nil && (st.now.Messages != 0 || st.now.Bytes != 0 || st.now.TransientMessages != 0) {
			t.Errorf("queue %d: counters %+v, but nothing on disk", q, st.now.Counters)
		}
		if st.now.NextSeq <= st.now.Delivered && st.now.Delivered > 0 {
			t.Errorf("queue %d: next sequence number %d, delivered %d", q, st.now.NextSeq, st.now.Delivered)
		}
	}
}

type scanned struct {
	seq          uint64
	record, mark string
}

func scan(t testingT, s *Store, q QueueID, from uint64, limit int) []scanned {
	t.Helper()
	var all []scanned
	err := s.Scan(q, from, limit, func(seq uint64, record, mark []byte) error {
		all = append(all, scanned{seq, string(record), string(mark)})
		return nil
	})
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	return all
}

func wantScan(t testingT, s *Store, q QueueID, want ...scanned) {
	t.Helper()
	if got := scan(t, s, q, 0, 0); !slices.Equal(got, want) {
		t.Errorf("queue %d has %v, want %v", q, got, want)
	}
}

func put(t testingT, s *Store, q QueueID, seq uint64, content string) *Put {
	t.Helper()
	tx := s.Begin()
	p := tx.Put(q, seq, blob(content), false)
	end(t, tx)
	return p
}

func end(t testingT, tx *Tx) {
	t.Helper()
	done := make(waitChannel, 1)
	tx.Commit(done, 0)
	if err := <-done; err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func TestRecordsSurviveReopening(t *testing.T) {
	files := vfs.NewMem()
	s := open(t, files)
	tx := s.Begin()
	tx.Put(1, 5, blob("five"), false)
	tx.Put(1, 6, blob("six"), false)
	tx.Put(1, 7, blob("transient"), true)
	tx.Put(2, 0, blob(""), false)
	tx.Mark(1, 6, []byte("marked"))
	tx.Mark(1, 7, []byte("gone"))
	tx.Delivered(1, 6)
	tx.SetDefinition("queue/a", []byte("A"))
	tx.SetDefinition("queue/b", []byte("B"))
	tx.SetDefinition("exchange/a", []byte("X"))
	tx.DeleteDefinition("queue/b")
	end(t, tx)
	wantScan(t, s, 1, scanned{5, "five", ""}, scanned{6, "six", "marked"}, scanned{7, "transient", "gone"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, files)
	wantScan(t, s, 1, scanned{5, "five", ""}, scanned{6, "six", "marked"})
	wantScan(t, s, 2, scanned{0, "", ""})
	if got, want := s.Counters(1), (Counters{Messages: 2, Bytes: 7, NextSeq: 8, Delivered: 6}); got != want {
		t.Errorf("counters %+v, want %+v", got, want)
	}
	if got := slices.Sorted(maps.Keys(s.Queues())); !slices.Equal(got, []QueueID{1, 2}) {
		t.Errorf("queues %v", got)
	}
	definitions, err := s.Definitions("queue/")
	if err != nil {
		t.Fatal(err)
	}
	if got := maps.Collect(definitions); len(got) != 1 || string(got["queue/a"]) != "A" {
		t.Errorf("definitions %q", got)
	}
}

func TestScanFromAndLimit(t *testing.T) {
	s := open(t, vfs.NewMem())
	tx := s.Begin()
	for seq := range uint64(20) {
		tx.Put(1, seq, blob(fmt.Sprint(seq)), seq%3 == 1)
	}
	end(t, tx)
	got := scan(t, s, 1, 7, 4)
	if want := []scanned{{7, "7", ""}, {8, "8", ""}, {9, "9", ""}, {10, "10", ""}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := scan(t, s, 1, 20, 0); len(got) != 0 {
		t.Errorf("got %v after the end", got)
	}
	stop := errors.New("stop")
	if err := s.Scan(1, 0, 0, func(uint64, []byte, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want fn's error", err)
	}
}

func TestRemove(t *testing.T) {
	for _, transient := range []bool{false, true} {
		t.Run(fmt.Sprintf("transient=%v", transient), func(t *testing.T) {
			s := open(t, vfs.NewMem())
			tx := s.Begin()
			var puts []*Put
			for seq := range uint64(6) {
				puts = append(puts, tx.Put(1, seq, blob("record"), transient))
				tx.Mark(1, seq, []byte("m"))
			}
			end(t, tx)
			tx = s.Begin()
			tx.Remove(1, 0, puts[0])
			tx.Remove(1, 0, puts[0]) // twice does no harm
			tx.Remove(1, 1, nil)
			tx.RemoveScanned(1, 2, len("record"))
			tx.Remove(1, 99, nil) // there is none
			end(t, tx)
			wantScan(t, s, 1, scanned{3, "record", "m"}, scanned{4, "record", "m"}, scanned{5, "record", "m"})
			verify(t, s)
		})
	}
}

// hold is a Waiter that keeps the committer busy until it is released.
type hold struct{ entered, release chan struct{} }

func holdCommitter(s *Store) hold {
	h := hold{make(chan struct{}), make(chan struct{})}
	s.Begin().Commit(h, 0)
	<-h.entered
	return h
}

func (h hold) Committed(uint64, error) { close(h.entered); <-h.release }

// neverEncoded is a record that must not be written.
type neverEncoded struct{ t *testing.T }

func (n neverEncoded) AppendTo(dst []byte) []byte { n.t.Error("encoded"); return append(dst, 0) }
func (n neverEncoded) Size() int                  { return 1 }

func TestPutVanishesWithItsRemoval(t *testing.T) {
	s := open(t, vfs.NewMem())
	h := holdCommitter(s)
	tx := s.Begin()
	p := tx.Put(1, 1, neverEncoded{t}, false)
	done := make(waitChannel, 3)
	tx.Commit(done, 0)
	tx = s.Begin()
	tx.Delivered(1, 1)
	tx.Remove(1, 1, p)
	tx.Commit(done, 0)

	tx = s.Begin()
	p = tx.Put(1, 2, neverEncoded{t}, false)
	tx.Remove(1, 2, p)
	tx.Commit(done, 0)

	// Removed before the unit of work that puts it ends.
	late := s.Begin()
	p = late.Put(1, 3, neverEncoded{t}, false)
	tx = s.Begin()
	tx.Remove(1, 3, p)
	tx.End()
	late.End()

	close(h.release)
	for range 3 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	barrier(t, s)
	if p.Committed() {
		t.Error("a vanished put says that it is committed")
	}
	wantScan(t, s, 1)
	if got := s.Counters(1); got.Messages != 0 || got.Delivered != 1 {
		t.Errorf("counters %+v", got)
	}
}

func TestNothingToWriteNeedsNoSync(t *testing.T) {
	files := &countingFS{FS: vfs.NewMem()}
	s := open(t, files)
	barrier(t, s)
	h := holdCommitter(s)
	syncs := files.syncs.Load()
	done := make(waitChannel, 100)
	for seq := range uint64(100) {
		tx := s.Begin()
		p := tx.Put(1, seq, neverEncoded{t}, false)
		tx.Commit(done, seq)
		tx = s.Begin()
		tx.Remove(1, seq, p)
		tx.End()
	}
	close(h.release)
	for range 100 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n := files.syncs.Load() - syncs; n != 0 {
		t.Errorf("%d syncs", n)
	}
}

func TestTransientNeedsNoSync(t *testing.T) {
	files := &countingFS{FS: vfs.NewMem()}
	s := open(t, files)
	put(t, s, 1, 0, "durable")
	syncs := files.syncs.Load()
	for seq := range uint64(10) {
		tx := s.Begin()
		tx.Put(1, seq+1, blob("spilled"), true)
		end(t, tx)
	}
	if n := files.syncs.Load() - syncs; n != 0 {
		t.Errorf("%d syncs", n)
	}
	if c := s.Counters(1); c.Messages != 1 || c.TransientMessages != 10 {
		t.Errorf("counters %+v", c)
	}
}

// recorder is a Waiter that keeps what it is told.
type recorder struct {
	tags []uint64
	errs []error
}

func (r *recorder) Committed(tag uint64, err error) {
	r.tags = append(r.tags, tag)
	r.errs = append(r.errs, err)
}

func TestWaitersAreToldInOrder(t *testing.T) {
	s := open(t, vfs.NewMem())
	var r recorder
	var want []uint64
	for tag := range uint64(1000) {
		tx := s.Begin()
		switch tag % 3 {
		case 0:
			tx.Put(1, tag, blob("x"), false)
		case 1:
			tx.Put(1, tag, blob("x"), true)
		}
		tx.Commit(&r, tag)
		want = append(want, tag)
	}
	barrier(t, s)
	if !slices.Equal(r.tags, want) {
		t.Errorf("told %v", r.tags)
	}
}

func TestPurgeAndDropKeepCountersExact(t *testing.T) {
	s := open(t, vfs.NewMem())
	tx := s.Begin()
	var puts []*Put
	for seq := range uint64(100) {
		puts = append(puts, tx.Put(1, seq, blob("0123456789"[:seq%10]), seq%7 == 0))
		tx.Put(2, seq, blob("other queue"), false)
	}
	tx.Mark(1, 50, []byte("m"))
	end(t, tx)

	h := holdCommitter(s)
	tx = s.Begin()
	tx.Put(1, 100, blob("just put"), false)
	tx.Remove(1, 3, puts[3])
	tx.Remove(1, 60, puts[60])
	tx.Purge(1, 50, maxSeq)
	tx.End()
	tx = s.Begin()
	tx.Put(1, 101, blob("put after"), false)
	tx.Purge(1, 40, 60) // overlaps the first
	tx.DropQueue(2)
	tx.End()
	close(h.release)
	barrier(t, s)

	verify(t, s)
	got := scan(t, s, 1, 0, 0)
	if len(got) != 40-1+1 || got[len(got)-1] != (scanned{101, "put after", ""}) {
		t.Errorf("left: %v", got)
	}
	wantScan(t, s, 2)
	if _, ok := s.Queues()[2]; ok {
		t.Error("a dropped queue has counters")
	}
	tx = s.Begin()
	tx.Purge(1, 0, maxSeq)
	end(t, tx)
	if c := s.Counters(1); c.Messages != 0 || c.Bytes != 0 || c.TransientMessages != 0 || c.NextSeq != 102 {
		t.Errorf("counters %+v", c)
	}
}

func TestDroppedQueueStaysDropped(t *testing.T) {
	s := open(t, vfs.NewMem())
	p := put(t, s, 1, 1, "record")
	tx := s.Begin()
	tx.DropQueue(1)
	tx.Remove(1, 1, p)
	tx.Mark(1, 1, []byte("late"))
	end(t, tx)
	tx = s.Begin()
	tx.Remove(1, 1, nil)
	tx.Mark(1, 1, []byte("later"))
	end(t, tx)
	wantScan(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.files)
	if q := s.Queues(); len(q) != 0 {
		t.Errorf("queues %v", q)
	}
}

func TestHeadFollowsRemovals(t *testing.T) {
	files := vfs.NewMem()
	s := open(t, files)
	const trimAfter = 1000
	s.tuning.trimAfter = trimAfter
	const n = 12 << 10
	for from := uint64(0); from < n; from += 1024 {
		tx := s.Begin()
		for seq := from; seq < from+1024; seq++ {
			tx.Put(1, 2*seq, blob("x"), false) // with gaps
		}
		end(t, tx)
	}
	for from := uint64(0); from < n-10; from += 512 {
		tx := s.Begin()
		for seq := from; seq < min(from+512, n-10); seq++ {
			tx.RemoveScanned(1, 2*seq, 1)
		}
		end(t, tx)
	}
	if head := s.states.byID[1].now.head; head < 2*(n-10-trimAfter) {
		t.Errorf("head %d, the first record is %d", head, 2*(n-10))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, files)
	if head := s.states.byID[1].now.head; head < 2*(n-10-2*trimAfter) {
		t.Errorf("head after reopening %d, the first record is %d", head, 2*(n-10))
	}
	if got := scan(t, s, 1, 0, 0); len(got) != 10 || got[0].seq != 2*(n-10) {
		t.Errorf("left: %v", got)
	}
}

func TestBeginBlocksWhileTooMuchIsPending(t *testing.T) {
	s := open(t, vfs.NewMem())
	h := holdCommitter(s)
	record := blob(bytes.Repeat([]byte("x"), 64<<10))
	var puts []*Put
	for seq := uint64(0); !s.full.Load(); seq++ {
		tx := s.Begin()
		puts = append(puts, tx.Put(1, seq, record, false))
		tx.End()
	}
	if n := len(puts); n != 64 {
		t.Errorf("full after %d records of 64 KiB", n)
	}
	begun := make(chan *Tx)
	go func() { begun <- s.Begin() }()
	select {
	case <-begun:
		t.Fatal("Begin did not block")
	case <-time.After(10 * time.Millisecond):
	}
	close(h.release)
	(<-begun).End()
}

func TestClosedStore(t *testing.T) {
	s := mustOpen(t, vfs.NewMem())
	tx := s.Begin()
	tx.Put(1, 1, blob("pending"), false)
	var r recorder
	tx.Commit(&r, 7)
	late := s.Begin()
	late.Put(1, 2, blob("late"), false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.tags, []uint64{7}) || r.errs[0] != nil {
		t.Errorf("the waiter was told %v %v", r.tags, r.errs)
	}
	if err := late.Wait(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Wait after Close: %v", err)
	}
	if err := s.Scan(1, 0, 0, func(uint64, []byte, []byte) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("Scan after Close: %v", err)
	}
	if _, err := s.Definitions(""); !errors.Is(err, ErrClosed) {
		t.Errorf("Definitions after Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	s = open(t, s.files)
	wantScan(t, s, 1, scanned{1, "pending", ""})
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, dir string)
		want  error
		says  string
		found bool // only when Pebble had opened it and tidied up
	}{
		{"newer format", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, formatFile), "dormouse store 2\n")
		}, ErrNewerFormat, "use the version that wrote it", false},
		{"format not understood", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, formatFile), "rabbits\n")
		}, ErrDamaged, "restore the folder", false},
		{"no format", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, formatFile)); err != nil {
				t.Fatal(err)
			}
		}, ErrDamaged, "no file FORMAT", false},
		{"damaged tables", func(t *testing.T, dir string) { spoilFiles(t, dir, "*.sst") }, ErrDamaged, "restore", true},
		{"damaged manifest", func(t *testing.T, dir string) { spoilFiles(t, dir, "MANIFEST-*") }, ErrDamaged, "restore", false},
		{"missing table", func(t *testing.T, dir string) {
			for _, name := range glob(t, dir, "*.sst") {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}, ErrDamaged, "restore", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			put(t, s, 1, 1, "record")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			test.spoil(t, dir)
			before := listing(t, dir)
			s, err = Open(dir, Options{})
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q should name the folder and say %q", err, test.says)
			}
			if after := listing(t, dir); after != before && !test.found {
				t.Errorf("touched: before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

func TestOpenTwice(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = Open(dir, Options{})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	put(t, s, 1, 1, "still works")
}

func TestOpenWhereNothingCanBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file", "data")
	write(t, filepath.Dir(dir), "not a folder")
	if _, err := Open(dir, Options{}); err == nil || errors.Is(err, ErrInUse) || errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

func TestPebbleIsQuiet(t *testing.T) {
	var log bytes.Buffer
	s, err := OpenMemory(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, 1, 1, "record")
	wantScan(t, s, 1, scanned{1, "record", ""})
	closeVerified(t, s)
	if log.Len() > 0 {
		t.Errorf("logged above debug:\n%s", &log)
	}
}

func TestTallyFormat(t *testing.T) {
	want := tally{
		Counters: Counters{Messages: 1, Bytes: 300, NextSeq: 1 << 40, Delivered: 7}, head: 3, marks: span{5, maxSeq},
	}
	got, err := parseTally(want.appendTo(nil))
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	b := want.appendTo(nil)
	for _, bad := range [][]byte{nil, b[:len(b)-1], append(b, 0)} {
		if _, err := parseTally(bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func TestKeysSortByNumbers(t *testing.T) {
	var keys [][]byte
	for _, q := range []QueueID{0, 1, 255, 256, 1 << 60} {
		for _, seq := range []uint64{0, 1, 255, 256, maxSeq - 1} {
			for _, part := range []byte{partMark, partRecord} {
				key := appendRecordKey(nil, spaceDurable, q, seq, part)
				if gotQ, gotSeq, gotPart := splitRecordKey(key); gotQ != q || gotSeq != seq || gotPart != part || len(key) != recordKeyLen {
					t.Errorf("key %x", key)
				}
				keys = append(keys, key)
			}
		}
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Error("keys are not in the order of their numbers")
	}
	if key := appendCounterKey(nil, 258); len(key) != counterKeyLen || binary.BigEndian.Uint64(key[1:]) != 258 {
		t.Errorf("counter key %x", key)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return names
}

func spoilFiles(t *testing.T, dir, pattern string) {
	t.Helper()
	for _, name := range glob(t, dir, pattern) {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range content {
			content[i] ^= 0x5a
		}
		write(t, name, string(content))
	}
}

// listing is the names and contents of the files in dir, but for LOCK.
func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() != "LOCK" {
			fmt.Fprintf(&b, "%s %d %x\n", e.Name(), len(content), content[:min(len(content), 64)])
		}
	}
	return b.String()
}

func TestSyncPolicies(t *testing.T) {
	const commits = 1000
	for policy, most := range map[SyncPolicy]int64{SyncAlways: commits, SyncInterval: commits / 2, SyncNever: 0} {
		files := &countingFS{FS: vfs.NewMem()}
		options := testOptions(t, files)
		options.Sync = policy
		tuning := testTuning
		tuning.memTable = 1 << 20 // a new memtable syncs, too
		tuning.sync = 20 * time.Millisecond
		s, err := openStore("data", options, tuning, false)
		if err != nil {
			t.Fatal(err)
		}
		before := files.syncs.Load()
		for seq := range uint64(commits) {
			put(t, s, 1, seq, "x")
		}
		if n := files.syncs.Load() - before; n > most || policy == SyncAlways && n < commits {
			t.Errorf("policy %d: %d syncs for %d commits", policy, n, commits)
		}
		if policy == SyncInterval { // what was written last is synced without a further commit
			n := files.syncs.Load()
			put(t, s, 1, commits, "x")
			for deadline := time.After(10 * time.Second); files.syncs.Load() == n; {
				select {
				case <-time.After(time.Millisecond):
				case <-deadline:
					t.Fatal("not synced")
				}
			}
		}
		closeVerified(t, s)
	}
}

func TestUsage(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeVerified(t, s)
	before, err := s.Usage()
	if err != nil || before.Free == 0 {
		t.Errorf("%+v, %v", before, err)
	}
	put(t, s, 1, 1, strings.Repeat("x", 1<<20))
	if after, err := s.Usage(); err != nil || after.Used < before.Used+1<<20 {
		t.Errorf("a MiB more than %+v is %+v, %v", before, after, err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	s := open(t, vfs.NewMem())
	h := holdCommitter(s)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	tx := s.Begin()
	tx.Put(1, 1, blob("stays"), false)
	if err := tx.Wait(ctx); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	close(h.release)
	barrier(t, s)
	wantScan(t, s, 1, scanned{1, "stays", ""})
}
