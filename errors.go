package dormouse

import (
	"errors"
	"time"

	"github.com/dormousemq/dormouse/internal/ladder"
	"github.com/dormousemq/dormouse/internal/retry"
)

// Why a publish failed. A [PublishError] wraps exactly one of these; test with errors.Is.
var (
	// ErrNotSent means that the message never left this process: no connection within the context's time, publishers
	// blocked by the broker, or a message that Dormouse refuses. It is not stored.
	ErrNotSent = errors.New("not sent")
	// ErrRefused means that the broker closed the channel because of this message. It is not stored.
	ErrRefused = errors.New("refused by the broker")
	// ErrUnroutable means that the broker returned the message: no queue is bound for it. It is not stored.
	ErrUnroutable = errors.New("unroutable")
	// ErrNacked means that the broker answered with basic.nack, as a full queue with x-overflow reject-publish does.
	// When several queues were to get the message, the others may have stored it.
	ErrNacked = errors.New("not accepted by the broker")
	// ErrUnknown means that the connection or the context ended before the confirm came. The message may be stored:
	// publishing it again can make a duplicate, not publishing it again can lose it.
	ErrUnknown = errors.New("unknown whether stored")
)

// Errors of the client as a whole.
var (
	// ErrClosed is returned after Shutdown or Close.
	ErrClosed = errors.New("dormouse: client closed")
	// ErrTooLong is wrapped by the error for a delay beyond the ladder's maximum.
	ErrTooLong = ladder.ErrTooLong
	// ErrTimeout is the cause of a handler's context at its deadline.
	ErrTimeout = errors.New("dormouse: handler deadline exceeded")
	// ErrShutdown is the cause of a handler's context when draining took longer than Shutdown was given.
	// A delivery interrupted by it does not use up an attempt.
	ErrShutdown = errors.New("dormouse: consumer is shutting down")
	// ErrConnectionLost is the cause of a handler's context when the connection that its message came by is gone:
	// the broker delivers the message again, whatever the handler returns.
	ErrConnectionLost = errors.New("dormouse: connection lost")
)

// A PublishError says why a publish failed and whether the message may be stored all the same.
type PublishError struct {
	// Reason is ErrNotSent, ErrRefused, ErrUnroutable, ErrNacked or ErrUnknown.
	Reason error
	// MessageID is the message's id, generated when the message had none.
	MessageID string
	// Err is the cause; nil when the reason says it all.
	Err error
}

// MayBeStored reports whether the broker may hold the message in spite of the error.
func (e *PublishError) MayBeStored() bool {
	return errors.Is(e.Reason, ErrNacked) || errors.Is(e.Reason, ErrUnknown)
}

func (e *PublishError) Error() string {
	s := "dormouse: publish: " + e.Reason.Error()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the reason and the cause.
func (e *PublishError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// Park wraps a handler's error: the message cannot succeed by waiting, so it is parked at once.
func Park(err error) error { return &verdictError{result: retry.Hopeless, err: err} }

// Discard wraps a handler's error: the message is acknowledged and forgotten. The attempt hook still sees it.
func Discard(err error) error { return &verdictError{result: retry.Worthless, err: err} }

// Ignore wraps a handler's error: the message is done in spite of it. Only the attempt hook sees the error.
func Ignore(err error) error { return &verdictError{result: retry.Succeeded, err: err} }

// Snooze is what a handler returns when it is too early for the message: it comes back after d, at least a millisecond, and no
// attempt is used up. Nothing bounds how often that may be; [Delivery.Snoozed] tells how often it has been. A d beyond the
// ladder's maximum parks the message.
func Snooze(d time.Duration) error {
	return &verdictError{result: retry.Snoozed, after: max(d, time.Millisecond), err: errSnoozed}
}

var errSnoozed = errors.New("snoozed")

// RetryAfter wraps a handler's error: the next attempt comes after d instead of the policy's wait. It counts as an
// attempt like any other. A d beyond the ladder's maximum parks the message.
func RetryAfter(err error, d time.Duration) error {
	return &verdictError{result: retry.FailedUntil, after: d, err: err}
}

// A verdictError is a handler's error that says what is to become of the message.
type verdictError struct {
	result retry.Result
	after  time.Duration
	err    error
}

func (e *verdictError) Error() string {
	if e.err == nil {
		return "no reason given"
	}
	return e.err.Error()
}

func (e *verdictError) Unwrap() error { return e.err }
