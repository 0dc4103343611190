package dormouse

import (
	"context"
	"fmt"
	"iter"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/xdeath"
)

// A ParkedMessage is a message in a parking lot. Exchange and RoutingKey are those of its first publishing.
type ParkedMessage struct {
	Message
	// ID is the message's id, or a fingerprint of its content when it has none.
	ID string
	// Queue is the work queue that it came from.
	Queue string
	// Attempts is how many there were; 0 when the broker parked it and did not count.
	Attempts int
	Reason   Reason
	Error    string
	// Stack is where the last attempt panicked, cut after 4 KiB; empty when it did not.
	Stack string
	// FirstTime is when its first attempt failed; zero when that is not known.
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
	// Done messages were sent on or discarded, Kept ones stay parked: they did not match, or could not be sent on.
	Done, Kept int
}

// MatchID picks the message with this [ParkedMessage.ID].
func MatchID(id string) func(*ParkedMessage) bool {
	return func(m *ParkedMessage) bool { return m.ID == id }
}

// Parked lists the parking lot of queue, oldest first, without using anything up: each message is taken unacknowledged and all are
// given back in order when the loop ends. Until then nobody else can get them. Only what is there when the loop starts is listed. (A list
// that is left early, or limited, in a quorum queue with more than 2000 others, puts the listed ones behind others.)
func (c *Client) Parked(ctx context.Context, queue string, s Selection) iter.Seq2[*ParkedMessage, error] {
	return func(yield func(*ParkedMessage, error) bool) {
		stopped := false
		_, err := c.walk(ctx, queue, s, func(v *visit) error {
			if !yield(v.message, nil) {
				stopped = true
				return errEnough
			}
			return nil
		}, nil)
		if err != nil && !stopped {
			yield(nil, fmt.Errorf("dormouse: parked messages of %q: %w", queue, err))
		}
	}
}

// window is how many copies are on their way at once while messages are redriven.
const window = 100

// Redrive sends the selected messages back to their work queue with their attempts reset. Each copy is confirmed
// before the parked message is removed. It stops at the first error.
func (c *Client) Redrive(ctx context.Context, queue string, s Selection, o RedriveOptions) (Tally, error) {
	type copied struct {
		*visit
		*Confirmation
	}
	var tally Tally
	var underway []copied
	settle := func(most int) error {
		for len(underway) > most {
			first := underway[0]
			underway = underway[1:]
			if err := first.Wait(ctx); err != nil {
				return err
			}
			if err := first.remove(); err != nil {
				return err
			}
			tally.Done++
		}
		return nil
	}
	begun := time.Now()
	kept, err := c.walk(ctx, queue, s, func(v *visit) error {
		if o.Rate > 0 {
			ahead := time.Duration(float64(tally.Done+len(underway)) / o.Rate * float64(time.Second))
			if !sleep(ctx, time.Until(begun.Add(ahead))) {
				return context.Cause(ctx)
			}
		}
		p := post{queue: queue, Publishing: redrivenCopy(v.delivery, v.user, queue, c.counter)}
		underway = append(underway, copied{v, c.pub.publish(ctx, p)})
		return settle(window)
	}, func() error { return settle(0) })
	tally.Kept = kept
	if err != nil {
		return tally, fmt.Errorf("dormouse: redrive %q: %w", queue, err)
	}
	return tally, nil
}

// DiscardParked removes the selected messages for ever. It stops at the first error.
func (c *Client) DiscardParked(ctx context.Context, queue string, s Selection) (Tally, error) {
	var tally Tally
	kept, err := c.walk(ctx, queue, s, func(v *visit) error {
		if err := v.remove(); err != nil {
			return err
		}
		tally.Done++
		return nil
	}, nil)
	tally.Kept = kept
	if err != nil {
		return tally, fmt.Errorf("dormouse: discard parked messages of %q: %w", queue, err)
	}
	return tally, nil
}

// readParked reads a parked message, whoever parked it: a consumer of Dormouse, or the broker by dead-lettering it from the work queue.
func readParked(d *amqp.Delivery, queue, counter string) *ParkedMessage {
	m := &ParkedMessage{
		Message:   readMessage(d, counter),
		ID:        fingerprint(d),
		Queue:     queue,
		Reason:    Reason(text(d.Headers, headerReason)),
		Error:     text(d.Headers, headerError),
		Stack:     text(d.Headers, headerStack),
		FirstTime: moment(d.Headers, headerFirstTime),
	}
	n, _ := integer(d.Headers, counter)
	m.Attempts = int(n)
	for _, death := range xdeath.Parse(d.Headers["x-death"]) {
		if death.Queue != queue {
			continue
		}
		switch death.Reason {
		case xdeath.Rejected:
			m.Reason = ReasonRejected
		case xdeath.DeliveryLimit:
			m.Reason = ReasonCrash
		default:
			continue
		}
		m.Attempts += int(death.Count)
		m.Error, m.Stack = "", ""
		if m.FirstTime.IsZero() {
			m.FirstTime = death.Time
		}
		break
	}
	m.Exchange, m.RoutingKey = parkedOrigin(d, queue)
	return m
}

// parkedOrigin is where a parked message was published first. The broker gave it the parking lot's own key when it dead-lettered it, but
// wrote down the one before.
func parkedOrigin(d *amqp.Delivery, queue string) (exchange, key string) {
	exchange, key = origin(d)
	if _, known := d.Headers[headerRoutingKey]; known {
		return exchange, key
	}
	for _, death := range xdeath.Parse(d.Headers["x-death"]) {
		if death.Queue != queue || len(death.Keys) == 0 {
			continue
		}
		if _, delayed := d.Headers[headerDueTime]; !delayed {
			exchange = death.Exchange
		}
		return exchange, death.Keys[0]
	}
	return exchange, key
}

// redrivenCopy is the copy of a parked message that begins anew.
func redrivenCopy(d *amqp.Delivery, user, queue, counter string) amqp.Publishing {
	p := copyOf(d, user)
	p.Headers[headerExchange], p.Headers[headerRoutingKey] = parkedOrigin(d, queue)
	p.Headers[headerQueue] = queue
	for _, name := range []string{counter, headerError, headerStack, headerSnoozed, headerReason, headerFirstTime} {
		delete(p.Headers, name)
	}
	return p
}
