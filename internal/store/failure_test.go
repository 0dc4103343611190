package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// failing is a store on a disk that can fail, and what it reports.
type failing struct {
	*Store
	fault  *fault
	memory *vfs.MemFS
	events chan error
}

func openFailing(t *testing.T) failing {
	t.Helper()
	f := failing{fault: &fault{}, memory: vfs.NewCrashableMem(), events: make(chan error, 100)}
	options := testOptions(t, errorfs.Wrap(f.memory, f.fault))
	options.OnFailure = func(err error) { f.events <- err }
	var err error
	if f.Store, err = openStore("data", options, testTuning, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.fault.heal()
		select {
		case <-f.done: // the test closed it
		default:
			settle(t, f.Store)
			closeVerified(t, f.Store)
		}
	})
	return f
}

// recovered waits until the store can write.
func (f failing) recovered(t *testing.T) {
	t.Helper()
	for f.Err() != nil {
		select {
		case <-f.events: //nolint:errcheck // that there was one is the news
		case <-time.After(10 * time.Second):
			t.Fatalf("the store does not recover: %v", f.Err())
		}
	}
}

// fails commits tx and expects that it cannot be written.
func (f failing) fails(t *testing.T, tx *Tx, cause error) {
	t.Helper()
	err := tx.Wait(t.Context())
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, cause) {
		t.Fatalf("got %v, want %v: %v", err, ErrUnavailable, cause)
	}
	if err := f.Err(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Err is %v", err)
	}
}

// TestGroupThatWasWrittenButNotSynced: the sync fails, the write did not. The group must not be written twice.
func TestGroupThatWasWrittenButNotSynced(t *testing.T) {
	s := openFailing(t)
	put(t, s.Store, 1, 1, "before")
	s.fault.set(syscall.EIO, 0, 1, func(op errorfs.Op) bool {
		return strings.HasSuffix(op.Path, ".log") && op.Kind == errorfs.OpFileSyncData
	})
	tx := s.Begin()
	p := tx.Put(1, 2, blob("in doubt"), false)
	tx.Remove(1, 1, nil)
	s.fails(t, tx, syscall.EIO)
	s.recovered(t)
	if !p.Committed() {
		t.Error("the put is not committed")
	}
	wantScan(t, s.Store, 1, scanned{2, "in doubt", ""})
	verify(t, s.Store)

	tx = s.Begin()
	tx.Remove(1, 2, p)
	end(t, tx)
	db := s.engine.current.db
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	wantScan(t, s.Store, 1)
}

func TestDiskFullAndNoLonger(t *testing.T) {
	s := openFailing(t)
	put(t, s.Store, 1, 1, "before")
	full := vfs.DiskUsage{TotalBytes: 1 << 30, AvailBytes: 1 << 20}
	s.memory.TestingSetDiskUsage(full)
	s.fault.set(syscall.ENOSPC, 0, 0, func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate })

	tx := s.Begin()
	p := tx.Put(1, 2, blob("when full"), false)
	s.fails(t, tx, syscall.ENOSPC)
	if err := <-s.events; !errors.Is(err, ErrUnavailable) {
		t.Errorf("reported %v", err)
	}
	for seq := range uint64(3) { // told at once, not when the disk is mended
		tx := s.Begin()
		tx.Put(1, 3+seq, blob("later"), false)
		if err := tx.Wait(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	tx = s.Begin()
	tx.Remove(1, 2, p)
	tx.Remove(1, 1, nil)
	if err := tx.Wait(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}

	s.fault.heal()
	for !strings.Contains(s.Err().Error(), "MiB free on the disk of data") { // still full
		tx := s.Begin()
		_ = tx.Wait(t.Context())
	}
	s.memory.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 1 << 30, AvailBytes: 1 << 29})
	if err := <-s.events; err != nil {
		t.Errorf("reported %v", err)
	}
	barrier(t, s.Store)
	wantScan(t, s.Store, 1, scanned{3, "later", ""}, scanned{4, "later", ""}, scanned{5, "later", ""})
}

// TestTransientRecordsWhenTheDiskFails: they were not synced, so they may go; but one that was removed must not come back.
func TestTransientRecordsWhenTheDiskFails(t *testing.T) {
	s := openFailing(t)
	tx := s.Begin()
	removed := tx.Put(1, 1, blob("removed"), true)
	tx.Mark(1, 1, []byte("m"))
	tx.Put(1, 2, blob("durable"), false)
	tx.Put(1, 4, blob("kept"), true)
	end(t, tx) // synced for the sake of the durable record

	tx = s.Begin()
	tx.Remove(1, 1, removed)
	lost := tx.Put(1, 3, blob("lost"), true)
	end(t, tx) // not synced

	s.fault.set(syscall.EIO, 0, 1, writesTo(".log"))
	tx = s.Begin()
	tx.SetDefinition("k", []byte("v"))
	s.fails(t, tx, syscall.EIO)
	s.recovered(t)
	wantScan(t, s.Store, 1, scanned{2, "durable", ""}, scanned{4, "kept", ""})
	verify(t, s.Store)

	tx = s.Begin()
	tx.Remove(1, 3, lost)
	end(t, tx)
	verify(t, s.Store)
}

func TestCloseWhileTheDiskFails(t *testing.T) {
	s := openFailing(t)
	put(t, s.Store, 1, 1, "confirmed")
	s.fault.set(syscall.EIO, 0, 0, isWrite)
	tx := s.Begin()
	tx.Put(1, 2, blob("not written"), false)
	s.fails(t, tx, syscall.EIO)
	var r recorder
	tx = s.Begin()
	tx.Put(1, 3, blob("not written"), false)
	tx.Commit(&r, 1)
	if err := s.Close(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Close: %v", err)
	}
	if len(r.errs) != 1 || !errors.Is(r.errs[0], ErrUnavailable) {
		t.Errorf("the waiter was told %v", r.errs)
	}
	s.fault.heal()
	again := open(t, s.memory)
	wantScan(t, again, 1, scanned{1, "confirmed", ""})
}

// TestOneWriteFails lets one write after another fail, once or until the store has noticed, in a run that opens, writes more than a few
// memtables, removes and closes. Whatever fails, what was confirmed is there, and in the end all is.
func TestOneWriteFails(t *testing.T) {
	for _, times := range []int{1, 20} {
		for n := 0; ; n += 1 + n/8 {
			if !failAt(t, n, times) {
				t.Logf("%d writes in all", n)
				break
			}
		}
	}
}

func failAt(t *testing.T, n, times int) (failed bool) {
	t.Helper()
	memory, fault := vfs.NewCrashableMem(), &fault{}
	files := errorfs.Wrap(memory, fault)
	fault.set(fmt.Errorf("write %d: %w", n, syscall.EIO), n, times, func(op errorfs.Op) bool { return isWrite(op) && op.Kind != errorfs.OpRemove })

	var s *Store
	for s == nil {
		var err error
		if s, err = openStore("data", testOptions(t, files), testTuning, false); err != nil && (!errors.Is(err, syscall.EIO) || errors.Is(err, ErrDamaged)) {
			t.Fatalf("write %d: open: %v", n, err)
		}
	}
	const records = 60
	confirmed := make([]bool, records)
	var puts []*Put
	for seq := range uint64(records) {
		tx := s.Begin()
		puts = append(puts, tx.Put(1, seq, blob(strings.Repeat("x", 5000)), false))
		if seq >= 10 && seq%2 == 0 {
			tx.Remove(1, seq-10, puts[seq-10])
		}
		confirmed[seq] = tx.Wait(t.Context()) == nil
	}
	crashed := memory.CrashClone(vfs.CrashCloneCfg{})
	var want []uint64
	for seq := range uint64(records) {
		if seq%2 == 1 || seq >= records-10 {
			want = append(want, seq)
		}
	}
	check := func(s *Store, what string, want []uint64) {
		var got []uint64
		for _, r := range scan(t, s, 1, 0, 0) {
			got = append(got, r.seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("write %d fails: %s the store has %v", n, what, got)
		}
	}
	fault.paused(func() {
		settle(t, s)
		verify(t, s)
		check(s, "in the end", want)
	})
	err := s.Close()
	failed = fault.count() > 0
	if err != nil && !failed {
		t.Errorf("close: %v", err)
	}
	fault.heal()
	s = mustOpen(t, files)
	check(s, "after reopening", want)
	closeVerified(t, s)

	s = mustOpen(t, crashed)
	verify(t, s)
	has := map[uint64]bool{}
	for _, r := range scan(t, s, 1, 0, 0) {
		has[r.seq] = true
	}
	for _, seq := range want {
		if confirmed[seq] && !has[seq] {
			t.Errorf("write %d fails: %d was confirmed, and is not there after a crash", n, seq)
		}
	}
	for seq := uint64(0); seq < records-10; seq += 2 {
		if confirmed[seq+10] && has[seq] {
			t.Errorf("write %d fails: the removal of %d was confirmed, and it is back after a crash", n, seq)
		}
	}
	closeVerified(t, s)
	return failed
}
