package queue

import "time"

// Retry delays messages that come back to a quorum queue. The zero value delays none.
// Source: https://www.rabbitmq.com/docs/quorum-queues#delayed-retry.
type Retry struct {
	On RetryOn
	// Min is the delay for each failed delivery there has been, and for one if there
	// was none. Max is the longest.
	Min, Max time.Duration
}

// RetryOn is which messages are delayed.
type RetryOn string

// What is delayed. A failed message was rejected or its channel is gone; a returned one
// was given back by basic.nack or basic.recover, or its consumer took too long.
const (
	RetryNone     RetryOn = "disabled"
	RetryAll      RetryOn = "all"
	RetryFailed   RetryOn = "failed"
	RetryReturned RetryOn = "returned"
)

// Sane is r as RabbitMQ understands it: without a Min it delays nothing, and without a
// Max all delays are the Min.
func (r Retry) Sane() Retry {
	known := r.On == RetryAll || r.On == RetryFailed || r.On == RetryReturned
	if !known || r.Min <= 0 {
		return Retry{}
	}
	if r.Max <= 0 {
		r.Max = r.Min
	}
	return r
}

// delay is how long a message waits that has come back, 0 if it does not.
func (r Retry) delay(failed bool, failures uint32) time.Duration {
	switch {
	case r.On == RetryAll, r.On == RetryFailed && failed, r.On == RetryReturned && !failed:
		return min(r.Min*time.Duration(max(1, failures)), r.Max)
	}
	return 0
}
