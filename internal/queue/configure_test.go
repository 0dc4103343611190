package queue

import (
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

func TestConfigureLimits(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		q := b.queue(1, s)
		b.publish(q, numbers(0, 6)...)
		s = dlx(s, "none")
		s.MaxLength = 4
		q.Configure(s)
		same(t, "dropped at once", b.letters, []string{"maxlen 0", "maxlen 1"})
		s.MaxLength, s.Overflow = 1, RejectPublish
		q.Configure(s)
		if s.Type == Classic { // dropped while the queue still drops
			same(t, "dropped", b.letters, []string{"maxlen 0", "maxlen 1", "maxlen 2", "maxlen 3", "maxlen 4"})
		}
		if o := b.publishMessage(q, persistent("one too many")); o != Rejected {
			t.Errorf("outcome %v", o)
		}
	})
}

func TestConfigureWithoutDeadLetterExchange(t *testing.T) {
	b := newBench(t)
	s := dlx(Defaults(Quorum, true), "none")
	s.AtLeastOnce, s.Overflow = true, RejectPublish
	q := b.queue(1, s)
	b.publish(q, numbers(0, 40)...)
	for range 40 {
		d, _ := q.Get(&Consumer{})
		settle(q, func(tx *store.Tx) { q.Reject(tx, true, d.Entry) })
	}
	if c := q.Counts(); len(q.outbox)+len(q.held) != 40 || c.Ready != 0 {
		t.Fatalf("%+v", c)
	}
	q.Configure(Defaults(Quorum, true))
	if n := len(q.outbox) + len(q.held); n != 0 {
		t.Fatalf("%d dead letters are there", n)
	}
	b.clock.Advance(time.Hour)
	b.restart()
	same(t, "after a restart", b.drain(b.queue(1, s)), nil)
}

func TestPurgeTakesTheDeadLettersOfAtLeastOnce(t *testing.T) {
	b := newBench(t)
	s := dlx(Defaults(Quorum, true), "none")
	s.AtLeastOnce, s.Overflow = true, RejectPublish
	q := b.queue(1, s)
	b.publish(q, "a", "b")
	d, _ := q.Get(&Consumer{})
	settle(q, func(tx *store.Tx) { q.Reject(tx, true, d.Entry) })
	if n, err := q.Purge(t.Context()); n != 2 || err != nil || q.Counts() != (Counts{}) {
		t.Fatalf("purged %d, %v", n, err)
	}
}

func TestConfigureExpiryOfWhatIsThere(t *testing.T) {
	both(t, func(t *testing.T, s Settings) {
		b := newBench(t)
		s.TTL = time.Minute
		q := b.queue(1, s)
		b.publish(q, "a")
		s.TTL = Unlimited
		q.Configure(s)
		b.publish(q, "b")
		b.clock.Advance(time.Minute)
		same(t, "what is left", b.drain(q), []string{"b"})
	})
}
