package conformance

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// exchange are the type and flags of an exchange declaration.
type exchange struct {
	Kind                            string
	Transient, AutoDelete, Internal bool
}

// ExchangeRefused declares an exchange on a connection of its own and returns the exception.
func (c *C) ExchangeRefused(name string, x exchange, args amqp.Table) string {
	c.Helper()
	c.deleteLater(func(ch *amqp.Channel) error { return ch.ExchangeDelete(name, false, false) })
	return c.Closed(func(ch *amqp.Channel) error {
		return ch.ExchangeDeclare(name, x.Kind, !x.Transient, x.AutoDelete, x.Internal, false, args)
	})
}

func exchangeCases() []Case {
	inequivalent := func(arg, received, current string) string {
		return fmt.Sprintf("406 PRECONDITION_FAILED - inequivalent arg '%s' for exchange 'x' in vhost '/': received %s but current is %s",
			arg, received, current)
	}
	var cases []Case
	for _, r := range []struct {
		name string
		x    exchange
		args amqp.Table
		want any
	}{
		{"the same", exchange{Kind: "direct"}, nil, ""},
		{"another type", exchange{Kind: "fanout"}, nil, inequivalent("type", "'fanout'", "'direct'")},
		{"transient", exchange{Kind: "direct", Transient: true}, nil, inequivalent("durable", "'false'", "'true'")},
		{"auto-delete", exchange{Kind: "direct", AutoDelete: true}, nil, inequivalent("auto_delete", "'true'", "'false'")},
		{"internal", exchange{Kind: "direct", Internal: true}, nil, inequivalent("internal", "'true'", "'false'")},
		{"with an alternate exchange", exchange{Kind: "direct"}, amqp.Table{"alternate-exchange": "a"},
			inequivalent("alternate-exchange", "the value 'a' of type 'longstr'", "none")},
		{"with an unknown argument", exchange{Kind: "direct"}, amqp.Table{"x-nobody-knows": "a"}, ""},
	} {
		cases = append(cases, Case{"exchange/redeclare " + r.name, func(c *C) {
			x := c.Exchange("x", "direct", nil)
			c.Equal("exception", c.ExchangeRefused(x, r.x, r.args), r.want)
		}})
	}
	return append(cases, []Case{
		{"exchange/redeclare with another alternate exchange", func(c *C) {
			x := c.Exchange("x", "direct", amqp.Table{"alternate-exchange": "a"})
			c.Equal("exception", c.ExchangeRefused(x, exchange{Kind: "direct"}, amqp.Table{"alternate-exchange": "b"}),
				inequivalent("alternate-exchange", "'b'", "'a'"))
			c.Equal("without", c.ExchangeRefused(x, exchange{Kind: "direct"}, nil),
				inequivalent("alternate-exchange", "none", "the value 'a' of type 'longstr'"))
		}},
		{"exchange/alternate exchange as integer", func(c *C) {
			c.Equal("exception", c.ExchangeRefused(c.Unique("x"), exchange{Kind: "direct"}, amqp.Table{"alternate-exchange": int32(1)}),
				"406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x' in vhost '/'")
		}},
		{"exchange/unknown type", func(c *C) {
			c.Equal("exception", c.ExchangeRefused(c.Unique("x"), exchange{Kind: "squircle"}, nil), changedIn(v40,
				"503 COMMAND_INVALID - unknown exchange type 'squircle'", "406 PRECONDITION_FAILED - unknown exchange type 'squircle'"))
		}},
		{"exchange/reserved prefix", func(c *C) {
			name := "amq." + c.Unique("x")
			c.Equal("exception", c.Closed(func(ch *amqp.Channel) error {
				return ch.ExchangeDeclare(name, "direct", true, false, false, false, nil)
			}), "403 ACCESS_REFUSED - exchange name 'amq.x' contains reserved prefix 'amq.*'")
		}},
		{"exchange/predeclared again", func(c *C) {
			for name, kind := range map[string]string{
				"amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic", "amq.headers": "headers", "amq.match": "headers",
			} {
				c.Equal(name, c.Closed(func(ch *amqp.Channel) error {
					return ch.ExchangeDeclare(name, kind, true, false, false, false, nil)
				}), "")
			}
		}},
		{"exchange/predeclared as another type", func(c *C) {
			c.Equal("exception", c.Closed(func(ch *amqp.Channel) error {
				return ch.ExchangeDeclare("amq.direct", "fanout", true, false, false, false, nil)
			}), "406 PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'amq.direct' in vhost '/': received 'fanout' but current is 'direct'")
		}},
		{"exchange/predeclared deleted", func(c *C) {
			c.Equal("exception", c.Closed(func(ch *amqp.Channel) error { return ch.ExchangeDelete("amq.direct", false, false) }),
				"403 ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed")
		}},
		{"exchange/default declared", func(c *C) {
			c.Equal("exception", c.Closed(func(ch *amqp.Channel) error {
				return ch.ExchangeDeclare("", "direct", true, false, false, false, nil)
			}), "403 ACCESS_REFUSED - operation not permitted on the default exchange")
		}},
		{"exchange/default declared passively", func(c *C) {
			c.Equal("exception", c.Closed(func(ch *amqp.Channel) error {
				return ch.ExchangeDeclarePassive("", "direct", true, false, false, false, nil)
			}), "403 ACCESS_REFUSED - operation not permitted on the default exchange")
		}},
		{"exchange/default deleted", func(c *C) {
			c.Equal("exception", c.Closed(func(ch *amqp.Channel) error { return ch.ExchangeDelete("", false, false) }),
				"403 ACCESS_REFUSED - operation not permitted on the default exchange")
		}},
		{"exchange/missing deleted", func(c *C) {
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error { return ch.ExchangeDelete(c.Unique("x"), false, false) }), "")
		}},
		{"exchange/delete if-unused", func(c *C) {
			x, q := c.Exchange("x", "direct", nil), c.Queue("q", classic, nil)
			c.Bind(q, "k", x, nil)
			del := func(ch *amqp.Channel) error { return ch.ExchangeDelete(x, true, false) }
			c.Equal("with a binding", c.Refused(del), "406 PRECONDITION_FAILED - exchange 'x' in vhost '/' in use")
			c.OK(c.ch.QueueUnbind(q, "k", x, nil))
			c.Equal("without", c.Refused(del), "")
		}},
		{"exchange/delete if-unused as the destination of a binding", func(c *C) {
			x, source := c.Exchange("x", "direct", nil), c.Exchange("source", "direct", nil)
			c.OK(c.ch.ExchangeBind(x, "k", source, false, nil))
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error { return ch.ExchangeDelete(x, true, false) }), "")
		}},
		{"exchange/auto-delete goes with its last binding", func(c *C) {
			x, q := c.Unique("x"), c.Queue("q", classic, nil)
			c.Equal("declare", c.ExchangeRefused(x, exchange{Kind: "direct", AutoDelete: true}, nil), "")
			c.Bind(q, "a", x, nil)
			c.Bind(q, "b", x, nil)
			there := func() string {
				return c.Refused(func(ch *amqp.Channel) error {
					return ch.ExchangeDeclarePassive(x, "direct", true, true, false, false, nil)
				})
			}
			c.OK(c.ch.QueueUnbind(q, "a", x, nil))
			c.Equal("with one binding", there(), "")
			c.OK(c.ch.QueueUnbind(q, "b", x, nil))
			c.Equal("without", there(), "404 NOT_FOUND - no exchange 'x' in vhost '/'")
		}},
		{"exchange/auto-delete goes with the queue of its last binding", func(c *C) {
			x, q := c.Unique("x"), c.Queue("q", classic, nil)
			c.Equal("declare", c.ExchangeRefused(x, exchange{Kind: "direct", AutoDelete: true}, nil), "")
			c.Bind(q, "a", x, nil)
			c.OK(deleteQueue(c.ch, q))
			c.Equal("passive", c.Refused(func(ch *amqp.Channel) error {
				return ch.ExchangeDeclarePassive(x, "direct", true, true, false, false, nil)
			}), "404 NOT_FOUND - no exchange 'x' in vhost '/'")
		}},
		{"exchange/auto-delete stays while it never had a binding", func(c *C) {
			x, q := c.Unique("x"), c.Queue("q", classic, nil)
			c.Equal("declare", c.ExchangeRefused(x, exchange{Kind: "direct", AutoDelete: true}, nil), "")
			c.OK(c.ch.QueueUnbind(q, "a", x, nil))
			c.Publish(x, "a", text("a"))
		}},
		{"exchange/internal refuses publishers", func(c *C) {
			x, q := c.Unique("x"), c.Queue("q", classic, nil)
			source := c.Exchange("source", "fanout", nil)
			c.Equal("declare", c.ExchangeRefused(x, exchange{Kind: "fanout", Internal: true}, nil), "")
			c.Bind(q, "", x, nil)
			c.OK(c.ch.ExchangeBind(x, "", source, false, nil))
			c.Equal("publish", c.Refused(func(ch *amqp.Channel) error { return ch.Publish(x, "", false, false, text("a")) }),
				"403 ACCESS_REFUSED - cannot publish to internal exchange 'x' in vhost '/'")
			c.Publish(source, "", text("b"))
			c.Equal("through a binding", c.Bodies(q, 1), []string{"b"})
		}},
		{"exchange/queues of the same name are something else", func(c *C) {
			x := c.Exchange("n", "fanout", nil)
			q := c.Queue("n", classic, nil)
			c.Bind(q, "", x, nil)
			c.Publish(x, "", text("a"))
			c.Equal("body", c.Bodies(q, 1), []string{"a"})
		}},
	}...)
}
