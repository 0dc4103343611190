package delayed

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
)

// bench is a Pending on a virtual clock and a store in memory, that notes what it
// releases.
type bench struct {
	t        *testing.T
	clock    *clock.Virtual
	fs       vfs.FS
	store    *store.Store
	pending  *Pending
	lastID   store.QueueID
	released []string
	check    func(body string)
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), fs: vfs.NewMem(), check: func(string) {}}
	b.open(false)
	t.Cleanup(func() {
		b.pending.Close()
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) open(transient bool) {
	b.t.Helper()
	var err error
	if b.store, err = store.Open("data", store.Options{FS: b.fs}); err != nil {
		b.t.Fatal(err)
	}
	definitions, err := b.store.Definitions("pending")
	if err != nil {
		b.t.Fatal(err)
	}
	var ids []byte
	for _, value := range definitions {
		ids = slices.Clone(value)
	}
	b.pending = Open(Options{
		Key: "pending", Store: b.store, Clock: b.clock, Transient: transient,
		NewID: func() store.QueueID { b.lastID++; return b.lastID },
		Release: func(_ *store.Tx, m *message.Message) []queue.Target {
			b.check(string(m.Body))
			b.released = append(b.released, string(m.Body))
			return nil
		},
		Logger: slog.New(slog.DiscardHandler),
	}, ids)
	b.pending.Start()
}

func (b *bench) restart(transient bool) {
	b.t.Helper()
	b.pending.Close()
	if err := b.store.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open(transient)
}

func (b *bench) add(body string, due time.Time) {
	tx := b.store.Begin()
	b.pending.Add(tx, &message.Message{Keys: []string{"k"}, Body: []byte(body), Expiration: message.NoExpiration, Priority: message.NoPriority}, due)
	tx.End()
}

func (b *bench) sync() {
	b.t.Helper()
	if err := b.store.Begin().Wait(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// Far more messages than the window, in random order, added and released at the same
// time and over restarts, leave in the order in which they are due and never early.
func TestInOrderAndNeverEarly(t *testing.T) {
	const n = 10 * window
	b := newBench(t)
	random := rand.New(rand.NewPCG(1, 2))
	due := make([]time.Time, n)
	last := time.Time{}
	b.check = func(body string) {
		i, err := strconv.Atoi(body)
		if err != nil {
			t.Fatal(err)
		}
		if now := b.clock.Now(); now.Before(due[i]) {
			t.Fatalf("message %d left %v early", i, due[i].Sub(now))
		}
		if at := due[i].Truncate(time.Millisecond); at.Before(last) {
			t.Fatalf("message %d, due at %v, left after one due at %v", i, at, last)
		} else {
			last = at
		}
	}
	for i := range n {
		due[i] = b.clock.Now().Add(time.Duration(random.Int64N(int64(time.Hour))) + time.Microsecond)
		b.add(strconv.Itoa(i), due[i])
		switch {
		case i%1000 == 999:
			b.sync()
			b.clock.Advance(time.Second)
		case i == n/2:
			b.restart(false)
		}
	}
	if waiting := b.pending.Len() + len(b.released); waiting != n {
		t.Fatalf("%d messages, want %d", waiting, n)
	}
	b.sync()
	inMemory := 0
	for _, s := range b.pending.all {
		s.forgetWritten()
		inMemory += len(s.heap) + len(s.beyond)
	}
	if inMemory > 5*window {
		t.Errorf("%d of %d messages are in memory", inMemory, b.pending.Len())
	}
	b.clock.Advance(10 * time.Minute)
	b.restart(false)
	b.clock.Advance(time.Hour)
	slices.Sort(b.released)
	if got := len(slices.Compact(b.released)); got != n {
		t.Fatalf("%d different messages left, want %d", got, n)
	}
	b.restart(false)
	if left := b.pending.Len(); left != 0 {
		t.Fatalf("%d messages came back", left)
	}
}

func TestDueAtOneMoment(t *testing.T) {
	b := newBench(t)
	at := b.clock.Now().Add(time.Minute)
	for i := range 3 * window {
		b.add(strconv.Itoa(i), at)
	}
	b.clock.Advance(time.Minute - 1)
	if len(b.released) != 0 {
		t.Fatal("early")
	}
	b.clock.Advance(1)
	for i, body := range b.released {
		if body != strconv.Itoa(i) {
			t.Fatalf("message %d is %s: not in the order of publishing", i, body)
		}
	}
	if len(b.released) != 3*window {
		t.Fatalf("%d left", len(b.released))
	}
}

func TestEarlierOneOvertakes(t *testing.T) {
	b := newBench(t)
	b.add("later", b.clock.Now().Add(time.Hour))
	b.add("sooner", b.clock.Now().Add(time.Second))
	b.clock.Advance(time.Second)
	if want := []string{"sooner"}; !slices.Equal(b.released, want) {
		t.Fatalf("left: %q", b.released)
	}
}

func TestSeriesFollowEachOther(t *testing.T) {
	b := newBench(t)
	b.add("one", b.clock.Now().Add(2*time.Second))
	b.pending.all[0].taken = seriesSize
	b.add("two", b.clock.Now().Add(time.Second))
	b.restart(false)
	b.clock.Advance(2 * time.Second)
	if want := []string{"two", "one"}; !slices.Equal(b.released, want) {
		t.Fatalf("left: %q", b.released)
	}
	if ids := b.pending.IDs(); len(ids) != 0 {
		t.Fatalf("series %v are left", ids)
	}
}

func TestDelete(t *testing.T) {
	b := newBench(t)
	b.add("m", b.clock.Now().Add(time.Second))
	tx := b.store.Begin()
	b.pending.Delete(tx)
	tx.End()
	b.clock.Advance(time.Minute)
	b.restart(false)
	b.clock.Advance(time.Minute)
	if len(b.released) != 0 || b.pending.Len() != 0 {
		t.Fatalf("%q left, %d wait", b.released, b.pending.Len())
	}
}

func TestTransientEndsWithTheProcess(t *testing.T) {
	b := newBench(t)
	b.restart(true)
	for i := range 3 * window {
		b.add(strconv.Itoa(i), b.clock.Now().Add(time.Duration(3*window-i)*time.Second))
	}
	b.clock.Advance(3 * time.Second)
	if len(b.released) != 3 {
		t.Fatalf("%d left", len(b.released))
	}
	b.restart(true)
	b.clock.Advance(24 * time.Hour)
	if len(b.released) != 3 || b.pending.Len() != 0 {
		t.Fatalf("%d left, %d wait", len(b.released), b.pending.Len())
	}
}
