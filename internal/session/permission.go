package session

import (
	"encoding/binary"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// What a method needs is in https://www.rabbitmq.com/docs/access-control#permissions. Names are checked as the
// virtual host takes them, without line breaks.

func (c *conn) mayExchange(kind access.Kind, name string) error {
	name = vhost.Stripped(name)
	if c.identity.MayExchange(kind, c.host.Name(), name) {
		return nil
	}
	return c.exchangeRefused(kind, name)
}

func (c *conn) exchangeRefused(kind access.Kind, name string) error {
	if name == "" {
		name = "amq.default"
	}
	return c.refused(kind, "exchange", name)
}

func (c *conn) mayQueue(kind access.Kind, name string) error {
	name = vhost.Stripped(name)
	if c.identity.MayQueue(kind, c.host.Name(), name) {
		return nil
	}
	return c.refused(kind, "queue", name)
}

func (c *conn) refused(kind access.Kind, what, name string) error {
	return wire.Errorf(wire.AccessRefused, "%v access to %s '%s' in vhost '%s' refused for user '%s'",
		kind, what, name, c.host.Name(), c.identity.Name())
}

// inAnyWay is what a passive declaration needs since RabbitMQ 4.3: some permission, whichever it is.
func inAnyWay(may func(access.Kind, string) error, name string) error {
	if may(access.Read, name) == nil || may(access.Write, name) == nil {
		return nil
	}
	return may(access.Configure, name)
}

// mayTopic checks a routing key, if there are topic permissions for the exchange.
func (c *conn) mayTopic(kind access.Kind, exchange, key string) error {
	exchange = vhost.Stripped(exchange)
	keys := c.identity.Topics(kind, c.host.Name(), exchange)
	if keys == nil || !c.isTopic(exchange) || keys.Match(key) {
		return nil
	}
	return c.topicRefused(kind, exchange, key)
}

func (c *conn) isTopic(exchange string) bool {
	kind, _ := c.host.ExchangeType(exchange)
	return kind == "topic"
}

func (c *conn) topicRefused(kind access.Kind, exchange, key string) error {
	return wire.Errorf(wire.AccessRefused, "%v access to topic '%s' in exchange '%s' in vhost '%s' refused for user '%s'",
		kind, key, exchange, c.host.Name(), c.identity.Name())
}

// mayDeclareExchange checks a declaration. Of an exchange that is there, the alternate exchange does not matter.
func (c *conn) mayDeclareExchange(d vhost.ExchangeDeclare, passive bool) error {
	if vhost.Stripped(d.Name) == "" {
		return nil // refused whatever the permissions
	}
	if passive {
		return inAnyWay(c.mayExchange, d.Name)
	}
	if err := d.CheckType(); err != nil {
		return err
	}
	if err := c.mayExchange(access.Configure, d.Name); err != nil {
		return err
	}
	if _, exists := c.host.ExchangeType(vhost.Stripped(d.Name)); exists || d.Reserved() {
		return nil
	}
	return c.mayForward(c.mayExchange, d.Name, d.Arguments, "alternate-exchange")
}

// mayDeclareQueue checks a declaration that is not passive. Of a queue that is there, the dead-letter exchange does not
// matter.
func (c *conn) mayDeclareQueue(d vhost.QueueDeclare) error {
	if d.Reserved() {
		return nil // refused whatever the permissions
	}
	if err := c.mayQueue(access.Configure, d.Name); err != nil || c.host.HasQueue(d.Name) {
		return err
	}
	return c.mayForward(c.mayQueue, d.Name, d.Arguments, "x-dead-letter-exchange")
}

// mayBind checks the binding of a destination to an exchange, or its end. may checks the destination.
func (c *conn) mayBind(may func(access.Kind, string) error, b vhost.Bind) error {
	if err := may(access.Write, b.Destination); err != nil {
		return err
	}
	if vhost.Stripped(b.Source) == "" {
		return nil // refused whatever the permissions
	}
	if err := c.mayExchange(access.Read, b.Source); err != nil {
		return err
	}
	return c.mayTopic(access.Read, b.Source, b.Key)
}

// mayForward checks that what is in a queue or comes to an exchange may go on to another exchange, if the argument
// names one.
func (c *conn) mayForward(may func(access.Kind, string) error, from string, arguments wire.Table, argument string) error {
	v, _ := arguments.Get(argument)
	to, ok := v.(string)
	if !ok {
		return nil
	}
	if err := may(access.Read, from); err != nil {
		return err
	}
	return c.mayExchange(access.Write, to)
}

// permit is what a channel has found out when it published last. It holds as long as the generation of the
// permissions is the same, so that most messages need no look at them.
type permit struct {
	granted    bool
	generation uint64
	exchange   string
	topics     access.Keys // nil if all keys are allowed
	key        string      // that was allowed last, "" if none was
}

// mayPublish checks the exchange of a message.
func (ch *channel) mayPublish(exchange string) error {
	c := ch.conn
	p := &ch.permit
	generation := c.identity.Generation()
	if p.granted && p.generation == generation && p.exchange == exchange {
		return nil
	}
	*p = permit{}
	if !c.identity.MayExchange(access.Write, c.host.Name(), exchange) {
		return c.exchangeRefused(access.Write, exchange)
	}
	*p = permit{granted: true, generation: generation, exchange: exchange, topics: c.identity.Topics(access.Write, c.host.Name(), exchange)}
	return nil
}

// mayPublishAs checks the routing keys of a message and the user that it says it is from.
func (ch *channel) mayPublishAs(m *message.Message) error {
	if ch.permit.topics != nil && ch.conn.isTopic(m.Exchange) {
		for _, key := range m.AllKeys() {
			if (key == "" || key != ch.permit.key) && !ch.permit.topics.Match(key) {
				return ch.conn.topicRefused(access.Write, m.Exchange, key)
			}
			ch.permit.key = key
		}
	}
	if len(m.Properties) < 2 || binary.BigEndian.Uint16(m.Properties)&wire.FlagUserID == 0 {
		return nil
	}
	view, err := wire.ViewProperties(m.Properties)
	if err != nil {
		return err
	}
	if user := ch.conn.identity; string(view.UserID) != user.Name() && !user.Has(access.Impersonator) {
		return wire.Errorf(wire.PreconditionFailed, "user_id property set to '%s' but authenticated user was '%s'", view.UserID, user.Name())
	}
	return nil
}
