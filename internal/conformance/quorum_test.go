package conformance

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// quorumCases are about what quorum queues do unlike classic ones.
func quorumCases() []Case {
	return []Case{
		{"quorum/bytes of properties count", func(c *C) {
			q := c.Queue("q", quorum, amqp.Table{"x-max-length-bytes": int32(1000)})
			for _, body := range []string{"a", "b", "c"} {
				c.Publish("", q, text(body, header("h", strings.Repeat("x", 400))))
			}
			c.Equal("ready", c.Ready(q), changedIn(v43, 3, 2))
		}},
		{"quorum/who has gone and has not settled is a consumer", func(c *C) {
			q := c.Queue("q", quorum, nil)
			c.Fill(q, "a", "b", "c", "d")
			consumers := func(n int) func() bool { return func() bool { return c.inspect(q).Consumers == n } }
			a, b := c.Get(q), c.Get(q)
			c.Eventually("a consumer for each get", consumers(2))
			c.OK(a.Ack(false))
			c.Eventually("one that has settled", consumers(1))
			c.OK(b.Ack(false))
			k := c.Consume(q, consume{Prefetch: 2})
			d := []amqp.Delivery{k.Next(), k.Next()}
			c.OK(k.ch.Cancel(k.tag, false))
			c.Eventually("a consumer that is cancelled", consumers(1))
			c.OK(d[1].Ack(true))
			c.Eventually("all have settled", consumers(0))
		}},
		{"quorum/who waits to be the single active consumer is none", func(c *C) {
			q := c.Queue("q", quorum, amqp.Table{"x-single-active-consumer": true})
			c.Fill(q, "a")
			k := c.Consume(q, consume{Prefetch: 1})
			k.Next()
			c.Consume(q, consume{Prefetch: 1})
			c.Equal("consumers", c.inspect(q).Consumers, 1)
			c.OK(k.ch.Cancel(k.tag, false))
			c.Equal("one that has not settled and one that is active", c.inspect(q).Consumers, 2)
		}},
		{"quorum/get with a single active consumer", func(c *C) {
			q := c.Queue("q", quorum, amqp.Table{"x-single-active-consumer": true})
			refused := c.Refused(func(ch *amqp.Channel) error {
				_, _, err := ch.Get(q, false)
				return err
			})
			text := "405 RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost '/'. basic.get operations are not supported by %s queues with single active consumer"
			c.Equal("refused", refused, changedIn(v43, fmt.Sprintf(text, "quorum"), fmt.Sprintf(text, `<<"quorum">>`)))
		}},
		{"declare/the first argument that differs is named/classic", func(c *C) {
			order(c, classic, "x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length", "x-max-length-bytes",
				"x-max-priority", "x-overflow", "x-single-active-consumer")
		}},
		{"declare/the first argument that differs is named/quorum", func(c *C) {
			if c.version.before(v43) {
				c.Skip("delayed retry is not there, and the order is another")
			}
			order(c, quorum, "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy", "x-expires", "x-max-length",
				"x-max-length-bytes", "x-overflow", "x-single-active-consumer", "x-delivery-limit", "x-message-ttl", "x-consumer-timeout",
				"x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max")
		}},
	}
}

// order declares a queue again with these arguments, leaving out each that is refused.
func order(c *C, kind string, arguments ...string) {
	c.Helper()
	values := map[string]any{
		"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "k", "x-dead-letter-strategy": "at-most-once", "x-overflow": "drop-head",
		"x-single-active-consumer": true, "x-delayed-retry-type": "all",
	}
	args := amqp.Table{"x-unknown": "accepted"}
	for _, name := range arguments {
		args[name] = int32(100)
		if v, has := values[name]; has {
			args[name] = v
		}
	}
	q := c.Queue("q", kind, nil)
	var named []string
	for len(named) < len(arguments) {
		refused := c.Refused(func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(q, true, false, false, false, kindArgs(kind, args))
			return err
		})
		_, name, _ := strings.Cut(refused, "inequivalent arg '")
		name, _, _ = strings.Cut(name, "'")
		if _, has := args[name]; !has {
			c.Fatalf("refused: %s", refused)
		}
		named = append(named, name)
		delete(args, name)
	}
	c.Equal("order", named, arguments)
}
