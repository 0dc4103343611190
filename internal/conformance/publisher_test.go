package conformance

import (
	"context"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// publisher is a channel in confirm mode.
type publisher struct {
	ch      *amqp.Channel
	returns chan amqp.Return
}

func (c *C) publisher() *publisher {
	c.Helper()
	if c.pub == nil {
		ch := c.Channel()
		c.OK(ch.Confirm(false))
		c.pub = &publisher{ch, ch.NotifyReturn(make(chan amqp.Return, 16))}
	}
	return c.pub
}

// Publish publishes and waits until the broker has taken responsibility.
func (c *C) Publish(exchange, key string, p amqp.Publishing) {
	c.Helper()
	if !c.TryPublish(exchange, key, p) {
		c.Fatalf("publish of %q was nacked", p.Body)
	}
}

// TryPublish publishes and reports whether the broker acked it.
func (c *C) TryPublish(exchange, key string, p amqp.Publishing) bool {
	c.Helper()
	return c.publishAs(exchange, key, false, p)
}

// Returned publishes with the mandatory flag and tells why the message came back, or "" when it did not.
func (c *C) Returned(exchange, key string, p amqp.Publishing) string {
	c.Helper()
	if !c.publishAs(exchange, key, true, p) {
		c.Fatalf("publish of %q was nacked", p.Body)
	}
	// A return comes before its confirm.
	select {
	case r := <-c.pub.returns:
		return c.plain(strconv.Itoa(int(r.ReplyCode)) + " " + r.ReplyText + " " + r.Exchange + "/" + r.RoutingKey + " " + string(r.Body))
	default:
		return ""
	}
}

func (c *C) publishAs(exchange, key string, mandatory bool, p amqp.Publishing) bool {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	d, err := c.publisher().ch.PublishWithDeferredConfirm(exchange, key, mandatory, false, p)
	c.OK(err)
	acked, err := d.WaitContext(ctx)
	c.OK(err)
	return acked
}

// text is a persistent message with that body.
func text(body string, with ...func(*amqp.Publishing)) amqp.Publishing {
	p := amqp.Publishing{Body: []byte(body), DeliveryMode: amqp.Persistent}
	for _, w := range with {
		w(&p)
	}
	return p
}

// ttl sets the expiration property.
func ttl(d time.Duration) func(*amqp.Publishing) {
	return expiration(strconv.FormatInt(d.Milliseconds(), 10))
}

func expiration(s string) func(*amqp.Publishing) {
	return func(p *amqp.Publishing) { p.Expiration = s }
}

func header(name string, value any) func(*amqp.Publishing) {
	return func(p *amqp.Publishing) {
		if p.Headers == nil {
			p.Headers = amqp.Table{}
		}
		p.Headers[name] = value
	}
}

func priority(n uint8) func(*amqp.Publishing) {
	return func(p *amqp.Publishing) { p.Priority = n }
}

// moment is an instant in whole seconds.
var moment = time.Unix(1_700_000_000, 0)
