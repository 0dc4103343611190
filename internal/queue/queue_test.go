package queue

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

var (
	start   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	discard = slog.New(slog.DiscardHandler)
)

// bench is a queue on a virtual clock and a store in memory, whose dead letters go to
// other queues by routing key.
type bench struct {
	windows Windows
	t       *testing.T
	clock   *clock.Virtual
	fs      vfs.FS
	store   *store.Store
	queues  []*Queue
	targets map[string]*Queue
	expired []*Queue
	letters []string // every dead letter, as "reason body"
	observe func()   // is called for each of them, if it is not nil
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t}
	b.reset()
	t.Cleanup(func() {
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) reset() {
	b.clock, b.fs, b.targets = clock.NewVirtual(start), vfs.NewMem(), map[string]*Queue{}
	b.open()
}

func (b *bench) open() {
	b.t.Helper()
	s, err := store.Open("data", store.Options{FS: b.fs})
	if err != nil {
		b.t.Fatal(err)
	}
	b.store = s
}

func (b *bench) restart() {
	b.t.Helper()
	for _, q := range b.queues {
		q.Close()
	}
	if err := b.store.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

func (b *bench) queue(id store.QueueID, s Settings) *Queue {
	q := New(Options{Name: fmt.Sprintf("q%d", id), Settings: s, ID: id, Store: b.store, Clock: b.clock, Host: b, Logger: discard, Windows: &b.windows})
	b.queues = append(b.queues, q)
	q.Start()
	return q
}

func (b *bench) DeadLetter(tx *store.Tx, reason string, m *message.Message) ([]Target, bool) {
	b.letters = append(b.letters, reason+" "+string(m.Body))
	if b.observe != nil {
		b.observe()
	}
	q := b.targets[m.Keys[0]]
	if q == nil {
		return nil, false
	}
	return []Target{q}, q.Enqueue(tx, m) == Accepted
}

func (b *bench) Expired(q *Queue) { b.expired = append(b.expired, q) }

func (b *bench) publish(q *Queue, bodies ...string) {
	b.t.Helper()
	for _, body := range bodies {
		b.publishMessage(q, persistent(body))
	}
}

func (b *bench) publishMessage(q *Queue, m *message.Message) Outcome {
	tx := b.store.Begin()
	o := q.Enqueue(tx, m)
	tx.End()
	q.Settle()
	return o
}

func persistent(body string) *message.Message {
	return &message.Message{Keys: []string{"key"}, Properties: []byte{0, 0}, Body: []byte(body), Persistent: true, Expiration: message.NoExpiration, Priority: message.NoPriority}
}

func withTTL(body string, ttl time.Duration) *message.Message {
	m := persistent(body)
	m.Expiration = ttl
	return m
}

// drain gets and acknowledges all that is ready.
func (b *bench) drain(q *Queue) []string {
	var got []string
	for {
		d, ok := q.Get(&Consumer{})
		if !ok {
			return got
		}
		got = append(got, string(d.Message.Body))
		settle(q, func(tx *store.Tx) { q.Ack(tx, d.Entry) })
	}
}

// tray is a Sink that keeps what it gets, up to a limit.
type tray struct {
	got      []Delivery
	limit    int // 0 for none
	timeouts int // calls of TimedOut
	gone     bool
}

func (s *tray) Deliver(_ *Consumer, d Delivery) bool {
	if s.limit > 0 && len(s.got) >= s.limit {
		return false
	}
	s.got = append(s.got, d)
	return true
}
func (s *tray) QueueGone(*Consumer) { s.gone = true }
func (s *tray) TimedOut(*Consumer)  { s.timeouts++ }

func (s *tray) bodies() []string {
	var all []string
	for _, d := range s.got {
		all = append(all, string(d.Message.Body))
	}
	return all
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

func numbers(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func dlx(s Settings, key string) Settings {
	exchange := "dlx"
	s.DeadLetterExchange, s.DeadLetterRoutingKey = &exchange, &key
	return s
}

func both(t *testing.T, f func(t *testing.T, s Settings)) {
	for _, kind := range []Type{Classic, Quorum} {
		t.Run(string(kind), func(t *testing.T) { f(t, Defaults(kind, true)) })
	}
}

func TestOrderThroughDiskAndRestart(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		q := b.queue(1, s)
		const n = 3*windowMessages + 100
		b.publish(q, numbers(0, n)...)
		if c := q.Counts(); c.Ready != n {
			t.Fatalf("%d ready, want %d", c.Ready, n)
		}
		for i := range 1000 {
			d, _ := q.Get(&Consumer{})
			if got := string(d.Message.Body); got != strconv.Itoa(i) || d.Redelivered {
				t.Fatalf("got %q redelivered %v, want %d", got, d.Redelivered, i)
			}
			settle(q, func(tx *store.Tx) { q.Ack(tx, d.Entry) })
		}
		b.restart()
		q = b.queue(1, s)
		if c := q.Counts(); c.Ready != n-1000 {
			t.Fatalf("%d ready after the restart, want %d", c.Ready, n-1000)
		}
		b.publish(q, "last")
		same(t, "after the restart", b.drain(q), append(numbers(1000, n), "last"))
		b.restart()
		if c := b.queue(1, s).Counts(); c.Ready != 0 {
			t.Fatalf("%d acknowledged messages came back", c.Ready)
		}
	})
}

func TestBacklogKeepsOnlyItsEndsInMemory(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, Defaults(Classic, true))
	for i := range 10 * windowMessages {
		b.publish(q, strconv.Itoa(i))
		if i%windowMessages == 0 {
			b.sync()
		}
	}
	l := q.levels[0]
	if inMemory := l.head.len() + l.tail.len(); inMemory > 4*windowMessages {
		t.Fatalf("%d messages in memory, %d on disk", inMemory, l.disk)
	}
	same(t, "drained", b.drain(q), numbers(0, 10*windowMessages))
}

func TestTransientMessagesEndWithTheProcess(t *testing.T) {
	b := newBench(t)
	s := Defaults(Classic, true)
	q := b.queue(1, s)
	for i := range 3 * windowMessages { // more than the window, so that some spill
		m := persistent(strconv.Itoa(i))
		m.Persistent = i%2 == 0
		b.publishMessage(q, m)
	}
	b.restart()
	q = b.queue(1, s)
	var want []string
	for i := 0; i < 3*windowMessages; i += 2 {
		want = append(want, strconv.Itoa(i))
	}
	same(t, "after the restart", b.drain(q), want)
}

func TestQuorumKeepsTransientMessages(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, Defaults(Quorum, true))
	m := persistent("kept")
	m.Persistent = false
	b.publishMessage(q, m)
	b.restart()
	same(t, "after the restart", b.drain(b.queue(1, Defaults(Quorum, true))), []string{"kept"})
}

func TestUnacknowledgedComesBackRedeliveredAfterRestart(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		q := b.queue(1, s)
		b.publish(q, "a", "b", "c")
		q.Get(&Consumer{})
		q.Get(&Consumer{})
		b.restart()
		q = b.queue(1, s)
		for i, want := range []bool{true, true, false} {
			d, _ := q.Get(&Consumer{NoAck: true})
			if d.Redelivered != want {
				t.Errorf("message %d: redelivered %v, want %v", i, d.Redelivered, want)
			}
		}
	})
}

func TestExpiryOnlyAtTheHead(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		b.targets["dead"] = b.queue(99, Defaults(Classic, true))
		q := b.queue(1, dlx(s, "dead"))
		b.publishMessage(q, withTTL("slow", 3*time.Second))
		b.publishMessage(q, withTTL("fast", 300*time.Millisecond))
		b.clock.Advance(3*time.Second - time.Nanosecond)
		same(t, "before the head expires", b.letters, nil)
		b.clock.Advance(time.Nanosecond)
		same(t, "then", b.letters, []string{"expired slow", "expired fast"})
		same(t, "in the target", b.drain(b.targets["dead"]), []string{"slow", "fast"})
		if c := q.Counts(); c.Ready != 0 {
			t.Fatalf("%d still ready", c.Ready)
		}
	})
}

func TestSmallerTTLWins(t *testing.T) {
	b := newBench(t)
	s := dlx(Defaults(Classic, true), "none")
	s.TTL = 2 * time.Second
	for _, c := range []struct{ own, want time.Duration }{
		{message.NoExpiration, 2 * time.Second}, {time.Second, time.Second}, {5 * time.Second, 2 * time.Second},
	} {
		b.letters = nil
		q := b.queue(1, s)
		b.publishMessage(q, withTTL("m", c.own))
		b.clock.Advance(c.want - 1)
		if len(b.letters) != 0 {
			t.Fatalf("own TTL %v: early", c.own)
		}
		b.clock.Advance(1)
		if len(b.letters) != 1 {
			t.Fatalf("own TTL %v: not expired", c.own)
		}
	}
}

func TestTTLZero(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		s = dlx(s, "none")
		s.TTL = 0
		q := b.queue(1, s)
		b.publish(q, "nobody")
		same(t, "without a consumer", b.letters, []string{"expired nobody"})
		sink := &tray{limit: 1}
		if err := q.Consume(&Consumer{Sink: sink}); err != nil {
			t.Fatal(err)
		}
		b.publish(q, "somebody")
		same(t, "with one", sink.bodies(), []string{"somebody"})
		settle(q, func(tx *store.Tx) { q.Requeue(tx, false, sink.got[0].Entry) })
		same(t, "requeued", b.letters, []string{"expired nobody", "expired somebody"})
	})
}

func TestExpiryGoesOnAfterRestart(t *testing.T) {
	b := newBench(t)
	s := dlx(Defaults(Quorum, true), "none")
	s.TTL = time.Hour
	b.publish(b.queue(1, s), "m")
	b.clock.Advance(20 * time.Minute)
	b.restart()
	b.queue(1, s)
	b.clock.Advance(40*time.Minute - 1)
	same(t, "a moment before", b.letters, nil)
	b.clock.Advance(1)
	same(t, "then", b.letters, []string{"expired m"})
}

func TestUnacknowledgedDoesNotExpire(t *testing.T) {
	b := newBench(t)
	s := dlx(Defaults(Classic, true), "none")
	s.TTL = time.Second
	q := b.queue(1, s)
	b.publish(q, "m")
	d, _ := q.Get(&Consumer{})
	b.clock.Advance(time.Minute)
	same(t, "out", b.letters, nil)
	settle(q, func(tx *store.Tx) { q.Requeue(tx, false, d.Entry) })
	same(t, "requeued", b.letters, []string{"expired m"})
}

func TestRequeuePosition(t *testing.T) {
	take := func(q *Queue, n int) []*Entry {
		var all []*Entry
		for range n {
			d, _ := q.Get(&Consumer{})
			all = append(all, d.Entry)
		}
		return all
	}
	unlimited := Defaults(Quorum, true)
	unlimited.DeliveryLimit = Unlimited
	for _, c := range []struct {
		name     string
		settings Settings
		want     []string
	}{
		{"classic: its old place", Defaults(Classic, true), []string{"a", "b", "c", "d"}},
		{"quorum: ahead, in the order of return", Defaults(Quorum, true), []string{"c", "a", "b", "d"}},
		{"quorum without a limit: the same", unlimited, []string{"c", "a", "b", "d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			q := b.queue(1, c.settings)
			b.publish(q, "a", "b", "c", "d")
			out := take(q, 3)
			settle(q, func(tx *store.Tx) { q.Requeue(tx, false, out[2]) })
			settle(q, func(tx *store.Tx) { q.Requeue(tx, false, out[0], out[1]) })
			same(t, "order", b.drain(q), c.want)
		})
	}
}

func TestDeliveryLimit(t *testing.T) {
	b := newBench(t)
	s := dlx(Defaults(Quorum, true), "none")
	s.DeliveryLimit = 2
	q := b.queue(1, s)
	b.publish(q, "poison")
	for i := range 3 {
		d, ok := q.Get(&Consumer{})
		if !ok {
			t.Fatalf("delivery %d: nothing there", i+1)
		}
		if want := (message.Counts{Returns: uint32(i), Failures: uint32(i)}); d.Counts != want || d.Redelivered != (i > 0) {
			t.Fatalf("delivery %d: counts %+v redelivered %v", i+1, d.Counts, d.Redelivered)
		}
		settle(q, func(tx *store.Tx) { q.Requeue(tx, true, d.Entry) })
	}
	same(t, "dead letters", b.letters, []string{"delivery_limit poison"})
}

func TestNackDoesNotCountAsFailure(t *testing.T) {
	b := newBench(t)
	s := dlx(Defaults(Quorum, true), "none")
	s.DeliveryLimit = 1
	q := b.queue(1, s)
	b.publish(q, "m")
	for range 5 {
		d, _ := q.Get(&Consumer{})
		settle(q, func(tx *store.Tx) { q.Requeue(tx, false, d.Entry) })
	}
	d, ok := q.Get(&Consumer{})
	if want := (message.Counts{Returns: 5}); !ok || d.Counts != want {
		t.Fatalf("found %v, counts %+v", ok, d.Counts)
	}
}

func TestCountsSurviveRestart(t *testing.T) {
	b := newBench(t)
	s := Defaults(Quorum, true)
	q := b.queue(1, s)
	b.publish(q, "m")
	for range 3 {
		d, _ := q.Get(&Consumer{})
		settle(q, func(tx *store.Tx) { q.Requeue(tx, true, d.Entry) })
	}
	b.restart()
	d, _ := b.queue(1, s).Get(&Consumer{})
	if want := (message.Counts{Returns: 3, Failures: 3}); d.Counts != want || !d.Redelivered {
		t.Fatalf("counts %+v redelivered %v", d.Counts, d.Redelivered)
	}
}

func TestRejectDeadLettersInOrder(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		b.targets["dead"] = b.queue(99, Defaults(Classic, true))
		q := b.queue(1, dlx(s, "dead"))
		b.publish(q, numbers(0, 1000)...)
		sink := &tray{}
		if err := q.Consume(&Consumer{Sink: sink}); err != nil {
			t.Fatal(err)
		}
		var entries []*Entry
		for _, d := range sink.got {
			entries = append(entries, d.Entry)
		}
		settle(q, func(tx *store.Tx) { q.Reject(tx, true, entries...) })
		b.restart()
		same(t, "in the target after a restart", b.drain(b.queue(99, Defaults(Classic, true))), numbers(0, 1000))
		if c := b.queue(1, s).Counts(); c.Ready != 0 {
			t.Fatalf("%d are in the source too", c.Ready)
		}
	})
}

func TestWithoutDeadLetterExchangeRejectedIsGone(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, Defaults(Classic, true))
	b.publish(q, "m")
	d, _ := q.Get(&Consumer{})
	settle(q, func(tx *store.Tx) { q.Reject(tx, false, d.Entry) })
	b.restart()
	if c := b.queue(1, Defaults(Classic, true)).Counts(); c.Ready != 0 {
		t.Fatal("it came back")
	}
}

func TestAtLeastOnceHoldsWhatNobodyTakes(t *testing.T) {
	b := newBench(t)
	s := dlx(Defaults(Quorum, true), "later")
	s.AtLeastOnce, s.Overflow, s.TTL = true, RejectPublish, time.Second
	q := b.queue(1, s)
	b.publish(q, numbers(0, 40)...)
	b.clock.Advance(2 * time.Second)
	if len(b.letters) != maxHeld {
		t.Fatalf("%d were tried, want %d", len(b.letters), maxHeld)
	}
	b.restart()
	q = b.queue(1, s)
	b.targets["later"] = b.queue(99, Defaults(Classic, true))
	b.clock.Advance(heldRetry)
	same(t, "once there is a target", b.drain(b.targets["later"]), numbers(0, 40))
	if len(q.held) != 0 || len(q.outbox) != 0 {
		t.Fatalf("%d held, %d waiting", len(q.held), len(q.outbox))
	}
}

func TestAtLeastOnceRetries(t *testing.T) {
	b := newBench(t)
	s := dlx(Defaults(Quorum, true), "later")
	s.AtLeastOnce, s.Overflow, s.TTL = true, RejectPublish, time.Second
	q := b.queue(1, s)
	b.publish(q, numbers(0, 40)...)
	b.clock.Advance(2 * time.Second)
	b.targets["later"] = b.queue(99, Defaults(Classic, true))
	b.clock.Advance(heldRetry)
	same(t, "once there is a target", b.drain(b.targets["later"]), numbers(0, 40))
	if len(q.held) != 0 || len(q.outbox) != 0 {
		t.Fatalf("%d held, %d waiting", len(q.held), len(q.outbox))
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		overflow Overflow
		outcomes []Outcome
		ready    []string
		letters  []string
	}{
		{DropHead, []Outcome{Accepted, Accepted, Accepted}, []string{"b", "c"}, []string{"maxlen a"}},
		{RejectPublish, []Outcome{Accepted, Accepted, Rejected}, []string{"a", "b"}, nil},
		{RejectPublishDLX, []Outcome{Accepted, Accepted, Rejected}, []string{"a", "b"}, []string{"maxlen c"}},
	} {
		for name, limit := range map[string]func(*Settings){
			"messages": func(s *Settings) { s.MaxLength = 2 },
			"bytes":    func(s *Settings) { s.MaxBytes = 2 },
		} {
			t.Run(string(c.overflow)+" by "+name, func(t *testing.T) {
				b := newBench(t)
				s := dlx(Defaults(Classic, true), "none")
				s.Overflow = c.overflow
				limit(&s)
				q := b.queue(1, s)
				for i, body := range []string{"a", "b", "c"} {
					if o := b.publishMessage(q, persistent(body)); o != c.outcomes[i] {
						t.Errorf("%s: outcome %v, want %v", body, o, c.outcomes[i])
					}
				}
				same(t, "dead letters", b.letters, c.letters)
				same(t, "ready", b.drain(q), c.ready)
			})
		}
	}
}

func TestPriorities(t *testing.T) {
	b := newBench(t)
	s := Defaults(Classic, true)
	s.MaxPriority = 5
	q := b.queue(1, s)
	for body, priority := range map[string]int{"low": 0, "middle": 3, "high": 5} {
		m := persistent(body)
		m.Priority = priority
		b.publishMessage(q, m)
	}
	over := persistent("over")
	over.Priority = 200
	b.publishMessage(q, over)
	d, _ := q.Get(&Consumer{})
	settle(q, func(tx *store.Tx) { q.Requeue(tx, false, d.Entry) })
	b.restart()
	same(t, "order", b.drain(b.queue(1, s)), []string{"high", "over", "middle", "low"})
}

func TestConsumersTakeTurnsWithinTheirPrefetch(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, Defaults(Classic, true))
	one, two := &tray{}, &tray{}
	for _, s := range []*tray{one, two} {
		if err := q.Consume(&Consumer{Sink: s, Prefetch: 2}); err != nil {
			t.Fatal(err)
		}
	}
	b.publish(q, "a", "b", "c", "d", "e")
	same(t, "one", one.bodies(), []string{"a", "c"})
	same(t, "two", two.bodies(), []string{"b", "d"})
	settle(q, func(tx *store.Tx) { q.Ack(tx, two.got[0].Entry) })
	same(t, "two after an ack", two.bodies(), []string{"b", "d", "e"})
	if c := q.Counts(); c != (Counts{Ready: 0, Unacked: 4, Consumers: 2, Bound: 2}) {
		t.Fatalf("counts %+v", c)
	}
}

func TestConsumerPriority(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, Defaults(Classic, true))
	low, high := &tray{}, &tray{limit: 2}
	preferred := &Consumer{Sink: high, Priority: 10}
	for _, c := range []*Consumer{{Sink: low}, preferred} {
		if err := q.Consume(c); err != nil {
			t.Fatal(err)
		}
	}
	b.publish(q, "a", "b", "c")
	same(t, "high", high.bodies(), []string{"a", "b"})
	same(t, "low, once the high one is full", low.bodies(), []string{"c"})
	high.limit = 0
	q.Resume(preferred)
	b.publish(q, "d")
	same(t, "high again", high.bodies(), []string{"a", "b", "d"})
}

func TestSingleActiveConsumer(t *testing.T) {
	b := newBench(t)
	s := Defaults(Quorum, true)
	s.SingleActiveConsumer = true
	q := b.queue(1, s)
	one, two := &tray{}, &tray{}
	first, second := &Consumer{Sink: one, Prefetch: 1}, &Consumer{Sink: two}
	for _, c := range []*Consumer{first, second} {
		if err := q.Consume(c); err != nil {
			t.Fatal(err)
		}
	}
	b.publish(q, "a", "b")
	same(t, "the first alone", append(one.bodies(), two.bodies()...), []string{"a"})
	q.Cancel(first)
	same(t, "the second takes over", two.bodies(), []string{"b"})
}

func TestExclusiveConsumer(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, Defaults(Classic, true))
	alone := &Consumer{Sink: &tray{}, Exclusive: true}
	if err := q.Consume(alone); err != nil {
		t.Fatal(err)
	}
	if err := q.Consume(&Consumer{Sink: &tray{}}); err != ErrExclusiveUse {
		t.Fatalf("beside an exclusive one: %v", err)
	}
	if last := q.Cancel(alone); !last {
		t.Fatal("it was the last one")
	}
	if err := q.Consume(&Consumer{Sink: &tray{}}); err != nil {
		t.Fatal(err)
	}
	if err := q.Consume(alone); err != ErrExclusiveUse {
		t.Fatalf("exclusive beside another: %v", err)
	}
}

func TestCancelledConsumerKeepsWhatItHas(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, Defaults(Classic, true))
	sink := &tray{}
	c := &Consumer{Sink: sink, Prefetch: 1}
	if err := q.Consume(c); err != nil {
		t.Fatal(err)
	}
	b.publish(q, "a", "b")
	q.Cancel(c)
	if n := q.Counts(); n != (Counts{Ready: 1, Unacked: 1}) {
		t.Fatalf("counts %+v", n)
	}
	settle(q, func(tx *store.Tx) { q.Ack(tx, sink.got[0].Entry) })
	same(t, "delivered", sink.bodies(), []string{"a"})
}

func TestPurgeLeavesTheUnacknowledged(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		q := b.queue(1, s)
		const n = 3 * windowMessages
		b.publish(q, numbers(0, n)...)
		out, _ := q.Get(&Consumer{})
		back, _ := q.Get(&Consumer{})
		settle(q, func(tx *store.Tx) { q.Requeue(tx, false, back.Entry) })
		purged, err := q.Purge(t.Context())
		if err != nil || purged != n-1 {
			t.Fatalf("purged %d, %v", purged, err)
		}
		c := q.Counts()
		if want := map[Type]int{Quorum: 1}[s.Type]; c.Bound != want {
			t.Errorf("%d bound, want %d", c.Bound, want)
		}
		if c.Bound = 0; c != (Counts{Unacked: 1}) {
			t.Fatalf("counts %+v", c)
		}
		settle(q, func(tx *store.Tx) { q.Requeue(tx, false, out.Entry) })
		b.publish(q, "new")
		b.restart()
		same(t, "after the restart", b.drain(b.queue(1, s)), []string{"0", "new"})
	})
}

func TestDelete(t *testing.T) {
	b := newBench(t)
	s := Defaults(Classic, true)
	q := b.queue(1, s)
	sink := &tray{limit: 1}
	if err := q.Consume(&Consumer{Sink: sink}); err != nil {
		t.Fatal(err)
	}
	b.publish(q, "a", "b", "c")
	tx := b.store.Begin()
	n, err := q.Delete(tx, nil)
	tx.End()
	if n != 2 || err != nil || !sink.gone {
		t.Fatalf("%d ready, %v, told %v", n, err, sink.gone)
	}
	if o := b.publishMessage(q, persistent("late")); o != Gone {
		t.Fatalf("publishing to it: %v", o)
	}
	settle(q, func(tx *store.Tx) { q.Ack(tx, sink.got[0].Entry) })
	b.restart()
	if c := b.queue(1, s).Counts(); c.Ready != 0 {
		t.Fatalf("%d messages are still there", c.Ready)
	}
}

func TestExpires(t *testing.T) {
	b := newBench(t)
	s := Defaults(Classic, true)
	s.Expires = time.Minute
	q := b.queue(1, s)
	b.clock.Advance(50 * time.Second)
	b.publish(q, "publishing is no use of it")
	b.clock.Advance(9 * time.Second)
	q.Get(&Consumer{NoAck: true})
	b.clock.Advance(59 * time.Second)
	c := &Consumer{Sink: &tray{}}
	if err := q.Consume(c); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	q.Cancel(c)
	b.clock.Advance(time.Minute - 1)
	if len(b.expired) != 0 {
		t.Fatal("early")
	}
	b.clock.Advance(1)
	if len(b.expired) != 1 {
		t.Fatal("not expired")
	}
}

func TestNoAckIsDoneOnDelivery(t *testing.T) {
	b := newBench(t)
	s := Defaults(Classic, true)
	q := b.queue(1, s)
	sink := &tray{}
	if err := q.Consume(&Consumer{Sink: sink, NoAck: true, Prefetch: 1}); err != nil {
		t.Fatal(err)
	}
	b.publish(q, "a", "b")
	same(t, "delivered", sink.bodies(), []string{"a", "b"})
	if c := q.Counts(); c.Unacked != 0 {
		t.Fatalf("counts %+v", c)
	}
	b.restart()
	if c := b.queue(1, s).Counts(); c.Ready != 0 {
		t.Fatal("they came back")
	}
}

// settle has entries settled in a unit of work of their own.
func settle(q *Queue, f func(tx *store.Tx)) {
	tx := q.store.Begin()
	f(tx)
	tx.End()
	q.Settle()
}
