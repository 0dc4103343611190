package conformance

import (
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

// hashCases are those of the exchange types of the plugins rabbitmq_consistent_hash_exchange and rabbitmq_random_exchange.
func hashCases() []Case {
	hash := func(name string, args amqp.Table, want string) Case {
		return Case{"consistent hash/" + name, func(c *C) {
			c.needsType("x-consistent-hash")
			c.Equal("exception", c.ExchangeRefused(c.Unique("x"), exchange{Kind: "x-consistent-hash"}, args), want)
		}}
	}
	bind := func(name, key, want string) Case {
		return Case{"consistent hash/weight " + name, func(c *C) {
			c.needsType("x-consistent-hash")
			x, q := c.Exchange("x", "x-consistent-hash", nil), c.Queue("q", classic, nil)
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error { return ch.QueueBind(q, key, x, false, nil) }), want)
		}}
	}
	spread := func(name string, args amqp.Table, message func(n int) (key string, p amqp.Publishing)) Case {
		return Case{"consistent hash/same queue for the same " + name, func(c *C) {
			c.needsType("x-consistent-hash")
			x := c.Exchange("x", "x-consistent-hash", args)
			queues := []string{c.Queue("a", classic, nil), c.Queue("b", classic, nil)}
			for _, q := range queues {
				c.Bind(q, "10", x, nil)
			}
			for range 2 {
				for n := range 40 {
					key, p := message(n)
					p.Body = fmt.Append(nil, n)
					c.Publish(x, key, p)
				}
			}
			var split []string
			all := 0
			for _, q := range queues {
				n := c.Ready(q)
				all += n
				bodies := c.Bodies(q, n)
				if first, second := bodies[:n/2], bodies[n/2:]; !slices.Equal(first, second) {
					split = append(split, fmt.Sprint(first, second))
				}
				if n == 0 {
					split = append(split, "nothing in "+c.plain(q))
				}
			}
			c.Equal("copies", all, 80)
			c.Equal("not the same each time", len(split), 0)
		}}
	}
	return []Case{
		hash("by header", amqp.Table{"hash-header": "h"}, ""),
		hash("by property", amqp.Table{"hash-property": "message_id"}, ""),
		hash("by unknown property", amqp.Table{"hash-property": "type"}, "406 PRECONDITION_FAILED - Unsupported property: type"),
		hash("by header and property", amqp.Table{"hash-header": "h", "hash-property": "message_id"},
			"406 PRECONDITION_FAILED - hash-header and hash-property are mutually exclusive"),
		bind("of one", "1", ""),
		bind("of zero", "0", "406 PRECONDITION_FAILED - The binding key must be greater than 0"),
		bind("that is no number", "a", `406 PRECONDITION_FAILED - The binding key must be an integer: <<"a">>`),
		bind("that is empty", "", "406 PRECONDITION_FAILED - The binding key must be an integer: <<>>"),
		spread("routing key", nil, func(n int) (string, amqp.Publishing) { return fmt.Sprint("key", n), amqp.Publishing{} }),
		spread("header", amqp.Table{"hash-header": "h"}, func(n int) (string, amqp.Publishing) {
			return "", amqp.Publishing{Headers: amqp.Table{"h": fmt.Sprint("value", n)}}
		}),
		spread("property", amqp.Table{"hash-property": "correlation_id"}, func(n int) (string, amqp.Publishing) {
			return "", amqp.Publishing{CorrelationId: fmt.Sprint("value", n)}
		}),
		{"consistent hash/several keys make one copy", func(c *C) {
			c.needsType("x-consistent-hash")
			x, q := c.Exchange("x", "x-consistent-hash", nil), c.Queue("q", classic, nil)
			c.Bind(q, "1", x, nil)
			c.Publish(x, "a", text("m", header("CC", c.keys("b", "c"))))
			c.Equal("copies", c.Ready(q), 1)
		}},
		{"consistent hash/unbound", func(c *C) {
			c.needsType("x-consistent-hash")
			x := c.Exchange("x", "x-consistent-hash", nil)
			c.Equal("return", c.Returned(x, "k", text("a")), "312 NO_ROUTE x/k a")
		}},
		{"random/one of the queues", func(c *C) {
			c.needsType("x-random")
			x := c.Exchange("x", "x-random", nil)
			a, b := c.Queue("a", classic, nil), c.Queue("b", classic, nil)
			c.Bind(a, "any", x, nil)
			c.Bind(b, "", x, nil)
			for range 60 {
				c.Publish(x, "k", text("m", header("CC", c.keys("l"))))
			}
			c.Equal("copies", c.Ready(a)+c.Ready(b), 60)
			c.Equal("both have some", c.Ready(a) > 0 && c.Ready(b) > 0, true)
		}},
	}
}

// needsType skips the case on a broker whose plugins do not give it the exchange type.
func (c *C) needsType(kind string) {
	c.Helper()
	name := c.Unique("probe")
	ch := c.Channel()
	if err := ch.ExchangeDeclare(name, kind, false, true, false, false, nil); err != nil {
		c.Skip("its plugins do not have the exchange type " + kind)
	}
	c.OK(ch.ExchangeDelete(name, false, false))
	c.OK(ch.Close())
}
