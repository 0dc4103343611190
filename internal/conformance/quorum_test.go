package conformance

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/wire"
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
		{"quorum/dead letters bring their counts along once they have failed", func(c *C) {
			if c.version.before(v43) {
				c.Skip("before 4.3 every return counts as a failure")
			}
			nack := func(requeue bool) func(amqp.Delivery) error {
				return func(d amqp.Delivery) error { return d.Nack(false, requeue) }
			}
			reject := func(requeue bool) func(amqp.Delivery) error {
				return func(d amqp.Delivery) error { return d.Reject(requeue) }
			}
			dead := c.Queue("dead", quorum, nil)
			q := c.Queue("q", quorum, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
			// They stay: a quorum queue may deliver to a consumer whose channel has just closed, and count that.
			k, after := c.Consume(q, consume{Prefetch: 1}), c.Consume(dead, consume{})
			for _, p := range []struct {
				name  string
				steps []func(amqp.Delivery) error
				want  string
			}{
				{"nack", []func(amqp.Delivery) error{nack(false)}, "false <nil> <nil>"},
				{"nack twice", []func(amqp.Delivery) error{nack(true), nack(false)}, "false <nil> <nil>"},
				{"reject", []func(amqp.Delivery) error{reject(false)}, "true 1 1"},
				{"reject, then nack", []func(amqp.Delivery) error{reject(true), nack(false)}, "true 1 1"},
				{"nack, then reject", []func(amqp.Delivery) error{nack(true), reject(false)}, "true 1 1"},
			} {
				c.Fill(q, "a")
				for _, settle := range p.steps {
					c.OK(settle(k.Next()))
				}
				d := after.Next()
				c.Equal(p.name, fmt.Sprint(d.Redelivered, d.Headers["x-acquired-count"], d.Headers["x-delivery-count"]), p.want)
				c.OK(d.Ack(false))
			}
		}},
		{"cancel/who deletes a queue hears of that first", func(c *C) {
			q := c.Queue("q", classic, nil)
			r := c.Opened()
			r.Send(1, &wire.BasicConsume{Queue: q, ConsumerTag: "t"})
			r.Expect("basic.consume-ok")
			r.Send(1, &wire.QueueDelete{Queue: q})
			r.Expect("queue.delete-ok")
		}},
		{"bind/who unbinds may name what cannot be", func(c *C) {
			q, x := c.Queue("q", classic, nil), c.Exchange("x", "headers", nil)
			c.Equal("refused", c.Refused(func(ch *amqp.Channel) error {
				return ch.QueueUnbind(q, "", x, amqp.Table{"x-match": "most"})
			}), "")
		}},
		{"declare/arguments of the type come before others", func(c *C) {
			invalid := "406 PRECONDITION_FAILED - invalid arg '%s' for queue 'q' in vhost '/'%s"
			for _, p := range []struct {
				kind string
				args amqp.Table
				want string
			}{
				{classic, amqp.Table{"x-message-ttl": int32(-1), "x-max-priority": int32(256)}, fmt.Sprintf(invalid, "x-message-ttl", ": {value_negative,-1}")},
				{quorum, amqp.Table{"x-message-ttl": int32(-1), "x-max-length": int32(-1)}, fmt.Sprintf(invalid, "x-message-ttl", ": {value_negative,-1}")},
				{classic, amqp.Table{"x-max-age": "1h", "x-max-length": int32(-1)}, fmt.Sprintf(invalid, "x-max-length", ": {value_negative,-1}")},
				{stream, amqp.Table{"x-max-age": "x", "x-max-length": int32(1)}, fmt.Sprintf(invalid, "x-max-age", ": invalid_max_age")},
				{classic, amqp.Table{"x-max-age": "1h"}, fmt.Sprintf(invalid, "x-max-age", " of queue type rabbit_classic_queue")},
			} {
				if p.kind == stream && c.version.before(v43) {
					continue // it fails inside
				}
				c.Equal(fmt.Sprint(p.kind, " ", show(p.args)), c.Refused(func(ch *amqp.Channel) error {
					_, err := ch.QueueDeclare(c.Unique("q"), true, false, false, false, kindArgs(p.kind, p.args))
					return err
				}), p.want)
			}
		}},
		{"stream/a bad offset is refused first", func(c *C) {
			if c.version.before(v43) {
				c.Skip("the prefetch count is looked at first")
			}
			q := c.Queue("q", stream, nil)
			c.Equal("refused", c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.Consume(q, "", true, false, false, false, amqp.Table{"x-stream-offset": "sometime", "x-priority": int32(1)})
				return err
			}), `406 PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'q' in vhost '/': {invalid_stream_offset_arg,{longstr,<<"sometime">>}}`)
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
