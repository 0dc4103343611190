package store

import (
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// told records which waiter is told what.
type told struct {
	name string
	all  *[]string
	errs *[]error
}

func (w told) Committed(tag uint64, err error) {
	*w.all = append(*w.all, w.name+string(rune('0'+tag)))
	*w.errs = append(*w.errs, err)
}

func TestNotify(t *testing.T) {
	s := open(t, vfs.NewMem())
	var all []string
	var errs []error
	one, two, last := told{"one", &all, &errs}, told{"two", &all, &errs}, told{"last", &all, &errs}
	tx := s.Begin()
	tx.Put(1, 1, blob("a"), false)
	tx.Notify(one, 1)
	tx.Notify(one, 2) // in the place of 1
	tx.Notify(two, 3)
	tx.Notify(one, 4)
	tx.Commit(last, 5)
	s.Begin().End() // has kept nothing of the other
	barrier(t, s)
	if want := []string{"one2", "two3", "one4", "last5"}; !slices.Equal(all, want) {
		t.Fatalf("told %v, want %v", all, want)
	}
	tx = s.Begin()
	tx.Put(1, 2, blob("b"), false)
	tx.Notify(two, 6)
	tx.End()
	barrier(t, s)
	if want := []string{"one2", "two3", "one4", "last5", "two6"}; !slices.Equal(all, want) {
		t.Fatalf("told %v, want %v", all, want)
	}
	tx = s.Begin()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tx.Notify(one, 7)
	tx.End()
	if len(all) != 6 || !errors.Is(errs[5], ErrClosed) {
		t.Fatalf("told %v, %v", all, errs)
	}
}

func TestPurgeKnown(t *testing.T) {
	files := vfs.NewMem()
	s := open(t, files)
	put := func(from, to uint64) {
		tx := s.Begin()
		for seq := from; seq < to; seq++ {
			tx.Put(1, seq, blob("12345"), false)
		}
		end(t, tx)
	}
	put(0, 100)
	tx := s.Begin()
	for seq := uint64(100); seq < 110; seq++ {
		tx.Put(1, seq, blob("12345"), false)
	}
	tx.PurgeKnown(1, 0, 50, 50, 250)
	tx.PurgeKnown(1, 50, 52, 2, 10) // few go one by one
	tx.PurgeKnown(1, 60, 60, 5, 5)  // empty
	end(t, tx)
	if c := s.Counters(1); c.Messages != 58 || c.Bytes != 290 {
		t.Fatalf("counters %+v", c)
	}
	verify(t, s)
	closeVerified(t, s)
	s = open(t, files)
	if got := scan(t, s, 1, 0, 1); len(got) != 1 || got[0].seq != 52 {
		t.Fatalf("begins with %v", got)
	}
}
