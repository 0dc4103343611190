package conformance

import (
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func retryCases() []Case {
	// How long a message is away that comes back by basic.nack, by basic.reject, and by basic.reject again.
	delays := func(how, want string) Case {
		return Case{"retry/" + how, func(c *C) {
			if c.version.before(v43) {
				c.Skip("delayed retry is new in 4.3")
			}
			q := c.Queue("q", quorum, amqp.Table{
				"x-delayed-retry-type": how, "x-delayed-retry-min": int64(400), "x-delayed-retry-max": int64(700),
			})
			c.Fill(q, "a")
			k := c.Consume(q, consume{})
			d := k.Next()
			var got strings.Builder
			for _, back := range []func(d amqp.Delivery) error{
				func(d amqp.Delivery) error { return d.Nack(false, true) },
				func(d amqp.Delivery) error { return d.Reject(true) },
				func(d amqp.Delivery) error { return d.Reject(true) },
			} {
				began := time.Now()
				c.OK(back(d))
				d = k.Next()
				waited := time.Since(began).Milliseconds() / 350 * 350
				fmt.Fprintf(&got, "%d to %d ms, ", waited, waited+350)
			}
			c.Equal("waited", got.String(), want)
		}}
	}
	return []Case{
		delays("all", "350 to 700 ms, 350 to 700 ms, 700 to 1050 ms, "),
		delays("failed", "0 to 350 ms, 350 to 700 ms, 700 to 1050 ms, "),
		delays("returned", "350 to 700 ms, 0 to 350 ms, 0 to 350 ms, "),
		delays("disabled", "0 to 350 ms, 0 to 350 ms, 0 to 350 ms, "),
		{"retry/what waits is not ready, counts, and is purged", func(c *C) {
			if c.version.before(v43) {
				c.Skip("delayed retry is new in 4.3")
			}
			q := c.Queue("q", quorum, amqp.Table{"x-max-length": int32(2)})
			c.Policy("p", q, 0, map[string]any{"delayed-retry-type": "all", "delayed-retry-min": 60_000})
			c.Fill(q, "a", "b")
			c.OK(c.Get(q).Nack(false, true))
			c.ReadyBecomes(q, 1)
			c.Fill(q, "c", "d")
			c.Equal("ready", c.Ready(q), 1)
			n, err := c.ch.QueuePurge(q, false)
			c.OK(err)
			c.Equal("purged", n, 2)
		}},
	}
}
