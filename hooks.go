package dormouse

import (
	"time"

	"github.com/dormousemq/dormouse/internal/retry"
)

// Hooks are functions called as things happen, meant for metrics and traces. Any may be nil. They are called from
// Dormouse's own goroutines, concurrently, and must return soon.
type Hooks struct {
	// Confirm is called once for each message published, retries and parked copies included, when its fate is known.
	Confirm func(ConfirmEvent)
	// Attempt is called once for each delivery that a handler was given (or that a crash kept from it).
	Attempt func(AttemptEvent)
	// Retry is called when a copy for another attempt is safely stored.
	Retry func(RetryEvent)
	// Parked is called when a message is safely in its parking lot.
	Parked func(ParkedEvent)
	// Breaker is called when a consumer pauses because everything fails, and when it goes on.
	Breaker func(BreakerEvent)
	// Reconnect is called when a connection was lost, at each failed try, and when it is back.
	Reconnect func(ReconnectEvent)
	// Blocked is called when the broker blocks publishers (it is low on memory or disk) and when it stops doing so.
	Blocked func(BlockedEvent)
}

// A ConfirmEvent reports the fate of one published message.
type ConfirmEvent struct {
	// Exchange and RoutingKey are where the message is to arrive, after its delay if it has one.
	Exchange, RoutingKey string
	// Delay is what the ladder was asked for; 0 without a delay.
	Delay time.Duration
	// Took is the time from sending to the confirm.
	Took time.Duration
	// Err is nil or a *PublishError.
	Err error
}

// An Outcome is how a delivery ended.
type Outcome string

// The ways in which a delivery can end.
const (
	OutcomeDone        Outcome = "done"        // acknowledged
	OutcomeRetried     Outcome = "retried"     // comes back after a delay
	OutcomeSnoozed     Outcome = "snoozed"     // comes back after a delay, no attempt used up
	OutcomeParked      Outcome = "parked"      // in the parking lot
	OutcomeDiscarded   Outcome = "discarded"   // acknowledged and forgotten, though it failed
	OutcomeRequeued    Outcome = "requeued"    // given back to the queue at shutdown, no attempt used up
	OutcomeInterrupted Outcome = "interrupted" // the connection went before it was settled; the broker delivers it again
)

// A Reason says why an attempt failed; it is the value of the header retry-reason.
type Reason = retry.Reason

// The reasons for which an attempt fails.
const (
	ReasonError    = retry.ForError    // the handler returned an error
	ReasonTimeout  = retry.ForTimeout  // the handler passed its deadline
	ReasonPanic    = retry.ForPanic    // the handler panicked
	ReasonCrash    = retry.ForCrash    // the process that had the message went away without settling it
	ReasonRejected = retry.ForRejected // a consumer rejected it and the broker dead-lettered it
)

// An AttemptEvent reports how one delivery ended.
type AttemptEvent struct {
	Queue     string
	MessageID string
	// Attempt is 1 for the first.
	Attempt int
	Outcome Outcome
	// Reason and Err say why it failed; empty and nil when it was done. An error that was ignored has no reason.
	Reason Reason
	Err    error
	// Took is how long the handler ran.
	Took time.Duration
	// Lateness is the time from the message's due time to its delivery; 0 for a message that had no delay.
	Lateness time.Duration
}

// A RetryEvent reports that a message will come back.
type RetryEvent struct {
	Queue     string
	MessageID string
	// Attempt is the one that failed.
	Attempt int
	Reason  Reason
	Delay   time.Duration
}

// A BreakerEvent reports that a consumer's circuit breaker has opened, lets a message through to see, or has closed.
type BreakerEvent struct {
	Queue string
	State BreakerState
	// Failures is how many attempts have failed in a row.
	Failures int
	// Pause is how long nothing is handled, when it has opened.
	Pause time.Duration
	// Err is the last attempt's error, when it has opened.
	Err error
}

// A ParkedEvent reports that a message was parked.
type ParkedEvent struct {
	Queue     string
	MessageID string
	// Attempts is how many there were.
	Attempts int
	Reason   Reason
	Err      error
}

// A ReconnectEvent reports on one of the client's two connections.
type ReconnectEvent struct {
	// Connection is "publish" or "consume".
	Connection string
	// Connected is true when the connection is back, its topology declared and its consumers about to resume.
	Connected bool
	// Try counts the tries since the connection was lost; 0 in the event that reports the loss.
	Try int
	// Err is why the connection was lost or the try failed.
	Err error
}

// A BlockedEvent reports that the broker blocks publishers, or no longer does.
type BlockedEvent struct {
	Blocked bool
	Reason  string
}
