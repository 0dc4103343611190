package retry

import (
	"errors"
	"fmt"
	"time"
)

// BreakerPolicy says when a consumer is to pause because everything fails. The zero value never does.
type BreakerPolicy struct {
	// Failures is how many attempts in a row must fail. 0 is off.
	Failures int
	// Pause is how long the first pause is. Each further one is twice as long, none longer than MaxPause (0 means Pause).
	Pause, MaxPause time.Duration
}

// Validate reports what is wrong with the policy.
func (p BreakerPolicy) Validate() error {
	switch {
	case p == BreakerPolicy{}:
		return nil
	case p.Failures < 1:
		return fmt.Errorf("circuit breaker: Failures is %d, must be at least 1", p.Failures)
	case p.Pause <= 0:
		return errors.New("circuit breaker: Pause must be positive: how long is nothing to be tried?")
	case p.MaxPause != 0 && p.MaxPause < p.Pause:
		return fmt.Errorf("circuit breaker: MaxPause is %v, must not be less than Pause, %v", p.MaxPause, p.Pause)
	}
	return nil
}

// BreakerState is what a breaker does with the next message.
type BreakerState string

// The states of a breaker.
const (
	BreakerClosed  BreakerState = "closed"  // all go through
	BreakerOpen    BreakerState = "open"    // none goes through
	BreakerProbing BreakerState = "probing" // one has gone through, and all others wait for what becomes of it
)

// A Breaker counts failures in a row. It is not safe for concurrent use.
type Breaker struct {
	policy   BreakerPolicy
	state    BreakerState
	failures int
	pause    time.Duration // the last
	until    time.Time     // the end of the pause
}

// NewBreaker makes a closed breaker of a valid policy.
func NewBreaker(p BreakerPolicy) *Breaker { return &Breaker{policy: p, state: BreakerClosed} }

// State is the breaker's state.
func (b *Breaker) State() BreakerState { return b.state }

// Failures is how many attempts have failed in a row.
func (b *Breaker) Failures() int { return b.failures }

// Pause is how long the last pause was to be.
func (b *Breaker) Pause() time.Duration { return b.pause }

// Admit tells whether a message may be handled now. If not, again says when to ask again; the zero time means when the
// state has changed.
func (b *Breaker) Admit(now time.Time) (ok bool, again time.Time) {
	switch {
	case b.state == BreakerClosed:
		return true, time.Time{}
	case b.state == BreakerProbing:
		return false, time.Time{}
	case now.Before(b.until):
		return false, b.until
	}
	b.state = BreakerProbing
	return true, time.Time{}
}

// Failed counts a failed attempt and tells whether it has opened the breaker.
func (b *Breaker) Failed(now time.Time) bool {
	if b.policy.Failures == 0 {
		return false
	}
	b.failures++
	switch {
	case b.state == BreakerOpen: // it began before
		return false
	case b.state == BreakerProbing:
		b.pause = min(2*b.pause, max(b.policy.MaxPause, b.policy.Pause))
	case b.failures < b.policy.Failures:
		return false
	default:
		b.pause = b.policy.Pause
	}
	b.state, b.until = BreakerOpen, now.Add(b.pause)
	return true
}

// Succeeded counts an attempt that shows that not everything fails, and tells whether it has closed the breaker.
func (b *Breaker) Succeeded() bool {
	closed := b.state != BreakerClosed
	b.state, b.failures = BreakerClosed, 0
	return closed
}

// Abandoned says that an attempt ended without showing anything, so that another must be let through.
func (b *Breaker) Abandoned() {
	if b.state == BreakerProbing {
		b.state = BreakerOpen
	}
}
