package demo

import "context"

// A Courier carries the messages of a run. It is what the demonstration puts to the test, so it reports what it really
// received and keeps no account of its own.
type Courier interface {
	// Declare makes the exchange, the queues and the delay ladder.
	Declare(ctx context.Context) error
	// Publish returns once the broker has confirmed the message.
	Publish(ctx context.Context, m Message) error
	// Work hands every delivery to handle, retries what goes wrong and parks what keeps going wrong, until ctx ends. It
	// returns nil then, with nothing in hand.
	Work(ctx context.Context, handle func(context.Context, Arrival) error) error
	// Parked reads what lies in the parking lots.
	Parked(ctx context.Context) ([]Parked, error)
	// Remove deletes what Declare made, the ladder excepted, which others share.
	Remove(ctx context.Context) error
}

// An Arrival is one delivery as it came off the wire.
type Arrival struct {
	ID      string
	Queue   string
	Key     string
	Attempt int // counted from 1
}

// Parked is one message as it lies in a parking lot.
type Parked struct {
	ID       string `json:"id"`
	Queue    string `json:"queue"` // the work queue it failed in
	Key      string `json:"key"`
	Reason   string `json:"reason"`
	Error    string `json:"error"`
	Attempts int    `json:"attempts"`
}
