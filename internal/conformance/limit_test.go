package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func limitCases() []Case {
	limited := func(c *C, kind string, args amqp.Table, overflow string) (queue, dead string) {
		c.Helper()
		with := amqp.Table{"x-overflow": overflow}
		maps.Copy(with, args)
		return c.DeadLetters(kind, with)
	}
	two := amqp.Table{"x-max-length": int32(2)}
	return slices.Concat(
		both("limit/drop-head", func(c *C, kind string) {
			q, dead := limited(c, kind, two, "drop-head")
			c.Fill(q, "a", "b", "c", "d")
			c.Equal("dropped", c.Bodies(dead, 2), []string{"a", "b"})
			c.Equal("kept", c.Bodies(q, 2), []string{"c", "d"})
		}),
		both("limit/drop-head is the default", func(c *C, kind string) {
			q := c.Queue("q", kind, two)
			c.Fill(q, "a", "b", "c")
			c.Equal("kept", c.Bodies(q, 2), []string{"b", "c"})
		}),
		both("limit/0", func(c *C, kind string) {
			q, dead := limited(c, kind, amqp.Table{"x-max-length": int32(0)}, "drop-head")
			c.Fill(q, "a")
			c.Equal("dropped", c.Bodies(dead, 1), []string{"a"})
		}),
		both("limit/unacked messages do not count", func(c *C, kind string) {
			q := c.Queue("q", kind, two)
			c.Fill(q, "a", "b")
			a := c.Get(q)
			c.Fill(q, "c")
			c.Equal("ready", c.Ready(q), 2)
			c.OK(a.Ack(false))
			c.Equal("kept", c.Bodies(q, 2), []string{"b", "c"})
		}),
		both("limit/bytes", func(c *C, kind string) {
			q := c.Queue("q", kind, amqp.Table{"x-max-length-bytes": int32(2000)})
			big := strings.Repeat("x", 900)
			c.Fill(q, "a"+big, "b"+big, "c"+big)
			got := c.Bodies(q, 2)
			c.Equal("kept", got[0][:1]+got[1][:1], "bc")
		}),
		[]Case{
			{"limit/classic reject-publish", func(c *C) {
				q, dead := limited(c, classic, two, "reject-publish")
				c.Equal("acks", fmt.Sprint(c.TryPublish("", q, text("a")), c.TryPublish("", q, text("b")), c.TryPublish("", q, text("c"))), "true true false")
				c.Equal("kept", c.Bodies(q, 2), []string{"a", "b"})
				c.Equal("room again", c.TryPublish("", q, text("d")), true)
				c.Empty(dead)
			}},
			{"limit/classic reject-publish-dlx", func(c *C) {
				q, dead := limited(c, classic, two, "reject-publish-dlx")
				c.Equal("acks", fmt.Sprint(c.TryPublish("", q, text("a")), c.TryPublish("", q, text("b")), c.TryPublish("", q, text("c"))), "true true false")
				d := c.One(dead)
				c.Equal("dead", string(d.Body)+" "+shortDeaths(d), "c q:maxlen:1")
			}},
			{"limit/quorum reject-publish overshoots by one", func(c *C) {
				q, dead := limited(c, quorum, two, "reject-publish")
				var acks []bool
				for _, b := range []string{"a", "b", "c", "d"} {
					acks = append(acks, c.TryPublish("", q, text(b)))
				}
				c.Equal("acks", fmt.Sprint(acks), "[true true true false]")
				c.Equal("kept", c.Bodies(q, 3), []string{"a", "b", "c"})
				c.Empty(dead)
			}},
			{"limit/quorum reject-publish-dlx means drop-head", func(c *C) {
				q, dead := limited(c, quorum, two, "reject-publish-dlx")
				c.Equal("ack", fmt.Sprint(c.TryPublish("", q, text("a")), c.TryPublish("", q, text("b")), c.TryPublish("", q, text("c"))), "true true true")
				c.Equal("dropped", c.Bodies(dead, 1), []string{"a"})
			}},
			{"limit/nack when one of several queues rejects", func(c *C) {
				x := c.Exchange("x", "fanout", nil)
				full, open := c.Queue("full", classic, amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"}), c.Queue("open", classic, nil)
				c.Bind(full, "", x, nil)
				c.Bind(open, "", x, nil)
				c.Equal("ack", c.TryPublish(x, "", text("a")), false)
				c.Equal("stored in the other", c.Bodies(open, 1), []string{"a"})
			}},
			{"limit/requeue may drop the head", func(c *C) {
				q, dead := c.DeadLetters(classic, two)
				c.Fill(q, "a", "b")
				a := c.Get(q)
				c.Fill(q, "c")
				c.OK(a.Nack(false, true))
				c.Equal("dropped", c.Bodies(dead, 1), []string{"a"})
				c.Equal("kept", c.Bodies(q, 2), []string{"b", "c"})
			}},
		},
	)
}

func priorityCases() []Case {
	publish := func(c *C, q string, messages ...string) {
		c.Helper()
		for _, m := range messages { // a letter and its priority
			c.Publish("", q, text(m, priority(m[1]-'0')))
		}
	}
	return []Case{
		{"priority/classic", func(c *C) {
			q := c.Queue("q", classic, amqp.Table{"x-max-priority": int32(5)})
			publish(c, q, "a1", "b5", "c3", "d5", "e0")
			c.Equal("order", c.Bodies(q, 5), []string{"b5", "d5", "c3", "a1", "e0"})
		}},
		{"priority/beyond the maximum is the maximum", func(c *C) {
			q := c.Queue("q", classic, amqp.Table{"x-max-priority": int32(3)})
			publish(c, q, "a3", "b9", "c3")
			got := c.Receive(q, 3)
			c.Equal("order", string(got[0].Body)+string(got[1].Body)+string(got[2].Body), "a3b9c3")
			c.Equal("property", got[1].Priority, 9)
		}},
		{"priority/none is 0 on classic", func(c *C) {
			q := c.Queue("q", classic, amqp.Table{"x-max-priority": int32(3)})
			c.Publish("", q, text("none"))
			publish(c, q, "a0", "b1")
			c.Equal("order", c.Bodies(q, 3), []string{"b1", "none", "a0"})
		}},
		{"priority/ignored without x-max-priority", func(c *C) {
			q := c.Queue("q", classic, nil)
			publish(c, q, "a1", "b9")
			c.Equal("order", c.Bodies(q, 2), []string{"a1", "b9"})
		}},
		{"priority/requeue keeps the place", func(c *C) {
			q := c.Queue("q", classic, amqp.Table{"x-max-priority": int32(5)})
			publish(c, q, "a1", "b1", "c5")
			c.OK(c.Get(q).Ack(false))
			a := c.Get(q)
			publish(c, q, "d1", "e2")
			c.OK(a.Nack(false, true))
			c.Equal("order", c.Bodies(q, 4), []string{"e2", "a1", "b1", "d1"})
		}},
		{"priority/quorum", func(c *C) {
			q := c.Queue("q", quorum, nil)
			publish(c, q, "a1", "b5", "c3", "d9", "e0", "f4") // the client leaves priority 0 out, which means 4 since 4.3
			c.Publish("", q, text("none"))
			c.Equal("order", c.Bodies(q, 7), changedIn(v40, []string{"a1", "b5", "c3", "d9", "e0", "f4", "none"},
				changedIn(v43, []string{"b5", "d9", "a1", "c3", "e0", "f4", "none"}, []string{"d9", "b5", "e0", "f4", "none", "c3", "a1"})))
		}},
		{"priority/quorum beyond 31 is 31", func(c *C) {
			if c.version.before(v43) {
				c.Skip("strict priorities are new in 4.3")
			}
			q := c.Queue("q", quorum, nil)
			c.Publish("", q, text("a", priority(31)))
			c.Publish("", q, text("b", priority(255)))
			c.Publish("", q, text("c", priority(30)))
			c.Publish("", q, text("d", priority(31)))
			c.Equal("order", c.Bodies(q, 4), []string{"a", "b", "d", "c"})
		}},
		{"priority/drop-head drops the head, which is the highest", func(c *C) {
			q, dead := c.DeadLetters(classic, amqp.Table{"x-max-priority": int32(5), "x-max-length": int32(2)})
			publish(c, q, "a3", "b1", "c5")
			c.Equal("dropped", c.Bodies(dead, 1), []string{"c5"})
		}},
		{"priority/classic expires at the head of the highest priority only", func(c *C) {
			q, dead := c.DeadLetters(classic, amqp.Table{"x-max-priority": int32(5)})
			c.Publish("", q, text("high", priority(5)))
			c.Publish("", q, text("low", priority(1), expiration("20")))
			k := c.Consume(dead, consume{})
			k.None(100 * time.Millisecond)
			c.Equal("ready", c.Ready(q), 2)
			c.OK(c.Get(q).Ack(false))
			c.Equal("when the head is gone", k.Bodies(1), []string{"low"})
		}},
		{"priority/quorum expires at each priority", func(c *C) {
			if c.version.before(v43) {
				c.Skip("strict priorities are new in 4.3")
			}
			q, dead := c.DeadLetters(quorum, nil)
			c.Publish("", q, text("high", priority(5)))
			c.Publish("", q, text("low", priority(1), expiration("20")))
			c.Equal("dead", c.Bodies(dead, 1), []string{"low"})
		}},
	}
}
