package session

import (
	"strings"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// queueName is the queue that a method means: "" is the one that the channel has
// declared last.
func (ch *channel) queueName(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	if ch.lastQueue == "" {
		return "", wire.Errorf(wire.NotFound, "no previously declared queue")
	}
	return ch.lastQueue, nil
}

// ok answers a method that has succeeded, unless nobody waits for it.
func (ch *channel) ok(err error, noWait bool, answer wire.Method) error {
	if err == nil && !noWait {
		ch.send(answer)
	}
	return err
}

func (ch *channel) declareExchange(m *wire.ExchangeDeclare) error {
	c := ch.conn
	d := vhost.ExchangeDeclare{
		Name: m.Exchange, Type: m.Type, Durable: m.Durable, AutoDelete: m.AutoDelete, Internal: m.Internal, Arguments: m.Arguments,
	}
	err := c.mayDeclareExchange(d, m.Passive)
	switch {
	case err != nil:
	case m.Passive:
		err = c.host.CheckExchange(m.Exchange)
	default:
		err = c.host.DeclareExchange(c.ctx, d)
	}
	return ch.ok(err, m.NoWait, &wire.ExchangeDeclareOk{})
}

func (ch *channel) deleteExchange(m *wire.ExchangeDelete) error {
	c := ch.conn
	err := c.host.CheckExchangeDeletion(m.Exchange)
	if err == nil {
		err = c.mayExchange(access.Configure, m.Exchange)
	}
	if err == nil {
		err = c.host.DeleteExchange(c.ctx, m.Exchange, m.IfUnused)
	}
	return ch.ok(err, m.NoWait, &wire.ExchangeDeleteOk{})
}

func (ch *channel) bindExchange(m *wire.ExchangeBind) error {
	c := ch.conn
	b := vhost.Bind{Source: m.Source, Destination: m.Destination, Key: m.RoutingKey, Arguments: m.Arguments}
	err := c.mayBind(c.mayExchange, b)
	if err == nil {
		err = c.host.BindExchange(c.ctx, b)
	}
	return ch.ok(err, m.NoWait, &wire.ExchangeBindOk{})
}

func (ch *channel) unbindExchange(m *wire.ExchangeUnbind) error {
	c := ch.conn
	b := vhost.Bind{Source: m.Source, Destination: m.Destination, Key: m.RoutingKey, Arguments: m.Arguments}
	err := c.mayBind(c.mayExchange, b)
	if err == nil {
		err = c.host.UnbindExchange(c.ctx, b)
	}
	return ch.ok(err, m.NoWait, &wire.ExchangeUnbindOk{})
}

func (ch *channel) declareQueue(m *wire.QueueDeclare) error {
	c := ch.conn
	var q vhost.QueueOK
	var err error
	switch {
	case strings.HasPrefix(m.Queue, replyQueue):
		q, err = ch.declareReplyQueue(m.Queue)
	case m.Passive:
		if err = inAnyWay(c.mayQueue, m.Queue); err == nil {
			q, err = c.host.CheckQueue(c, m.Queue)
		}
	default:
		d := vhost.QueueDeclare{
			Name: m.Queue, Durable: m.Durable, Exclusive: m.Exclusive, AutoDelete: m.AutoDelete, Arguments: m.Arguments,
		}.Named()
		if err = c.mayDeclareQueue(d); err == nil {
			q, err = c.host.DeclareQueue(c.ctx, c, d)
		}
	}
	if err == nil {
		ch.lastQueue = q.Name
	}
	return ch.ok(err, m.NoWait, &wire.QueueDeclareOk{
		Queue: q.Name, MessageCount: uint32(q.Messages), ConsumerCount: uint32(q.Consumers),
	})
}

// queueBinding is a binding to a queue with what "" stands for: the queue that was
// declared last, and without a key its name.
func (ch *channel) queueBinding(b vhost.Bind) (vhost.Bind, error) {
	name, err := ch.queueName(b.Destination)
	if b.Destination == "" && b.Key == "" {
		b.Key = name
	}
	b.Destination = name
	return b, err
}

func (ch *channel) bindQueue(m *wire.QueueBind) error {
	b, err := ch.queueBinding(vhost.Bind{Source: m.Exchange, Destination: m.Queue, Key: m.RoutingKey, Arguments: m.Arguments})
	if err == nil {
		err = ch.conn.mayBind(ch.conn.mayQueue, b)
	}
	if err == nil {
		err = ch.conn.host.BindQueue(ch.conn.ctx, ch.conn, b)
	}
	return ch.ok(err, m.NoWait, &wire.QueueBindOk{})
}

func (ch *channel) unbindQueue(m *wire.QueueUnbind) error {
	b, err := ch.queueBinding(vhost.Bind{Source: m.Exchange, Destination: m.Queue, Key: m.RoutingKey, Arguments: m.Arguments})
	if err == nil {
		err = ch.conn.mayBind(ch.conn.mayQueue, b)
	}
	if err == nil {
		err = ch.conn.host.UnbindQueue(ch.conn.ctx, ch.conn, b)
	}
	return ch.ok(err, false, &wire.QueueUnbindOk{})
}

func (ch *channel) purgeQueue(m *wire.QueuePurge) error {
	name, err := ch.queueName(m.Queue)
	n := 0
	if err == nil {
		err = ch.conn.mayQueue(access.Read, name)
	}
	if err == nil {
		n, err = ch.conn.host.PurgeQueue(ch.conn.ctx, ch.conn, name)
	}
	return ch.ok(err, m.NoWait, &wire.QueuePurgeOk{MessageCount: uint32(n)})
}

func (ch *channel) deleteQueue(m *wire.QueueDelete) error {
	name, err := ch.queueName(m.Queue)
	if err == nil {
		err = ch.conn.mayQueue(access.Configure, name)
	}
	if err != nil {
		return err
	}
	return ch.deletion(func() error {
		n, err := ch.conn.host.DeleteQueue(ch.conn.ctx, ch.conn, vhost.QueueDelete{Name: name, IfUnused: m.IfUnused, IfEmpty: m.IfEmpty})
		return ch.ok(err, m.NoWait, &wire.QueueDeleteOk{MessageCount: uint32(n)})
	})
}
