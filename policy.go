package dormouse

import (
	"time"

	"github.com/dormousemq/dormouse/internal/retry"
)

// A RetryPolicy says how often and when a failed message is tried again, and what happens to it then. It is a plain
// value: Steps, or First, Factor and Max, give the waits. Waits are rounded up to at most two lanes of the ladder, which makes
// them up to a tenth longer.
type RetryPolicy struct {
	// MaxAttempts bounds the attempts, the first one included. Required, at least 1.
	MaxAttempts int
	// Exhausted is what happens after the last attempt. Required.
	Exhausted Exhausted
	// Steps are the waits, one after the other; the last repeats.
	Steps []time.Duration
	// First is the first wait, each further one is Factor (default 2) times longer, none longer than Max (default: no bound).
	First  time.Duration
	Factor float64
	Max    time.Duration
	// Jitter spreads each wait: it is lengthened by a random part of up to this fraction (0 to 1) of itself.
	Jitter float64
	// ParkAtOnce are the reasons after which no other attempt is made, whatever the others say; such a message is parked.
	ParkAtOnce []Reason
}

// Exhausted is what happens to a message whose attempts are used up.
type Exhausted = retry.Exhausted

// The two ends.
const (
	ExhaustedPark    = retry.Park
	ExhaustedDiscard = retry.Discard
)

// RetrySteps waits these times between attempts and then parks: one attempt more than there are steps.
func RetrySteps(steps ...time.Duration) RetryPolicy {
	return RetryPolicy{MaxAttempts: len(steps) + 1, Steps: steps, Exhausted: ExhaustedPark}
}

// RetryExponential waits first, then twice as long each time up to longest, with 10 % jitter, and parks after so many attempts.
func RetryExponential(attempts int, first, longest time.Duration) RetryPolicy {
	return RetryPolicy{MaxAttempts: attempts, First: first, Max: longest, Jitter: 0.1, Exhausted: ExhaustedPark}
}

// Validate reports what is wrong with the policy, naming the field. A policy without a maximum of attempts, or without saying
// what happens then, is wrong.
func (p RetryPolicy) Validate() error { return retry.Policy(p).Validate() }

// Schedule lists the waits after attempt 1, 2, ... up to the last but one, without jitter and before rounding.
func (p RetryPolicy) Schedule() []time.Duration { return retry.Policy(p).Schedule() }
