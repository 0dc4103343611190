package dormouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// bothTypes runs a test on every broker for work queues of both types.
func bothTypes(t *testing.T, test func(t *testing.T, b *testBroker, typ QueueType)) {
	t.Helper()
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		for _, typ := range []QueueType{Quorum, Classic} {
			t.Run(string(typ), func(t *testing.T) {
				test(t, &testBroker{t: t, url: b.url, conn: b.conn}, typ)
			})
		}
	})
}

func mustConsume(t *testing.T, c *Client, queue string, o ConsumeOptions, h Handler) *Consumer {
	t.Helper()
	k, err := c.Consume(t.Context(), queue, h, o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// withAttempts makes the options that send each attempt's end to a channel.
func withAttempts(ch chan<- AttemptEvent) func(*Options) {
	return func(o *Options) { o.Hooks.Attempt = func(e AttemptEvent) { ch <- e } }
}

func TestRetriesComeAfterTheirWaits(t *testing.T) {
	bothTypes(t, func(t *testing.T, b *testBroker, typ QueueType) {
		attempts := make(chan AttemptEvent, 10)
		c := b.connect(withAttempts(attempts))
		q := b.workQueue(c, typ)
		type attempt struct {
			Delivery
			at time.Time
		}
		seen := make(chan attempt, 10)
		mustConsume(t, c, q, ConsumeOptions{Retry: RetrySteps(time.Second, 2*time.Second, 4*time.Second)}, func(_ context.Context, d *Delivery) error {
			seen <- attempt{*d, time.Now()}
			return fmt.Errorf("failure %d", d.Attempt)
		})
		before := time.Now()
		if err := c.Publish(t.Context(), Message{
			RoutingKey: q, Body: []byte("work"), MessageID: "m", Headers: map[string]any{"mine": "kept"}, CorrelationID: "c", Type: "t",
			UserID: "guest", TTL: time.Hour, Transient: true,
		}); err != nil {
			t.Fatal(err)
		}
		ends := []time.Time{}
		for i, wait := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
			a := receive(t, "attempt", seen)
			e := receive(t, "attempt's end", attempts)
			if a.Attempt != i+1 || e.Attempt != i+1 || a.Redelivered {
				t.Errorf("attempt %d, event %d, redelivered %v, want attempt %d", a.Attempt, e.Attempt, a.Redelivered, i+1)
			}
			if string(a.Body) != "work" || a.MessageID != "m" || a.RoutingKey != q || a.Exchange != "" || a.CorrelationID != "c" || a.Type != "t" || a.UserID != "guest" {
				t.Errorf("attempt %d: %+v", a.Attempt, a.Message)
			}
			own := slices.Collect(func(yield func(string) bool) {
				for name := range a.Headers {
					if isOwnHeader(name) && !yield(name) {
						return
					}
				}
			})
			if a.Headers["mine"] != "kept" || len(own) > 0 {
				t.Errorf("attempt %d: headers %v", a.Attempt, a.Headers)
			}
			if i == 0 {
				if !a.FirstTime.IsZero() || a.LastError != "" {
					t.Errorf("the first attempt knows of another: %+v", a)
				}
				before = a.at
				ends = append(ends, a.at)
				continue
			}
			if a.LastReason != ReasonError || a.LastError != fmt.Sprintf("failure %d", i) || a.FirstTime.Sub(before).Abs() > time.Second {
				t.Errorf("attempt %d: last %s %q, first at %v", a.Attempt, a.LastReason, a.LastError, a.FirstTime)
			}
			waited := a.at.Sub(ends[i-1])
			if waited < wait || waited > wait+2*time.Second {
				t.Errorf("attempt %d came after %v, want %v", a.Attempt, waited, wait)
			}
			if e.Lateness < 0 || e.Lateness > 2*time.Second {
				t.Errorf("attempt %d: lateness %v", a.Attempt, e.Lateness)
			}
			t.Logf("attempt %d: %v late", a.Attempt, (waited - wait).Round(time.Millisecond))
			ends = append(ends, a.at)
		}
		d := receive(t, "parked message", b.consumeRaw(ParkedQueue(q)))
		want := amqp.Table{
			"mine": "kept", "retry-count": int64(4), "retry-error": "failure 4", "retry-reason": "error", "retry-queue": q,
			"retry-exchange": "", "retry-routing-key": q, "retry-first-time": d.Headers["retry-first-time"],
		}
		if fmt.Sprint(withoutCounts(d.Headers)) != fmt.Sprint(want) || d.Expiration != "" || d.DeliveryMode != amqp.Persistent {
			t.Errorf("parked with %v, want %v", d.Headers, want)
		}
	})
}

// withoutCounts leaves out what quorum queues add to a delivery.
func withoutCounts(t amqp.Table) amqp.Table {
	out := amqp.Table{}
	for name, v := range t {
		if name != "x-delivery-count" && name != "x-acquired-count" {
			out[name] = v
		}
	}
	return out
}

func TestVerdicts(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		attempts := make(chan AttemptEvent, 10)
		c := b.connect(withAttempts(attempts))
		q := b.workQueue(c, Quorum)
		policy := RetrySteps(time.Hour)
		mustConsume(t, c, q, ConsumeOptions{Retry: policy, Timeout: 200 * time.Millisecond}, func(ctx context.Context, d *Delivery) error {
			switch what := string(d.Body); {
			case d.Attempt > 1:
				return nil
			case what == "park":
				return fmt.Errorf("wrapped: %w", Park(errors.New("hopeless")))
			case what == "discard":
				return Discard(errors.New("worthless"))
			case what == "after":
				return RetryAfter(errors.New("busy"), 300*time.Millisecond)
			case what == "too long":
				return RetryAfter(errors.New("busy"), 500*24*time.Hour)
			case what == "panic":
				panic("boom")
			case what == "timeout":
				<-ctx.Done()
				return context.Cause(ctx)
			case what == "in time after all":
				<-ctx.Done()
				return nil
			}
			return nil
		})
		for _, c1 := range []struct {
			body    string
			outcome Outcome
			reason  Reason
			err     string
		}{
			{"fine", OutcomeDone, "", ""},
			{"park", OutcomeParked, ReasonError, "wrapped: hopeless"},
			{"discard", OutcomeDiscarded, ReasonError, "worthless"},
			{"after", OutcomeRetried, ReasonError, "busy"},
			{"too long", OutcomeParked, ReasonError, "longer than the ladder's maximum"},
			{"panic", OutcomeRetried, ReasonPanic, "panic: boom"},
			{"timeout", OutcomeRetried, ReasonTimeout, "deadline exceeded"},
			{"in time after all", OutcomeDone, "", ""},
		} {
			if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte(c1.body)}); err != nil {
				t.Fatal(err)
			}
			e := receive(t, c1.body, attempts)
			text := ""
			if e.Err != nil {
				text = e.Err.Error()
			}
			if e.Outcome != c1.outcome || e.Reason != c1.reason || !strings.Contains(text, c1.err) || e.Queue != q {
				t.Errorf("%s ended as %+v", c1.body, e)
			}
			if c1.body == "after" {
				began := time.Now()
				if e := receive(t, "the second attempt", attempts); e.Outcome != OutcomeDone || e.Attempt != 2 {
					t.Errorf("after the wait: %+v", e)
				}
				if waited := time.Since(began); waited > 3*time.Second {
					t.Errorf("waited %v instead of 300 ms", waited)
				}
			}
		}
		if n := b.ready(ParkedQueue(q)); n != 2 {
			t.Errorf("%d messages parked, want 2", n)
		}
	})
}

// The parking lot is declared again when somebody has deleted it.
func TestParkingLotDeletedMeanwhile(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		attempts := make(chan AttemptEvent, 10)
		c := b.connect(withAttempts(attempts))
		q := b.workQueue(c, Quorum)
		mustConsume(t, c, q, ConsumeOptions{Retry: RetrySteps()}, func(context.Context, *Delivery) error { return errors.New("no") })
		if _, err := b.channel().QueueDelete(ParkedQueue(q), false, false, false); err != nil {
			t.Fatal(err)
		}
		if err := c.Publish(t.Context(), Message{RoutingKey: q}); err != nil {
			t.Fatal(err)
		}
		if e := receive(t, "the end", attempts); e.Outcome != OutcomeParked {
			t.Errorf("ended as %+v", e)
		}
		if n := b.ready(ParkedQueue(q)); n != 1 {
			t.Errorf("%d parked", n)
		}
	})
}

func TestPolicyDiscards(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		attempts := make(chan AttemptEvent, 10)
		c := b.connect(withAttempts(attempts))
		q := b.workQueue(c, Quorum)
		mustConsume(t, c, q, ConsumeOptions{Retry: RetryPolicy{MaxAttempts: 2, First: 100 * time.Millisecond, Exhausted: ExhaustedDiscard}},
			func(context.Context, *Delivery) error { return errors.New("no") })
		if err := c.Publish(t.Context(), Message{RoutingKey: q}); err != nil {
			t.Fatal(err)
		}
		if e := receive(t, "first", attempts); e.Outcome != OutcomeRetried {
			t.Errorf("first: %+v", e)
		}
		if e := receive(t, "second", attempts); e.Outcome != OutcomeDiscarded || e.Attempt != 2 {
			t.Errorf("second: %+v", e)
		}
		if n := b.ready(ParkedQueue(q)); n != 0 {
			t.Errorf("%d parked", n)
		}
	})
}

// A handler that ignores its deadline loses its slot, and what it returns late settles nothing.
func TestStuckHandler(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		attempts := make(chan AttemptEvent, 10)
		c := b.connect(withAttempts(attempts))
		q := b.workQueue(c, Quorum)
		release, returned := make(chan struct{}), make(chan struct{})
		mustConsume(t, c, q, ConsumeOptions{
			Retry: RetrySteps(200 * time.Millisecond), Timeout: 100 * time.Millisecond, Grace: 50 * time.Millisecond, Concurrency: 1,
		}, func(_ context.Context, d *Delivery) error {
			if string(d.Body) == "stuck" && d.Attempt == 1 {
				<-release
				close(returned)
			}
			return nil
		})
		for _, body := range []string{"stuck", "next"} {
			if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte(body), MessageID: body}); err != nil {
				t.Fatal(err)
			}
		}
		if e := receive(t, "timeout", attempts); e.MessageID != "stuck" || e.Outcome != OutcomeRetried || e.Reason != ReasonTimeout {
			t.Errorf("first end %+v", e)
		}
		ends := map[string]AttemptEvent{}
		for range 2 {
			e := receive(t, "the others", attempts)
			ends[e.MessageID] = e
		}
		if ends["next"].Outcome != OutcomeDone || ends["stuck"].Outcome != OutcomeDone || ends["stuck"].Attempt != 2 {
			t.Errorf("ends %+v", ends)
		}
		close(release)
		receive(t, "the late return", closed(returned))
		// A second settlement would close the channel; then this message would be interrupted or delivered twice.
		if err := c.Publish(t.Context(), Message{RoutingKey: q, MessageID: "last"}); err != nil {
			t.Fatal(err)
		}
		if e := receive(t, "last", attempts); e.MessageID != "last" || e.Outcome != OutcomeDone {
			t.Errorf("after the late return: %+v", e)
		}
		if n := b.ready(ParkedQueue(q)); n != 0 {
			t.Errorf("%d parked", n)
		}
	})
}

// closed turns the closing of a channel into a value.
func closed(ch <-chan struct{}) <-chan bool {
	out := make(chan bool, 1)
	go func() {
		<-ch
		out <- true
	}()
	return out
}

func TestConcurrencyIsBounded(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.workQueue(c, Quorum)
		var mu sync.Mutex
		running, most := 0, 0
		entered, proceed, done := make(chan struct{}, 100), make(chan struct{}), make(chan struct{}, 100)
		k := mustConsume(t, c, q, ConsumeOptions{Retry: RetrySteps(time.Second), Concurrency: 3, Prefetch: 20}, func(context.Context, *Delivery) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			entered <- struct{}{}
			<-proceed
			mu.Lock()
			running--
			mu.Unlock()
			done <- struct{}{}
			return nil
		})
		for range 12 {
			if err := c.Publish(t.Context(), Message{RoutingKey: q}); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			receive(t, "handler", entered)
		}
		close(proceed)
		for range 12 {
			receive(t, "done", done)
		}
		if most != 3 {
			t.Errorf("%d handlers ran at once, want 3", most)
		}
		if err := k.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if n := b.ready(q); n != 0 {
			t.Errorf("%d messages left", n)
		}
	})
}

// A retry goes to its queue alone: the other subscriber of the fan-out exchange sees the message once.
func TestRetryIsNotFannedOutAgain(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		attempts := make(chan AttemptEvent, 10)
		c := b.connect(withAttempts(attempts))
		x, mine, other := b.name("fanout"), b.name("mine"), b.name("other")
		b.declare(c, Topology{
			Exchanges: []Exchange{{Name: x, Kind: "fanout"}},
			Queues:    []Queue{{Name: mine, Bindings: []Binding{{Exchange: x}}}, {Name: other, Bindings: []Binding{{Exchange: x}}}},
		})
		keys := make(chan [2]string, 10)
		mustConsume(t, c, mine, ConsumeOptions{Retry: RetrySteps(100*time.Millisecond, 100*time.Millisecond)}, func(_ context.Context, d *Delivery) error {
			keys <- [2]string{d.Exchange, d.RoutingKey}
			if d.Attempt < 3 {
				return errors.New("again")
			}
			return nil
		})
		if err := c.Publish(t.Context(), Message{
			Exchange: x, RoutingKey: "some.key", After: 100 * time.Millisecond, Headers: map[string]any{"CC": []any{other}},
		}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if e := receive(t, "attempt", attempts); e.Attempt != i+1 {
				t.Errorf("attempt %d, want %d", e.Attempt, i+1)
			}
			if got := receive(t, "key", keys); got != [2]string{x, "some.key"} {
				t.Errorf("attempt %d came from %v", i+1, got)
			}
		}
		if n := b.ready(other); n != 1 {
			t.Errorf("the other subscriber has %d copies, want 1", n)
		}
	})
}

func TestConsumeRefuses(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.workQueue(c, Quorum)
		nop := func(context.Context, *Delivery) error { return nil }
		good := RetrySteps(time.Second)
		for what, o := range map[string]ConsumeOptions{
			"MaxAttempts":          {},
			"Exhausted":            {Retry: RetryPolicy{MaxAttempts: 3, First: time.Second}},
			"the ladder's maximum": {Retry: RetrySteps(401 * 24 * time.Hour)},
			"Concurrency is":       {Retry: good, Concurrency: -1},
			"Prefetch is":          {Retry: good, Concurrency: 5, Prefetch: 2},
			"must not be negative": {Retry: good, Timeout: -1},
			"AMQP cannot carry":    {Retry: good, Args: map[string]any{"x": struct{}{}}},
		} {
			if _, err := c.Consume(t.Context(), q, nop, o); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("error %v does not say %q", err, what)
			}
		}
		if _, err := c.Consume(t.Context(), "dmroot.nowhere", nop, ConsumeOptions{Retry: good}); !isCode(err, amqp.NotFound) {
			t.Errorf("missing queue: %v", err)
		}
		other := b.connect(func(o *Options) { o.Prefix = "dmroot.never" })
		if _, err := other.Consume(t.Context(), q, nop, ConsumeOptions{Retry: good}); err == nil || !strings.Contains(err.Error(), "is not declared") {
			t.Errorf("without a ladder: %v", err)
		}
	})
}
