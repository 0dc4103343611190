package dormouse

import (
	"context"
	"sync"
	"time"
)

// Publish publishes m, at once or after its delay, and waits until the broker has confirmed that it is stored. While the
// connection is down it waits for it as long as ctx allows. Any error is a *[PublishError], which says whether the message may be
// stored all the same.
func (c *Client) Publish(ctx context.Context, m Message) error {
	return c.PublishAsync(ctx, m).Wait(ctx)
}

// PublishAsync publishes m and returns without waiting for the confirm, so that many messages can be on their way at
// once; see [Options.MaxInFlight]. ctx bounds the sending only. Every error is reported by the handle. m's body and headers must not
// change before the confirm.
func (c *Client) PublishAsync(ctx context.Context, m Message) *Confirmation {
	now := time.Now()
	if m.MessageID == "" {
		m.MessageID = newMessageID()
	}
	due := m.due(now)
	err := m.validate()
	if err == nil && due.After(now) {
		err = m.validateDelayed()
	}
	p := post{exchange: m.Exchange, key: m.RoutingKey, due: due}
	if err == nil {
		p.Publishing, err = m.publishing()
	}
	if err != nil {
		p.MessageId = m.MessageID
		return c.pub.refuse(&p, err)
	}
	return c.pub.publish(ctx, p)
}

// A Confirmation is the handle of one message on its way.
type Confirmation struct {
	id    string
	done  chan struct{}
	err   error // valid once done is closed
	event ConfirmEvent
	sent  time.Time
	once  sync.Once
}

func newConfirmation(p *post) *Confirmation {
	return &Confirmation{id: p.MessageId, done: make(chan struct{}), event: ConfirmEvent{Exchange: p.exchange, RoutingKey: p.key}}
}

// resolve tells the message's fate, once.
func (p *Confirmation) resolve(h Hooks, reason, cause error) {
	p.once.Do(func() {
		if reason != nil {
			p.err = &PublishError{Reason: reason, MessageID: p.id, Err: cause}
		}
		if h.Confirm != nil {
			p.event.Err = p.err
			if !p.sent.IsZero() {
				p.event.Took = time.Since(p.sent)
			}
			h.Confirm(p.event)
		}
		close(p.done)
	})
}

// MessageID is the id of the message, generated when it had none.
func (p *Confirmation) MessageID() string { return p.id }

// Done is closed when the message's fate is known.
func (p *Confirmation) Done() <-chan struct{} { return p.done }

// Wait waits for the message's fate and returns nil or a *[PublishError]. When ctx ends first the error is ErrUnknown, and
// a later Wait can still tell.
func (p *Confirmation) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	default:
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return &PublishError{Reason: ErrUnknown, MessageID: p.id, Err: context.Cause(ctx)}
	}
}
