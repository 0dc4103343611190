package dormouse

import (
	"context"
	"errors"
	"time"
)

// A Handler processes one message. Nil means done; an error means another attempt by the retry policy, unless it is
// wrapped by [Park], [Discard] or [RetryAfter]. A panic counts as an error. ctx ends at the message's deadline.
type Handler func(ctx context.Context, d *Delivery) error

// A Delivery is one attempt at one message. Exchange, RoutingKey and Headers are those of the message as it was first
// published, also at later attempts.
type Delivery struct {
	Message
	// Queue is where it was consumed from.
	Queue string
	// Attempt is 1 for the first.
	Attempt int
	// Redelivered is the broker's flag: an earlier delivery of this copy was not settled.
	Redelivered bool
	// FirstTime is when the first attempt failed; zero at the first attempt.
	FirstTime time.Time
	// LastReason and LastError tell why the attempt before failed; empty at the first.
	LastReason Reason
	LastError  string
	// DueTime is when a delayed message was due; zero for others.
	DueTime time.Time
}

// ConsumeOptions are the settings of one [Consumer].
type ConsumeOptions struct {
	// Retry is required; see [RetryPolicy].
	Retry RetryPolicy
	// Concurrency is how many handlers run at once. Default 1.
	Concurrency int
	// Prefetch is how many messages the broker sends ahead. Default and least: Concurrency.
	Prefetch int
	// Timeout is the deadline of each message. Default 15 minutes; keep it below the broker's consumer timeout (30
	// minutes unless configured otherwise).
	Timeout time.Duration
	// Grace is how long a handler may take to return after its context has ended. Then its slot goes to the next
	// message, and what it returns later is ignored. Default 5 s.
	Grace time.Duration
	// CountHeader is the header that counts failed attempts. Default "retry-count".
	CountHeader string
	// Args are arguments of basic.consume, such as x-priority.
	Args map[string]any
}

// A RetryPolicy says how often and when a failed message is tried again, and what happens to it then. It is a plain
// value: Steps, or First, Factor and Max, give the waits.
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
}

// Exhausted is what happens to a message whose attempts are used up.
type Exhausted string

// The two ends.
const (
	ExhaustedPark    Exhausted = "park"
	ExhaustedDiscard Exhausted = "discard"
)

// RetrySteps waits these times between attempts and then parks: one attempt more than there are steps.
func RetrySteps(steps ...time.Duration) RetryPolicy {
	return RetryPolicy{MaxAttempts: len(steps) + 1, Steps: steps, Exhausted: ExhaustedPark}
}

// RetryExponential waits first, then twice as long each time up to max, with 10 % jitter, and parks after so many attempts.
func RetryExponential(attempts int, first, max time.Duration) RetryPolicy {
	return RetryPolicy{MaxAttempts: attempts, First: first, Max: max, Jitter: 0.1, Exhausted: ExhaustedPark}
}

// Validate reports what is wrong with the policy, naming the field.
func (p RetryPolicy) Validate() error { return errors.ErrUnsupported }

// Schedule lists the waits after attempt 1, 2, ... up to the last but one, without jitter.
func (p RetryPolicy) Schedule() []time.Duration { return nil }

// A Consumer consumes one queue until it is shut down, through reconnects.
type Consumer struct{}

// Consume starts to consume queue. ctx bounds the start only; its values reach the handlers. The queue must exist, and its
// parking lot is declared when it is missing.
func (c *Client) Consume(ctx context.Context, queue string, h Handler, o ConsumeOptions) (*Consumer, error) {
	return nil, errors.ErrUnsupported
}

// Shutdown stops deliveries and waits for the running handlers as long as ctx allows; then their contexts end, and what they do
// not finish is given back to the queue without using up an attempt. It returns ctx's error in that case.
func (c *Consumer) Shutdown(ctx context.Context) error { return errors.ErrUnsupported }

// Done is closed when the consumer has ended, by Shutdown or with the client.
func (c *Consumer) Done() <-chan struct{} { return nil }
