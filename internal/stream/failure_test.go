package stream

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
)

// What was published while the disk failed reaches consumers when it is written after all,
// though nobody is told of that moment.
func TestDiskFails(t *testing.T) {
	var failing atomic.Bool
	failed := errors.New("the disk fails")
	b := newBench(t, nil)
	b.shut()
	b.fs = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpLock {
			return failed
		}
		return nil
	}))
	changes := make(chan error, 10)
	b.onFailure = func(err error) { changes <- err }
	b.open()
	defer b.shut()
	b.fill(2)
	k := b.consume(10, from("first"))
	k.take(2)
	failing.Store(true)
	tx := b.store.Begin()
	b.Enqueue(tx, text("late"))
	done := make(written, 1)
	tx.Commit(done, 0)
	if err := <-done; !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("told %v", err)
	}
	if err := <-changes; err == nil {
		t.Fatal("the store says that it can write")
	}
	b.clock.Advance(lookAgain)
	b.idle()
	if k.has() > 0 {
		t.Fatal("delivered before it was written")
	}
	failing.Store(false)
	if err := <-changes; err != nil {
		t.Fatalf("the store says %v", err)
	}
	b.clock.Advance(lookAgain)
	if got := bodies(k.take(1)); !slices.Equal(got, []string{"late"}) {
		t.Fatalf("got %v", got)
	}
}

func TestClosedStore(t *testing.T) {
	b := newBench(t, nil)
	b.Stream.tail.messages = 1
	b.fill(100)
	k := b.consume(1, from("first"))
	k.take(1)
	b.must(b.store.Close())
	k.Queue().Ack(nil, make([]*queue.Entry, 5)...)
	b.idle()
	tx := b.store.Begin()
	b.Enqueue(tx, text("lost"))
	tx.End()
	b.Configure(b.Settings())
	b.Close()
	if k.has() > 0 {
		t.Fatalf("got %v", bodies(k.got))
	}
}

// blob is a record that no stream writes.
type blob []byte

func (b blob) AppendTo(dst []byte) []byte { return append(dst, b...) }
func (b blob) Size() int                  { return len(b) }

func TestDamageDoesNotKeepAStreamFromOpening(t *testing.T) {
	for name, at := range map[string]struct {
		level store.QueueID
		seq   uint64
	}{"the newest message": {0, 10}, "the only segment": {1, 0}} {
		b := newBench(t, nil)
		b.fill(10)
		tx := b.store.Begin()
		tx.Put(streamID+at.level, at.seq, blob{0xff}, false)
		b.must(tx.Wait(t.Context()))
		b.restart()
		k := b.consume(10)
		b.fill(1)
		if got := k.take(1)[0].Offset; got < 10 {
			t.Errorf("%s: the next message is %d", name, got)
		}
		if got := b.consume(10, from("first")).take(10); got[9].Offset != 9 {
			t.Errorf("%s: the tenth message is %d", name, got[9].Offset)
		}
		b.shut()
	}
}
