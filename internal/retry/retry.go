// Package retry decides what becomes of a message: when a failed one is tried again, when it has failed often enough,
// and how many attempts it has already used up. Everything is a pure function of values, so a schedule can be printed
// without running anything.
package retry

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Exhausted is what happens to a message whose attempts are used up.
type Exhausted string

// The two ends.
const (
	Park    Exhausted = "park"
	Discard Exhausted = "discard"
)

// A Reason says why an attempt failed.
type Reason string

// The reasons.
const (
	ForError    Reason = "error"
	ForTimeout  Reason = "timeout"
	ForPanic    Reason = "panic"
	ForCrash    Reason = "crash"
	ForRejected Reason = "rejected"
)

// Reasons are all reasons.
func Reasons() []Reason { return []Reason{ForError, ForTimeout, ForPanic, ForCrash, ForRejected} }

// A Policy says how often and when a failed message is tried again. The waits are either Steps, or exponential.
type Policy struct {
	// MaxAttempts bounds the attempts, the first one included.
	MaxAttempts int
	// Exhausted is what happens after the last.
	Exhausted Exhausted
	// Steps are the waits, one after the other; the last repeats.
	Steps []time.Duration
	// First is the first wait, each further one is Factor times the one before (0 means 2), none longer than Max (0 means no bound).
	First  time.Duration
	Factor float64
	Max    time.Duration
	// Jitter lengthens each wait by a random part of up to this fraction (0 to 1) of itself.
	Jitter float64
	// ParkAtOnce are the reasons after which no other attempt is made.
	ParkAtOnce []Reason
}

// Validate reports what is wrong with the policy. A policy that is not bounded, or that does not say what happens in the end, is wrong.
func (p Policy) Validate() error {
	switch {
	case p.MaxAttempts < 1:
		return fmt.Errorf("retry policy: MaxAttempts is %d, must be at least 1: retries are always bounded", p.MaxAttempts)
	case p.Exhausted != Park && p.Exhausted != Discard:
		return fmt.Errorf("retry policy: Exhausted is %q, must be %q or %q", p.Exhausted, Park, Discard)
	case math.IsNaN(p.Jitter) || p.Jitter < 0 || p.Jitter > 1:
		return fmt.Errorf("retry policy: Jitter is %v, must be between 0 and 1", p.Jitter)
	case len(p.Steps) > 0 && (p.First != 0 || p.Factor != 0 || p.Max != 0):
		return fmt.Errorf("retry policy: Steps and First, Factor or Max exclude each other")
	case len(p.Steps) == 0 && p.First <= 0 && p.MaxAttempts > 1:
		return fmt.Errorf("retry policy: no waits: neither Steps nor First are set")
	case p.First < 0:
		return fmt.Errorf("retry policy: First is %v, must not be negative", p.First)
	case math.IsNaN(p.Factor) || p.Factor != 0 && p.Factor < 1:
		return fmt.Errorf("retry policy: Factor is %v, must be at least 1", p.Factor)
	case p.Max < 0 || p.Max != 0 && p.Max < p.First:
		return fmt.Errorf("retry policy: Max is %v, must not be less than First, %v", p.Max, p.First)
	}
	for _, r := range p.ParkAtOnce {
		if !slices.Contains(Reasons(), r) {
			return fmt.Errorf("retry policy: ParkAtOnce has %q, must be some of %q", r, Reasons())
		}
	}
	for i, s := range p.Steps {
		if s <= 0 {
			return fmt.Errorf("retry policy: step %d is %v, must be positive: a retry without a wait is a hot loop", i+1, s)
		}
	}
	return nil
}

// base is the wait after the given attempt has failed, without jitter.
func (p Policy) base(attempt int) time.Duration {
	attempt = max(attempt, 1)
	if n := len(p.Steps); n > 0 {
		return p.Steps[min(attempt, n)-1]
	}
	factor := p.Factor
	if factor == 0 {
		factor = 2
	}
	wait := duration(float64(p.First) * math.Pow(factor, float64(attempt-1)))
	if p.Max > 0 {
		wait = min(wait, p.Max)
	}
	return wait
}

// Wait is how long the message waits after the given attempt (from 1) has failed. random returns numbers in [0, 1) and is
// called only when there is jitter.
func (p Policy) Wait(attempt int, random func() float64) time.Duration {
	wait := p.base(attempt)
	if p.Jitter > 0 {
		wait = lengthen(wait, p.Jitter*random())
	}
	return wait
}

// Schedule lists the waits after each attempt but the last, without jitter.
func (p Policy) Schedule() []time.Duration {
	waits := make([]time.Duration, 0, max(p.MaxAttempts-1, 0))
	for attempt := 1; attempt < p.MaxAttempts; attempt++ {
		waits = append(waits, p.base(attempt))
	}
	return waits
}

// Longest is the longest wait that the policy can ask for, jitter included.
func (p Policy) Longest() time.Duration {
	longest := time.Duration(0)
	if n := len(p.Steps); n > 0 {
		for _, s := range p.Steps[:min(n, p.MaxAttempts-1)] {
			longest = max(longest, s)
		}
	} else if p.MaxAttempts > 1 {
		longest = p.base(p.MaxAttempts - 1)
	}
	return lengthen(longest, p.Jitter)
}

func lengthen(wait time.Duration, by float64) time.Duration {
	if by == 0 {
		return wait
	}
	return max(wait, duration(float64(wait)*(1+by)))
}

// duration is f nanoseconds, or the longest duration where f is longer.
func duration(f float64) time.Duration {
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(f)
}
