package dormouse

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dormousemq/dormouse/dormousetest"
)

// inBubble runs a test in a bubble with a broker, to which connect connects, and declares the queue "work". Channels must be made
// by the test, for they belong to the bubble then.
func inBubble(t *testing.T, test func(t *testing.T, connect func(adjust ...func(*Options)) *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := dormousetest.NewBubbleBroker(t)
		defer b.Close()
		test(t, func(adjust ...func(*Options)) *Client {
			o := Options{Dial: b.Dial, Heartbeat: time.Minute}
			for _, f := range adjust {
				f(&o)
			}
			c, err := Connect(t.Context(), b.URL(), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Declare(t.Context(), Topology{Queues: []Queue{{Name: "work"}}}); err != nil {
				t.Fatal(err)
			}
			return c
		})
	})
}

// leave shuts a client down, which a bubble needs at its end.
func leave(t *testing.T, c *Client) {
	t.Helper()
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func withBreaker(ch chan<- BreakerEvent) func(*Options) {
	return func(o *Options) { o.Hooks.Breaker = func(e BreakerEvent) { ch <- e } }
}

func publishWork(t *testing.T, c *Client, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := c.Publish(t.Context(), Message{RoutingKey: "work", Body: []byte(body), MessageID: body}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnooze(t *testing.T) {
	inBubble(t, func(t *testing.T, connect func(...func(*Options)) *Client) {
		attempts := make(chan AttemptEvent, 10)
		c := connect(withAttempts(attempts))
		defer leave(t, c)
		mustConsume(t, c, "work", ConsumeOptions{Retry: RetrySteps(time.Minute)}, func(_ context.Context, d *Delivery) error {
			switch d.Snoozed {
			case 0:
				return Snooze(time.Hour)
			case 1:
				if d.Attempt == 1 {
					return errors.New("failed")
				}
				return Snooze(24 * time.Hour)
			}
			return errors.New("failed again")
		})
		began := time.Now()
		publishWork(t, c, "m")
		for _, want := range []struct {
			outcome Outcome
			attempt int
			at      time.Duration
		}{
			{OutcomeSnoozed, 1, 0},
			{OutcomeRetried, 1, time.Hour},
			{OutcomeSnoozed, 2, time.Hour + time.Minute},
			{OutcomeParked, 2, 25*time.Hour + time.Minute},
		} {
			e := <-attempts
			if late := time.Since(began) - want.at; e.Outcome != want.outcome || e.Attempt != want.attempt || late < 0 || late > time.Second {
				t.Errorf("%+v after %v, want %+v", e, time.Since(began), want)
			}
		}
		for m, err := range c.Parked(t.Context(), "work", Selection{}) {
			if err != nil || m.Attempts != 2 || m.Error != "failed again" {
				t.Errorf("parked %+v, %v", m, err)
			}
			if _, shown := m.Headers[headerSnoozed]; shown {
				t.Errorf("headers %v", m.Headers)
			}
		}
	})
}

// The rules for errors stand in one place, and what they say is the same as if the handler had said it.
func TestClassify(t *testing.T) {
	var errBusy, errInvalid, errKnown, errStale = errors.New("busy"), errors.New("invalid"), errors.New("known"), errors.New("stale")
	inBubble(t, func(t *testing.T, connect func(...func(*Options)) *Client) {
		attempts := make(chan AttemptEvent, 10)
		c := connect(withAttempts(attempts))
		defer leave(t, c)
		named := map[string]error{"busy": errBusy, "invalid": errInvalid, "known": errKnown, "stale": errStale, "other": errors.New("other"), "fixed": errors.New("fixed")}
		mustConsume(t, c, "work", ConsumeOptions{
			Retry: RetrySteps(time.Minute),
			Classify: func(err error) error {
				switch {
				case errors.Is(err, errBusy):
					return RetryAfter(err, time.Hour)
				case errors.Is(err, errInvalid):
					return Park(err)
				case errors.Is(err, errKnown):
					return Ignore(err)
				case errors.Is(err, errStale):
					return Discard(err)
				case err.Error() == "fixed":
					return nil
				}
				return err
			},
		}, func(_ context.Context, d *Delivery) error {
			if d.Attempt > 1 {
				return nil
			}
			return named[string(d.Body)]
		})
		for _, want := range []struct {
			body    string
			outcome Outcome
			reason  Reason
			err     error
			again   time.Duration
		}{
			{"busy", OutcomeRetried, ReasonError, errBusy, time.Hour},
			{"invalid", OutcomeParked, ReasonError, errInvalid, 0},
			{"known", OutcomeDone, "", errKnown, 0},
			{"stale", OutcomeDiscarded, ReasonError, errStale, 0},
			{"other", OutcomeRetried, ReasonError, named["other"], time.Minute},
			{"fixed", OutcomeDone, "", nil, 0},
		} {
			publishWork(t, c, want.body)
			e := <-attempts
			if e.Outcome != want.outcome || e.Reason != want.reason || !errors.Is(e.Err, want.err) {
				t.Errorf("%s: %+v", want.body, e)
			}
			if want.again == 0 {
				continue
			}
			began := time.Now()
			if e = <-attempts; e.Attempt != 2 || e.Outcome != OutcomeDone || time.Since(began).Round(time.Minute) != want.again {
				t.Errorf("%s after %v: %+v", want.body, time.Since(began), e)
			}
		}
	})
}

func TestParkAtOnceWithTheStack(t *testing.T) {
	inBubble(t, func(t *testing.T, connect func(...func(*Options)) *Client) {
		attempts := make(chan AttemptEvent, 10)
		c := connect(withAttempts(attempts))
		defer leave(t, c)
		policy := RetrySteps(time.Minute)
		policy.ParkAtOnce = []Reason{ReasonPanic}
		mustConsume(t, c, "work", ConsumeOptions{Retry: policy}, func(_ context.Context, d *Delivery) error {
			if d.Attempt == 1 && string(d.Body) == "error" {
				return errors.New("once")
			}
			panicOnPurpose()
			return nil
		})
		publishWork(t, c, "error", "panic")
		for _, want := range []Outcome{OutcomeRetried, OutcomeParked, OutcomeParked} {
			if e := <-attempts; e.Outcome != want {
				t.Errorf("%+v, want %s", e, want)
			}
		}
		parked := 0
		for m, err := range c.Parked(t.Context(), "work", Selection{}) {
			if err != nil {
				t.Fatal(err)
			}
			parked++
			if m.Reason != ReasonPanic || !strings.Contains(m.Stack, "panicOnPurpose") || len(m.Stack) > longestStack {
				t.Errorf("%s parked for %s with the stack %q", m.ID, m.Reason, m.Stack)
			}
		}
		if parked != 2 {
			t.Errorf("%d parked", parked)
		}
	})
}

func panicOnPurpose() { panic("on purpose") }

// When everything fails the consumer pauses, longer each time, and uses up the attempts of one message a pause only.
func TestBreakerPausesTheConsumer(t *testing.T) {
	inBubble(t, func(t *testing.T, connect func(...func(*Options)) *Client) {
		events := make(chan BreakerEvent, 20)
		attempts := make(chan AttemptEvent, 100)
		c := connect(withAttempts(attempts), withBreaker(events))
		defer leave(t, c)
		healthyAt := time.Now().Add(5 * time.Minute)
		mustConsume(t, c, "work", ConsumeOptions{
			Retry:       RetrySteps(24 * time.Hour),
			Concurrency: 2,
			Breaker:     Breaker{Failures: 4, Pause: time.Minute, MaxPause: 3 * time.Minute},
		}, func(_ context.Context, d *Delivery) error {
			time.Sleep(time.Second) // in the bubble
			if time.Now().Before(healthyAt) {
				return errors.New("down")
			}
			return nil
		})
		var bodies []string
		for i := range 20 {
			bodies = append(bodies, strings.Repeat("m", i+1))
		}
		began := time.Now()
		publishWork(t, c, bodies...)
		for _, want := range []struct {
			state BreakerState
			at    time.Duration
			pause time.Duration
		}{
			{BreakerOpen, 2 * time.Second, time.Minute},
			{BreakerProbing, 62 * time.Second, 0},
			{BreakerOpen, 63 * time.Second, 2 * time.Minute},
			{BreakerProbing, 183 * time.Second, 0},
			{BreakerOpen, 184 * time.Second, 3 * time.Minute},
			{BreakerProbing, 364 * time.Second, 0},
			{BreakerClosed, 365 * time.Second, 0},
		} {
			e := <-events
			if e.State != want.state || e.Pause != want.pause || e.Queue != "work" || time.Since(began).Round(time.Second) != want.at {
				t.Errorf("%+v after %v, want %+v", e, time.Since(began), want)
			}
			if want.state == BreakerOpen && (e.Failures < 4 || e.Err == nil) {
				t.Errorf("opened without saying why: %+v", e)
			}
		}
		failed, done := 0, 0
		for range bodies {
			switch e := <-attempts; e.Outcome {
			case OutcomeRetried:
				failed++
			case OutcomeDone:
				done++
			default:
				t.Errorf("%+v", e)
			}
		}
		if failed != 6 {
			t.Errorf("%d attempts were used up and %d succeeded, want 4 and one for each of two pauses", failed, done)
		}
	})
}

// A consumer that pauses can be shut down, and what it held is there for others at once.
func TestShutdownWhilePausing(t *testing.T) {
	inBubble(t, func(t *testing.T, connect func(...func(*Options)) *Client) {
		events := make(chan BreakerEvent, 20)
		c := connect(withBreaker(events))
		defer leave(t, c)
		k := mustConsume(t, c, "work", ConsumeOptions{Retry: RetrySteps(24 * time.Hour), Breaker: Breaker{Failures: 1, Pause: time.Hour}},
			func(context.Context, *Delivery) error { return errors.New("down") })
		publishWork(t, c, "a", "b")
		if e := <-events; e.State != BreakerOpen {
			t.Fatalf("%+v", e)
		}
		began := time.Now()
		if err := k.Shutdown(t.Context()); err != nil || time.Since(began) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		got := make(chan *Delivery, 1)
		mustConsume(t, c, "work", ConsumeOptions{Retry: RetrySteps(time.Hour)}, func(_ context.Context, d *Delivery) error {
			got <- d
			return nil
		})
		if d := <-got; d.MessageID != "b" || d.Attempt != 1 {
			t.Errorf("%+v", d)
		}
	})
}
