package queue

import (
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

func retrying(on RetryOn) Settings {
	s := Defaults(Quorum, true)
	s.Retry = Retry{On: on, Min: time.Second, Max: 2500 * time.Millisecond}
	return s
}

func TestRetryDelay(t *testing.T) {
	r := Retry{On: RetryAll, Min: time.Second, Max: 2500 * time.Millisecond}
	for failures, want := range []time.Duration{time.Second, time.Second, 2 * time.Second, 2500 * time.Millisecond, 2500 * time.Millisecond} {
		if got := r.delay(true, uint32(failures)); got != want {
			t.Errorf("after %d failures %v, want %v", failures, got, want)
		}
	}
	for _, c := range []struct {
		on               RetryOn
		failed, returned bool
	}{{RetryAll, true, true}, {RetryFailed, true, false}, {RetryReturned, false, true}, {RetryNone, false, false}, {"", false, false}} {
		r := Retry{On: c.on, Min: 1, Max: 1}
		if got := r.delay(true, 1) > 0; got != c.failed {
			t.Errorf("%q delays what failed: %v", c.on, got)
		}
		if got := r.delay(false, 1) > 0; got != c.returned {
			t.Errorf("%q delays what was returned: %v", c.on, got)
		}
	}
	if (Retry{On: RetryAll}).Sane() != (Retry{}) || (Retry{On: "some", Min: 1}).Sane() != (Retry{}) || (Retry{On: RetryAll, Min: 5}).Sane().Max != 5 {
		t.Error("not sane")
	}
}

func TestDelayedRetry(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, retrying(RetryFailed))
	_, sink := b.consumes(q, &Consumer{Prefetch: 1})
	b.publish(q, "a")
	for i, wait := range []time.Duration{time.Second, 2 * time.Second, 2500 * time.Millisecond} {
		settle(q, func(tx *store.Tx) { q.Requeue(tx, true, sink.got[i].Entry) })
		if c := q.Counts(); c.Delayed != 1 || c.Ready != 0 || c.Unacked != 0 {
			t.Fatalf("round %d: %+v", i, c)
		}
		b.clock.Advance(wait - 1)
		if len(sink.got) != i+1 {
			t.Fatalf("round %d: it is back early", i)
		}
		b.clock.Advance(1)
		if len(sink.got) != i+2 {
			t.Fatalf("round %d: it is not back", i)
		}
		if d := sink.got[i+1]; d.Counts != (message.Counts{Returns: uint32(i + 1), Failures: uint32(i + 1)}) {
			t.Fatalf("round %d: %+v", i, d.Counts)
		}
	}
	settle(q, func(tx *store.Tx) { q.Requeue(tx, false, sink.got[3].Entry) })
	if len(sink.got) != 5 {
		t.Error("what did not fail was delayed")
	}
}

func TestDelayedAreReturnedOnesWhenTheirTimeHasCome(t *testing.T) {
	b := newBench(t)
	q := b.queue(1, retrying(RetryAll))
	b.publish(q, "a", "b")
	first, _ := q.Get(&Consumer{})
	second, _ := q.Get(&Consumer{})
	b.publish(q, "c")
	settle(q, func(tx *store.Tx) { q.Requeue(tx, false, second.Entry) })
	b.clock.Advance(time.Millisecond)
	settle(q, func(tx *store.Tx) { q.Requeue(tx, false, first.Entry) })
	b.clock.Advance(time.Minute)
	same(t, "order", b.drain(q), []string{"b", "a", "c"})
}

func TestDelayedSurviveARestart(t *testing.T) {
	b := newBench(t)
	s := retrying(RetryAll)
	q := b.queue(1, s)
	b.publish(q, "soon", "out", "later", "ready")
	soon, _ := q.Get(&Consumer{})
	q.Get(&Consumer{})
	later, _ := q.Get(&Consumer{})
	settle(q, func(tx *store.Tx) { q.Requeue(tx, true, soon.Entry) })
	b.clock.Advance(900 * time.Millisecond)
	settle(q, func(tx *store.Tx) { q.Requeue(tx, true, later.Entry) })
	b.restart()
	q = b.queue(1, s)
	if c := q.Counts(); c.Delayed != 2 || c.Ready != 2 {
		t.Fatalf("after the restart %+v", c)
	}
	same(t, "ready", b.drain(q), []string{"out", "ready"})
	b.clock.Advance(100 * time.Millisecond)
	d, ok := q.Get(&Consumer{})
	if !ok || string(d.Message.Body) != "soon" || d.Counts != (message.Counts{Returns: 1, Failures: 1}) || !d.Redelivered {
		t.Fatalf("found %v, %+v", ok, d)
	}
	settle(q, func(tx *store.Tx) { q.Ack(tx, d.Entry) })
	b.restart()
	b.clock.Advance(time.Minute) // while it is down
	q = b.queue(1, s)
	b.publish(q, "new")
	same(t, "what was due meanwhile", b.drain(q), []string{"later", "new"})
}

func TestDelayedCountForLimits(t *testing.T) {
	b := newBench(t)
	s := retrying(RetryAll)
	s.MaxLength = 2
	q := b.queue(1, s)
	b.publish(q, "a", "b")
	a, _ := q.Get(&Consumer{})
	settle(q, func(tx *store.Tx) { q.Requeue(tx, false, a.Entry) })
	b.publish(q, "c", "d")
	if c := q.Counts(); c.Ready != 1 || c.Delayed != 1 {
		t.Fatalf("%+v", c)
	}
	n, err := q.Purge(t.Context())
	if err != nil || n != 2 || q.Counts() != (Counts{}) {
		t.Fatalf("purged %d, %v, %+v left", n, err, q.Counts())
	}
	b.clock.Advance(time.Minute)
	same(t, "after the purge", b.drain(q), nil)
	b.restart()
	same(t, "after a restart", b.drain(b.queue(1, s)), nil)
}

func TestDeliveryLimitComesBeforeTheDelay(t *testing.T) {
	b := newBench(t)
	s := dlx(retrying(RetryAll), "none")
	s.DeliveryLimit = 0
	q := b.queue(1, s)
	b.publish(q, "a")
	d, _ := q.Get(&Consumer{})
	settle(q, func(tx *store.Tx) { q.Requeue(tx, true, d.Entry) })
	same(t, "dead letters", b.letters, []string{"delivery_limit a"})
}
