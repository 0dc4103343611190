package queue

import (
	"strconv"
	"testing"

	"github.com/dormousemq/dormouse/internal/store"
)

// A consumer that stays behind by more than the window soon finds in memory what it gets.
func TestWindowGrowsForAConsumerThatLags(t *testing.T) {
	const lag = 3 * windowMessages
	b := newBench(t)
	q := b.queue(1, Defaults(Classic, true))
	for i := range lag {
		b.publish(q, strconv.Itoa(i))
		if i%100 == 0 {
			b.sync()
		}
	}
	l := q.levels[0]
	if l.disk == 0 {
		t.Fatal("nothing is on disk only, though nobody has consumed")
	}
	for i := range 3 * lag {
		b.publish(q, strconv.Itoa(lag+i))
		d, ok := q.Get(&Consumer{})
		if got := string(d.Message.Body); !ok || got != strconv.Itoa(i) {
			t.Fatalf("got %q, want %d", got, i)
		}
		settle(q, func(tx *store.Tx) { q.Ack(tx, d.Entry) })
		if i%100 == 0 {
			b.sync()
		}
	}
	if l.disk != 0 {
		t.Errorf("%d messages are on disk only", l.disk)
	}
	same(t, "what is left", b.drain(q), numbers(3*lag, 4*lag))
	if l.window != windowMessages {
		t.Errorf("the window of an empty queue is %d messages", l.window)
	}
}

// Many queues with backlogs keep no more in memory together than is allowed, beyond a floor for each.
func TestWindowsOfManyQueues(t *testing.T) {
	const queues, messages = 4, 2000
	b := newBench(t)
	b.windows.limit = 256 << 10
	var all []*Queue
	for id := range store.QueueID(queues) {
		all = append(all, b.queue(id+1, Defaults(Classic, true)))
	}
	for i := range messages {
		for _, q := range all {
			b.publish(q, strconv.Itoa(i))
		}
		if i%50 == 0 {
			b.sync()
		}
	}
	each := int64(persistent("1234").Memory())
	most := b.windows.limit + queues*each*(2*windowFloor+100)
	if used := b.windows.used.Load(); used > most || used < b.windows.limit {
		t.Errorf("the windows take %d bytes, at most %d are allowed; all messages would take %d", used, most, queues*messages*each)
	}
	for _, q := range all {
		same(t, q.Name(), b.drain(q), numbers(0, messages))
	}
	if used := b.windows.used.Load(); used != 0 {
		t.Errorf("the windows of empty queues take %d bytes", used)
	}
	b.publish(all[0], numbers(0, messages)...)
	if _, err := all[0].Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := b.windows.used.Load(); used != 0 {
		t.Errorf("after a purge the windows take %d bytes", used)
	}
}

// sync waits until all is written.
func (b *bench) sync() {
	b.t.Helper()
	if err := b.store.Begin().Wait(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}
