package dormouse

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A lost connection is no crash of this process: the message is handled again at once, with no attempt used up.
func TestConsumeThroughReconnect(t *testing.T) {
	bothTypes(t, func(t *testing.T, b *testBroker, typ QueueType) {
		attempts := make(chan AttemptEvent, 100)
		p := newProxy(t, b.url)
		c := b.connectTo(p.url(b.url), withAttempts(attempts))
		q := b.workQueue(c, typ)
		started := make(chan *Delivery, 10)
		causes := make(chan error, 10)
		proceed := make(chan struct{})
		mustConsume(t, c, q, ConsumeOptions{Retry: RetrySteps(time.Hour), Concurrency: 2}, func(ctx context.Context, d *Delivery) error {
			started <- d
			select {
			case <-ctx.Done():
				causes <- context.Cause(ctx)
				return ctx.Err()
			case <-proceed:
				return nil
			}
		})
		const n = 4 // two run, two stay in the queue: what was on the way to the client when it lost the connection could not be told from a crash
		for i := range n {
			if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: fmt.Appendf(nil, "%d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		for round := range 3 {
			for range 2 {
				if d := receive(t, "handler", started); d.Attempt != 1 {
					t.Errorf("round %d: attempt %d", round, d.Attempt)
				}
			}
			if round == 2 {
				break
			}
			until(t, "the others to wait", func() bool { return b.ready(q) == n-2 })
			p.cut()
			for range 2 {
				if cause := receive(t, "cause", causes); !errors.Is(cause, ErrConnectionLost) {
					t.Errorf("round %d: context ended by %v", round, cause)
				}
				if e := receive(t, "end", attempts); e.Outcome != OutcomeInterrupted {
					t.Errorf("round %d: ended as %+v", round, e)
				}
			}
		}
		close(proceed)
		for range n {
			if e := receive(t, "end", attempts); e.Outcome != OutcomeDone || e.Attempt != 1 {
				t.Errorf("ended as %+v", e)
			}
		}
		for len(started) > 0 {
			<-started
		}
		if parked := b.ready(ParkedQueue(q)); parked != 0 {
			t.Errorf("%d parked", parked)
		}
	})
}

// The consumer comes back when the broker cancels it because its queue was deleted, and somebody declares it again.
func TestConsumerCancelledByTheBroker(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.workQueue(c, Quorum)
		handled := make(chan string, 10)
		k := mustConsume(t, c, q, ConsumeOptions{Retry: RetrySteps(time.Second)}, func(_ context.Context, d *Delivery) error {
			handled <- string(d.Body)
			return nil
		})
		if _, err := b.channel().QueueDelete(q, false, false, false); err != nil {
			t.Fatal(err)
		}
		// RabbitMQ 4.3 sometimes ends the connection with INTERNAL_ERROR when a quorum queue comes back at once.
		until(t, "the queue to be declared again", func() bool { return c.Declare(t.Context(), Topology{Queues: []Queue{{Name: q}}}) == nil })
		if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte("again")}); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "message", handled); got != "again" {
			t.Errorf("handled %q", got)
		}
		if err := k.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		receive(t, "the consumer's end", closed(k.Done()))
	})
}

func TestShutdownDrains(t *testing.T) {
	bothTypes(t, func(t *testing.T, b *testBroker, typ QueueType) {
		attempts := make(chan AttemptEvent, 10)
		c := b.connect(withAttempts(attempts))
		q := b.workQueue(c, typ)
		started, proceed := make(chan string, 10), make(chan struct{})
		k := mustConsume(t, c, q, ConsumeOptions{
			Retry: RetrySteps(time.Hour), Concurrency: 3, Prefetch: 5, Grace: 100 * time.Millisecond,
		}, func(ctx context.Context, d *Delivery) error {
			started <- string(d.Body)
			switch string(d.Body) {
			case "quick":
				<-proceed
				return nil
			case "obeys":
				<-ctx.Done()
				return fmt.Errorf("interrupted: %w", context.Cause(ctx))
			default:
				select {}
			}
		})
		for _, body := range []string{"quick", "obeys", "stuck"} {
			if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte(body), MessageID: body}); err != nil {
				t.Fatal(err)
			}
			receive(t, body, started)
		}
		for _, body := range []string{"waiting 1", "waiting 2"} { // delivered ahead, never begun
			if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte(body), MessageID: body}); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "all to be delivered ahead", func() bool { return b.ready(q) == 0 })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- k.Shutdown(ctx) }()
		receive(t, "the stop of deliveries", closed(k.stop))
		close(proceed)
		if e := receive(t, "quick", attempts); e.MessageID != "quick" || e.Outcome != OutcomeDone {
			t.Errorf("first end %+v", e)
		}
		cancel()
		if err := receive(t, "shutdown", ended); !errors.Is(err, context.Canceled) {
			t.Errorf("shutdown: %v", err)
		}
		for range 2 {
			if e := receive(t, "the others", attempts); e.Outcome != OutcomeRequeued {
				t.Errorf("ended as %+v", e)
			}
		}
		// All that was not done is back, and no attempt was used up.
		again := make(chan *Delivery, 10)
		mustConsume(t, c, q, ConsumeOptions{Retry: RetrySteps(time.Hour), Concurrency: 5}, func(_ context.Context, d *Delivery) error {
			again <- d
			return nil
		})
		left := map[string]bool{"obeys": true, "stuck": true, "waiting 1": true, "waiting 2": true}
		for len(left) > 0 {
			d := receive(t, "message given back", again)
			if !left[string(d.Body)] || d.Attempt != 1 || d.RoutingKey != q {
				t.Errorf("came back: %+v", d)
			}
			delete(left, string(d.Body))
		}
	})
}

// A message whose exchange goes away while it waits ends in the unrouted queue, and blocks nobody.
func TestDestinationGone(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		x, q := b.name("x"), b.workQueue(c, Quorum)
		b.declare(c, Topology{Exchanges: []Exchange{{Name: x}}})
		unrouted := testPrefix + ".unrouted"
		if _, err := b.channel().QueuePurge(unrouted, false); err != nil {
			t.Fatal(err)
		}
		const lost = 40 // a quorum lane stands still at 32 that it cannot deliver
		for range lost {
			if err := c.Publish(t.Context(), Message{Exchange: x, RoutingKey: "k", After: time.Second, MessageID: "lost"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.channel().ExchangeDelete(x, false, false); err != nil {
			t.Fatal(err)
		}
		if err := c.Publish(t.Context(), Message{RoutingKey: q, After: time.Second, MessageID: "fine"}); err != nil {
			t.Fatal(err)
		}
		if d := receive(t, "the message behind them", b.consumeRaw(q)); d.MessageId != "fine" {
			t.Errorf("got %s", d.MessageId)
		}
		got := b.consumeRaw(unrouted)
		for range lost {
			if d := receive(t, "unrouted message", got); d.MessageId != "lost" || d.RoutingKey != "k" || d.Headers["due-exchange"] != x {
				t.Errorf("unrouted %s %s %v", d.MessageId, d.RoutingKey, d.Headers)
			}
		}
	})
}

// Loops that the broker runs alone, by reject and a waiting queue, are counted as well, and their counts are not taken for crashes.
func TestBrokerLoopsCount(t *testing.T) {
	bothTypes(t, func(t *testing.T, b *testBroker, typ QueueType) {
		c := b.connect()
		work, wait := b.name("work"), b.name("wait")
		b.declare(c, Topology{
			Exchanges:   []Exchange{{Name: wait, Kind: "fanout"}},
			Queues:      []Queue{{Name: work, Type: typ, DeadLetterExchange: wait}},
			FixedDelays: []FixedDelay{{Queue: wait, Type: typ, Delay: 50 * time.Millisecond, RoutingKey: work, Bindings: []Binding{{Exchange: wait}}}},
		})
		if err := c.Publish(t.Context(), Message{RoutingKey: work, MessageID: "m"}); err != nil {
			t.Fatal(err)
		}
		ch := b.channel()
		for range 2 {
			var d amqp.Delivery
			until(t, "the message", func() (ok bool) {
				var err error
				if d, ok, err = ch.Get(work, false); err != nil {
					t.Fatal(err)
				}
				return ok
			})
			if err := d.Reject(false); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "the message to come back", func() bool { return b.ready(work) > 0 })
		seen := make(chan *Delivery, 1)
		mustConsume(t, c, work, ConsumeOptions{Retry: RetrySteps(time.Hour, time.Hour, time.Hour)}, func(_ context.Context, d *Delivery) error {
			seen <- d
			return nil
		})
		if d := receive(t, "message", seen); d.Attempt != 3 {
			t.Errorf("attempt %d after two rejections, want 3: %v", d.Attempt, d.Headers)
		}
	})
}

// The topology is there again after the broker has lost it, as an in-memory broker does.
func TestTopologyIsDeclaredAgain(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		prefix := testPrefix + ".again"
		b.t.Cleanup(func() {
			if err := removeLadder(b.url, prefix); err != nil {
				t.Error(err)
			}
		})
		p := newProxy(t, b.url)
		back := make(chan string, 10)
		c := b.connectTo(p.url(b.url), func(o *Options) {
			o.Prefix, o.MaxDelay, o.Resolution = prefix, 24*time.Hour, time.Second
			o.Hooks.Reconnect = func(e ReconnectEvent) {
				if e.Connected {
					back <- e.Connection
				}
			}
		})
		q := b.workQueue(c, Classic)
		p.refuse(true)
		p.cut()
		if err := removeLadder(b.url, prefix); err != nil {
			t.Fatal(err)
		}
		b.remove(q)
		p.refuse(false)
		for range 2 {
			receive(t, "reconnect", back)
		}
		if err := c.Publish(t.Context(), Message{RoutingKey: q, After: time.Second, Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if d := receive(t, "delayed message", b.consumeRaw(q)); string(d.Body) != "x" {
			t.Errorf("got %q", d.Body)
		}
	})
}
