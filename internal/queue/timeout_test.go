package queue

import (
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

// consumes adds a consumer with a tray.
func (b *bench) consumes(q *Queue, c *Consumer) (*Consumer, *tray) {
	b.t.Helper()
	s := &tray{}
	c.Sink = s
	if err := q.Consume(c); err != nil {
		b.t.Fatal(err)
	}
	return c, s
}

func TestConsumerThatIsTooSlow(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, Defaults(Quorum, true))
	_, slow := b.consumes(q, &Consumer{Timeout: new(time.Second)})
	b.publish(q, "a", "b")
	b.clock.Advance(500 * time.Millisecond)
	b.publish(q, "c")
	b.clock.Advance(500*time.Millisecond - 1)
	if slow.timeouts != 0 {
		t.Fatal("it timed out early")
	}
	b.clock.Advance(1)
	if c := q.Counts(); c.Ready != 2 || c.Unacked != 1 || slow.timeouts != 1 {
		t.Fatalf("%+v after %d timeouts", c, slow.timeouts)
	}
	b.publish(q, "d")
	same(t, "what it got", slow.bodies(), []string{"a", "b", "c"})
	_, other := b.consumes(q, &Consumer{})
	same(t, "what another got", other.bodies(), []string{"a", "b", "d"})
	if d := other.got[0]; !d.Redelivered || d.Counts != (message.Counts{Returns: 1}) {
		t.Errorf("redelivered %v with %+v", d.Redelivered, d.Counts)
	}
	settle(q, func(tx *store.Tx) { q.Ack(tx, other.got[0].Entry) })
	settle(q, func(tx *store.Tx) { q.Requeue(tx, true, slow.got[0].Entry) })
	settle(q, func(tx *store.Tx) { q.Reject(tx, true, slow.got[2].Entry) })
	if c := q.Counts(); c.Ready != 0 || c.Unacked != 2 {
		t.Fatalf("a late answer has changed something: %+v", c)
	}
	settle(q, func(tx *store.Tx) { q.Ack(tx, slow.got[1].Entry) })
	b.publish(q, "e", "f")
	same(t, "what it got once all was settled", slow.bodies(), []string{"a", "b", "c", "f"}) // in turn
	b.clock.Advance(time.Hour)
	if slow.timeouts != 2 || other.timeouts != 2 { // of the other first what it had, then what the slow one gave up
		t.Errorf("timeouts %d and %d", slow.timeouts, other.timeouts)
	}
}

func TestTimeoutOfAGetAndOfACancelledConsumer(t *testing.T) {
	b := newBench(t)
	s := Defaults(Quorum, true)
	s.ConsumerTimeout = time.Second
	q := b.queue(1, s)
	b.publish(q, "a", "b")
	getter := &tray{}
	d, _ := q.Get(&Consumer{Sink: getter})
	c, sink := b.consumes(q, &Consumer{})
	q.Cancel(c)
	s.ConsumerTimeout = time.Hour
	q.Configure(s) // too late for what is out
	b.clock.Advance(time.Second)
	if n := q.Counts(); getter.timeouts != 1 || sink.timeouts != 1 || n.Ready != 2 || n.Unacked != 0 {
		t.Fatalf("%d and %d timeouts, %+v", getter.timeouts, sink.timeouts, n)
	}
	settle(q, func(tx *store.Tx) { q.Ack(tx, d.Entry, sink.got[0].Entry) })
	same(t, "what is left", b.drain(q), []string{"a", "b"})
	if len(q.holders) != 0 {
		t.Errorf("%d are still watched", len(q.holders))
	}
}

func TestTimeoutOfTheSingleActiveConsumer(t *testing.T) {
	b := newBench(t)
	s := Defaults(Quorum, true)
	s.SingleActiveConsumer = true
	q := b.queue(1, s)
	_, one := b.consumes(q, &Consumer{Prefetch: 1, Timeout: new(time.Second)})
	_, two := b.consumes(q, &Consumer{Prefetch: 1, Timeout: new(time.Second)})
	b.publish(q, "a", "b")
	b.clock.Advance(time.Second)
	same(t, "the second takes over", two.bodies(), []string{"a"})
	settle(q, func(tx *store.Tx) { q.Ack(tx, one.got[0].Entry) })
	settle(q, func(tx *store.Tx) { q.Ack(tx, two.got[0].Entry) })
	same(t, "and stays", two.bodies(), []string{"a", "b"})
	b.clock.Advance(time.Second)
	same(t, "until it is too slow itself", one.bodies(), []string{"a", "b"})
}

func TestClassicQueueHasNoTimeout(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, Defaults(Classic, true))
	_, slow := b.consumes(q, &Consumer{Timeout: new(time.Second)})
	b.publish(q, "a")
	b.clock.Advance(24 * time.Hour)
	if slow.timeouts != 0 || q.Counts().Unacked != 1 {
		t.Errorf("timed out")
	}
}

func TestQuorumConsumerWithoutPrefetchIsCapped(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		q := b.queue(1, s)
		want := map[Type]int{Classic: 2500, Quorum: maxQuorumPrefetch}[s.Type]
		_, sink := b.consumes(q, &Consumer{})
		b.publish(q, numbers(0, 2500)...)
		if len(sink.got) != want {
			t.Errorf("%d messages are out, want %d", len(sink.got), want)
		}
		_, all := b.consumes(q, &Consumer{NoAck: true})
		if len(all.got) != 2500-want {
			t.Errorf("%d messages went out without acknowledgement, want %d", len(all.got), 2500-want)
		}
	})
}
