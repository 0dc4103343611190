package dormouse

import (
	"context"
	"sync"
	"time"

	"github.com/dormousemq/dormouse/internal/retry"
)

// A Breaker is the setting of a consumer's circuit breaker: after so many failures in a row, without a success between them, it
// handles nothing for a while, then tries one message, and goes on when that succeeds. What fails because of the message itself, as the
// handler says by [Park] and [Discard], counts neither way. The zero value is off.
type Breaker = retry.BreakerPolicy

// A BreakerState is what a circuit breaker does with the next message.
type BreakerState = retry.BreakerState

// The states of a circuit breaker.
const (
	BreakerClosed  = retry.BreakerClosed  // all messages are handled
	BreakerOpen    = retry.BreakerOpen    // none is handled until the pause is over
	BreakerProbing = retry.BreakerProbing // one is handled, to see
)

// A fuse is a circuit breaker that the handlers of a consumer share.
type fuse struct {
	queue  string
	report func(BreakerEvent)

	mu      sync.Mutex
	breaker *retry.Breaker
	changed chan struct{} // closed when the state changes
}

func newFuse(queue string, p Breaker, report func(BreakerEvent)) *fuse {
	return &fuse{queue: queue, report: report, breaker: retry.NewBreaker(p), changed: make(chan struct{})}
}

// pass waits until a message may be handled. False means that ctx or stop ended before.
func (f *fuse) pass(ctx context.Context, stop <-chan struct{}) bool {
	for {
		f.mu.Lock()
		before := f.breaker.State()
		ok, again := f.breaker.Admit(time.Now())
		changed := f.changed
		if ok && before != f.breaker.State() {
			f.change(nil)
		}
		f.mu.Unlock()
		if ok {
			return true
		}
		if !f.wait(ctx, stop, changed, again) {
			return false
		}
	}
}

func (f *fuse) wait(ctx context.Context, stop, changed <-chan struct{}, again time.Time) bool {
	var due <-chan time.Time
	if !again.IsZero() {
		timer := time.NewTimer(time.Until(again))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
		return true
	case <-changed:
		return true
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	}
}

// change tells everybody of the new state. The caller holds mu.
func (f *fuse) change(err error) {
	close(f.changed)
	f.changed = make(chan struct{})
	e := BreakerEvent{Queue: f.queue, State: f.breaker.State(), Failures: f.breaker.Failures(), Err: err}
	if e.State == BreakerOpen {
		e.Pause = f.breaker.Pause()
	}
	f.report(e)
}

// ended says how an attempt ended that pass let through.
func (f *fuse) ended(r handled) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.interrupted, r.result == retry.Hopeless, r.result == retry.Worthless, r.result == retry.Snoozed:
		if f.breaker.State() == BreakerProbing {
			f.breaker.Abandoned()
			f.change(r.err)
		}
	case r.result == retry.Succeeded:
		if f.breaker.Succeeded() {
			f.change(nil)
		}
	default:
		if f.breaker.Failed(time.Now()) {
			f.change(r.err)
		}
	}
}
