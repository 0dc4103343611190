package dormouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// park fills the parking lot of a queue with messages of the bodies 0, 1, ...
func park(t *testing.T, b *testBroker, c *Client, q string, n int) {
	t.Helper()
	done := make(chan struct{}, n)
	k := mustConsume(t, c, q, ConsumeOptions{Retry: RetryPolicy{MaxAttempts: 1, Exhausted: ExhaustedPark}}, func(_ context.Context, d *Delivery) error {
		done <- struct{}{}
		return fmt.Errorf("cannot do %s", d.Body)
	})
	for i := range n {
		if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: fmt.Appendf(nil, "%d", i), MessageID: fmt.Sprint("id-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		receive(t, "handler", done)
	}
	if err := k.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func parkedBodies(t *testing.T, c *Client, q string, s Selection) []string {
	t.Helper()
	var bodies []string
	for m, err := range c.Parked(t.Context(), q, s) {
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}

func TestParkedIsListedWithoutBeingUsedUp(t *testing.T) {
	bothTypes(t, func(t *testing.T, b *testBroker, typ QueueType) {
		c := b.connect()
		q := b.workQueue(c, typ)
		park(t, b, c, q, 6)
		all := []string{"0", "1", "2", "3", "4", "5"}
		// RabbitMQ 4 drops at 20 deliveries unless told otherwise.
		for round := range 30 {
			if got := parkedBodies(t, c, q, Selection{}); !slices.Equal(got, all) {
				t.Fatalf("round %d: %v", round, got)
			}
			if got := parkedBodies(t, c, q, Selection{Limit: 2}); !slices.Equal(got, all[:2]) {
				t.Fatalf("round %d, first two: %v", round, got)
			}
		}
		odd := func(m *ParkedMessage) bool { return m.Body[0]%2 == 1 }
		if got := parkedBodies(t, c, q, Selection{Match: odd, Limit: 2}); !slices.Equal(got, []string{"1", "3"}) {
			t.Errorf("odd ones: %v", got)
		}
		for m, err := range c.Parked(t.Context(), q, Selection{}) {
			if err != nil {
				t.Fatal(err)
			}
			if m.ID != "id-0" || m.Queue != q || m.Attempts != 1 || m.Reason != ReasonError || m.Error != "cannot do 0" || m.RoutingKey != q || time.Since(m.FirstTime) > time.Minute {
				t.Errorf("parked %+v", m)
			}
			break
		}
		if got := parkedBodies(t, c, q, Selection{}); !slices.Equal(got, all) {
			t.Errorf("after leaving the loop early: %v", got)
		}
	})
}

func TestRedriveAndDiscard(t *testing.T) {
	bothTypes(t, func(t *testing.T, b *testBroker, typ QueueType) {
		c := b.connect()
		q := b.workQueue(c, typ)
		park(t, b, c, q, 10)
		got := b.consumeRaw(q)

		tally, err := c.Redrive(t.Context(), q, Selection{Match: MatchID("id-3")}, RedriveOptions{})
		if err != nil || tally != (Tally{Done: 1, Kept: 9}) {
			t.Fatalf("one: %+v, %v", tally, err)
		}
		d := receive(t, "redriven", got)
		if string(d.Body) != "3" || d.MessageId != "id-3" {
			t.Errorf("redriven %s %s", d.Body, d.MessageId)
		}
		for _, name := range []string{"retry-count", "retry-error", "retry-reason", "retry-first-time"} {
			if v, ok := d.Headers[name]; ok {
				t.Errorf("redriven with %s %v", name, v)
			}
		}
		if d.Headers["retry-routing-key"] != q {
			t.Errorf("origin lost: %v", d.Headers)
		}
		tally, err = c.DiscardParked(t.Context(), q, Selection{Match: func(m *ParkedMessage) bool { return m.Body[0] > '7' }})
		if err != nil || tally != (Tally{Done: 2, Kept: 7}) {
			t.Fatalf("discard: %+v, %v", tally, err)
		}
		if got := parkedBodies(t, c, q, Selection{}); !slices.Equal(got, []string{"0", "1", "2", "4", "5", "6", "7"}) {
			t.Errorf("left: %v", got)
		}
		begun := time.Now()
		tally, err = c.Redrive(t.Context(), q, Selection{Limit: 5}, RedriveOptions{Rate: 20})
		if err != nil || tally != (Tally{Done: 5}) {
			t.Fatalf("five: %+v, %v", tally, err)
		}
		if took := time.Since(begun); took < 4*50*time.Millisecond {
			t.Errorf("5 messages at 20/s took %v", took)
		}
		tally, err = c.Redrive(t.Context(), q, Selection{}, RedriveOptions{})
		if err != nil || tally != (Tally{Done: 2}) {
			t.Fatalf("all: %+v, %v", tally, err)
		}
		for _, want := range []string{"0", "1", "2", "4", "5", "6", "7"} {
			if d := receive(t, "redriven", got); string(d.Body) != want {
				t.Errorf("redriven %s, want %s", d.Body, want)
			}
		}
		if got := parkedBodies(t, c, q, Selection{}); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
	})
}

// Messages that are parked again while they are redriven are not redriven in the same call for ever.
func TestRedriveEnds(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.workQueue(c, Quorum)
		park(t, b, c, q, 5)
		mustConsume(t, c, q, ConsumeOptions{Retry: RetryPolicy{MaxAttempts: 1, Exhausted: ExhaustedPark}},
			func(context.Context, *Delivery) error { return errors.New("still not") })
		tally, err := c.Redrive(t.Context(), q, Selection{}, RedriveOptions{Rate: 50})
		if err != nil || tally.Done != 5 {
			t.Errorf("%+v, %v", tally, err)
		}
	})
}

func TestRedriveKeepsWhatItCannotSend(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.workQueue(c, Quorum)
		park(t, b, c, q, 3)
		if _, err := b.channel().QueueDelete(q, false, false, false); err != nil {
			t.Fatal(err)
		}
		tally, err := c.Redrive(t.Context(), q, Selection{}, RedriveOptions{})
		if !errors.Is(err, ErrUnroutable) || tally != (Tally{Kept: 3}) {
			t.Errorf("%+v, %v", tally, err)
		}
		if got := parkedBodies(t, c, q, Selection{}); !slices.Equal(got, []string{"0", "1", "2"}) {
			t.Errorf("left: %v", got)
		}
	})
}

// What another consumer rejects, and what the broker takes out at its delivery limit, is parked by the broker.
func TestParkedByTheBroker(t *testing.T) {
	bothTypes(t, func(t *testing.T, b *testBroker, typ QueueType) {
		c := b.connect()
		x, q := b.name("x"), b.name("q")
		work := Queue{Name: q, Type: typ, Bindings: []Binding{{Exchange: x, RoutingKey: "#"}}}
		if typ == Quorum {
			work.Args = map[string]any{"x-delivery-limit": 2}
		}
		b.declare(c, Topology{Exchanges: []Exchange{{Name: x}}, Queues: []Queue{work}})
		publish := func(id string, after time.Duration) {
			if err := c.Publish(t.Context(), Message{Exchange: x, RoutingKey: "a.b", MessageID: id, After: after}); err != nil {
				t.Fatal(err)
			}
		}
		ch := b.channel()
		next := func() (d amqp.Delivery) {
			t.Helper()
			until(t, "a message", func() (ok bool) {
				var err error
				if d, ok, err = ch.Get(q, false); err != nil {
					t.Fatal(err)
				}
				return ok
			})
			return d
		}
		want := map[string]Reason{"rejected": ReasonRejected, "rejected after a delay": ReasonRejected}
		publish("rejected", 0)
		d := next()
		if err := d.Reject(false); err != nil {
			t.Fatal(err)
		}
		publish("rejected after a delay", 100*time.Millisecond)
		d = next()
		if err := d.Reject(false); err != nil {
			t.Fatal(err)
		}
		if typ == Quorum {
			want["delivery limit"] = ReasonCrash
			publish("delivery limit", 0)
			for range 3 {
				d := next()
				if err := d.Reject(true); err != nil {
					t.Fatal(err)
				}
			}
		}
		until(t, "all to be parked", func() bool { return b.ready(ParkedQueue(q)) == len(want) })
		for m, err := range c.Parked(t.Context(), q, Selection{}) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Reason != want[m.ID] || m.Exchange != x || m.RoutingKey != "a.b" {
				t.Errorf("%s: reason %s from %q %q", m.ID, m.Reason, m.Exchange, m.RoutingKey)
			}
			delete(want, m.ID)
		}
		if len(want) > 0 {
			t.Errorf("not listed: %v", want)
		}
	})
}

func TestParkedRefusesWhatItWouldUseUp(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.name("q")
		var err error
		for _, err = range c.Parked(t.Context(), q, Selection{}) {
		}
		if !isCode(err, amqp.NotFound) {
			t.Errorf("no parking lot: %v", err)
		}
		if _, err := b.channel().QueueDeclare(ParkedQueue(q), true, false, false, false, amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": 3}); err != nil {
			t.Fatal(err)
		}
		for _, err = range c.Parked(t.Context(), q, Selection{}) {
		}
		var mismatch *MismatchError
		if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), ParkedQueue(q)) {
			t.Errorf("a parking lot with a low delivery limit: %v", err)
		}
	})
}
