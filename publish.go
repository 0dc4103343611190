package dormouse

import (
	"context"
	"errors"
)

// Publish publishes m, at once or after its delay, and waits until the broker has confirmed that it is stored.
// While the connection is down it waits for it as long as ctx allows. Any error is a *[PublishError], which says whether the
// message may be stored all the same.
func (c *Client) Publish(ctx context.Context, m Message) error { return c.PublishAsync(ctx, m).Wait(ctx) }

// PublishAsync publishes m and returns without waiting for the confirm, so that many messages can be on their way at
// once; see [Options.MaxInFlight]. ctx bounds the sending only. Every error is reported by the handle.
func (c *Client) PublishAsync(ctx context.Context, m Message) *Confirmation { return nil }

// A Confirmation is the handle of one message on its way.
type Confirmation struct{}

// MessageID is the id of the message, generated when it had none.
func (p *Confirmation) MessageID() string { return "" }

// Done is closed when the message's fate is known.
func (p *Confirmation) Done() <-chan struct{} { return nil }

// Wait waits for the message's fate and returns nil or a *[PublishError]. When ctx ends first the error is ErrUnknown, and
// a later Wait can still tell.
func (p *Confirmation) Wait(ctx context.Context) error { return errors.ErrUnsupported }
