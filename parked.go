package dormouse

import (
	"context"
	"errors"
	"iter"
	"time"
)

// A ParkedMessage is a message in a parking lot.
type ParkedMessage struct {
	Message
	// ID is the message's id, or a fingerprint of its content when it has none.
	ID string
	// Queue is the work queue that it came from.
	Queue    string
	Attempts int
	Reason   Reason
	Error    string
	// FirstTime is when its first attempt failed.
	FirstTime time.Time
}

// A Selection picks messages of a parking lot. The zero value picks all.
type Selection struct {
	// Match picks a message; nil picks every one.
	Match func(*ParkedMessage) bool
	// Limit ends the selection after so many matches; 0 means no limit.
	Limit int
}

// RedriveOptions are the settings of [Client.Redrive].
type RedriveOptions struct {
	// Rate bounds the messages per second; 0 means no bound.
	Rate float64
}

// A Tally counts what was done in a parking lot.
type Tally struct {
	// Done messages were sent on or discarded, Kept ones stay parked because they did not match.
	Done, Kept int
}

// MatchID picks the message with this [ParkedMessage.ID].
func MatchID(id string) func(*ParkedMessage) bool {
	return func(m *ParkedMessage) bool { return m.ID == id }
}

// Parked lists the parking lot of queue, oldest first, without using anything up: each message is taken unacknowledged and all are
// given back in order when the loop ends. Until then nobody else can get them. Only what is there when the loop starts is listed.
func (c *Client) Parked(ctx context.Context, queue string, s Selection) iter.Seq2[*ParkedMessage, error] {
	return nil
}

// Redrive sends the selected messages back to their work queue with their attempts reset. Each copy is confirmed
// before the parked message is removed.
func (c *Client) Redrive(ctx context.Context, queue string, s Selection, o RedriveOptions) (Tally, error) {
	return Tally{}, errors.ErrUnsupported
}

// DiscardParked removes the selected messages for ever.
func (c *Client) DiscardParked(ctx context.Context, queue string, s Selection) (Tally, error) {
	return Tally{}, errors.ErrUnsupported
}
