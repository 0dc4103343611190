package queue

import (
	"testing"
	"time"
)

// A backlog that expires at one moment must neither be in memory as a whole nor lose its order.
func TestBacklogExpiresInParts(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		b.targets["dead"] = b.queue(99, Defaults(Classic, true))
		s = dlx(s, "dead")
		s.TTL = time.Second
		q := b.queue(1, s)
		const n = 5*outboxLimit + 7
		for _, body := range numbers(0, n) {
			b.publish(q, body)
		}
		most := 0
		b.observe = func() {
			q.mu.Lock()
			most = max(most, len(q.outbox))
			q.mu.Unlock()
		}
		b.clock.Advance(time.Second)
		same(t, "in the target", b.drain(b.targets["dead"]), numbers(0, n))
		if most == 0 || most > outboxLimit {
			t.Errorf("up to %d messages were taken out of the queue at once, want 1 to %d", most, outboxLimit)
		}
		if c := q.Counts(); c.Ready != 0 {
			t.Errorf("%d still ready", c.Ready)
		}
	})
}

func TestBacklogWithoutDeadLetterExchangeExpires(t *testing.T) {
	b := newBench(t)
	s := Defaults(Classic, true)
	s.TTL = time.Second
	q := b.queue(1, s)
	for _, body := range numbers(0, 2*expireLimit+7) {
		b.publish(q, body)
	}
	b.clock.Advance(time.Second)
	if c := q.Counts(); c.Ready != 0 {
		t.Errorf("%d still ready", c.Ready)
	}
}
