package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func transactionCases() []Case {
	return slices.Concat(
		both("tx/publishes and acks at the commit", func(c *C, kind string) {
			in, out := c.Queue("in", kind, nil), c.Queue("out", kind, nil)
			c.Fill(in, "1", "2")
			ch := c.transaction()
			first, _, err := ch.Get(in, false)
			c.OK(err)
			second, _, err := ch.Get(in, false)
			c.OK(err)
			for _, body := range []string{"a", "b", "c"} {
				c.OK(ch.Publish("", out, false, false, text(body)))
			}
			c.OK(first.Ack(false))
			c.OK(second.Nack(false, true))
			c.OK(ch.Qos(0, 0, false))
			c.Equal("before", fmt.Sprint(c.Ready(in), c.Ready(out)), "0 0")
			c.OK(ch.TxCommit())
			c.Equal("published", c.Bodies(out, 3), []string{"a", "b", "c"})
			d := c.One(in)
			c.Equal("came back", string(d.Body)+fmt.Sprint(" ", d.Redelivered), "2 true")
			c.Empty(in)
		}),
		both("tx/what is not committed comes back with the channel", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a")
			ch := c.transaction()
			d, _, err := ch.Get(q, false)
			c.OK(err)
			c.OK(d.Ack(false))
			c.OK(ch.Publish("", q, false, false, text("lost")))
			c.OK(ch.Close())
			c.ReadyBecomes(q, 1)
			c.Equal("body", c.Bodies(q, 1), []string{"a"})
			c.Empty(q)
		}),
		both("tx/rejected at the commit", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Fill(q, "a")
			ch := c.transaction()
			d, _, err := ch.Get(q, false)
			c.OK(err)
			c.OK(d.Reject(false))
			c.OK(ch.Qos(0, 0, false))
			c.Equal("before", c.Ready(dead), 0)
			c.OK(ch.TxCommit())
			c.Equal("after", shortDeaths(c.One(dead)), "q:rejected:1")
		}),
		[]Case{
			{"tx/a publish that fails takes the transaction with it", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a")
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					c.OK(ch.Tx())
					d, _, err := ch.Get(q, false)
					c.OK(err)
					c.OK(ch.Publish("", q, false, false, text("lost")))
					c.OK(d.Ack(false))
					c.OK(ch.Publish("", q, false, false, text("x", expiration("never"))))
					return ch.TxCommit()
				}), "406 PRECONDITION_FAILED - invalid expiration 'never': no_integer")
				c.ReadyBecomes(q, 1)
				c.Equal("left", c.Bodies(q, 1), []string{"a"})
			}},
			{"tx/missing exchange closes at the publish", func(c *C) {
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					c.OK(ch.Tx())
					return ch.Publish(c.Unique("x"), "k", false, false, text("a"))
				}), "404 NOT_FOUND - no exchange 'x' in vhost '/'")
			}},
			{"tx/unknown delivery tag closes at the ack", func(c *C) {
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					c.OK(ch.Tx())
					return ch.Ack(7, false)
				}), "406 PRECONDITION_FAILED - unknown delivery tag 7")
			}},
			{"tx/routed when published, not when committed", func(c *C) {
				x := c.Exchange("x", "direct", nil)
				early, late := c.Queue("early", classic, nil), c.Queue("late", classic, nil)
				c.Bind(early, "k", x, nil)
				ch := c.transaction()
				c.OK(ch.Publish(x, "k", false, false, text("a")))
				c.OK(ch.Qos(0, 0, false))
				c.Bind(late, "k", x, nil)
				c.OK(c.ch.QueueUnbind(early, "k", x, nil))
				c.OK(ch.TxCommit())
				c.Equal("ready", fmt.Sprint(c.Ready(early), c.Ready(late)), "1 0")
			}},
			{"tx/exchange deleted before the commit", func(c *C) {
				x, q := c.Exchange("x", "direct", nil), c.Queue("q", classic, nil)
				c.Bind(q, "k", x, nil)
				ch := c.transaction()
				c.OK(ch.Publish(x, "k", false, false, text("a")))
				c.OK(ch.Qos(0, 0, false))
				c.OK(c.ch.ExchangeDelete(x, false, false))
				c.OK(ch.TxCommit())
				c.Equal("body", c.Bodies(q, 1), []string{"a"})
			}},
			{"tx/queue deleted before the commit", func(c *C) {
				q, other := c.Queue("q", classic, nil), c.Queue("other", classic, nil)
				exception := c.Closed(func(ch *amqp.Channel) error {
					c.OK(ch.Tx())
					c.OK(ch.Publish("", other, true, false, text("a")))
					c.OK(ch.Publish("", q, true, false, text("b")))
					c.OK(ch.Qos(0, 0, false))
					_, err := c.ch.QueueDelete(q, false, false, false)
					c.OK(err)
					return ch.TxCommit()
				})
				first, _, _ := strings.Cut(exception, "\n")
				c.Equal("exception", first, changedIn(v40, "", changedIn(v43, "406 PRECONDITION_FAILED - partial tx completion",
					"506 RESOURCE_ERROR - failed to deliver message: {not_found,")))
				left := 1
				if c.Deviates("a commit that fails because a queue is gone leaves nothing behind, where RabbitMQ leaves what it has published until then") {
					left = 0
				}
				c.Equal("in the other", c.Ready(other), left)
			}},
			{"tx/queue deleted and declared again before the commit", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					c.OK(ch.Tx())
					c.OK(ch.Publish("", q, false, false, text("a")))
					c.OK(ch.Qos(0, 0, false))
					_, err := c.ch.QueueDelete(q, false, false, false)
					c.OK(err)
					c.Queue("q", classic, nil)
					return ch.TxCommit()
				}), changedIn(v40, "", "406 PRECONDITION_FAILED - partial tx completion"))
				c.Equal("ready", c.Ready(q), changedIn(v40, 1, 0))
			}},
			{"tx/returned before the commit is answered", func(c *C) {
				q := c.Queue("q", classic, nil)
				ch := c.transaction()
				returns := ch.NotifyReturn(make(chan amqp.Return, 2))
				c.OK(ch.Publish("", c.Unique("nowhere"), true, false, text("a")))
				c.OK(ch.Publish("", q, true, false, text("b")))
				c.OK(ch.Qos(0, 0, false))
				c.Equal("before", len(returns), 0)
				c.OK(ch.TxCommit())
				r := <-returns
				c.Equal("returned", r.ReplyText+" "+string(r.Body), "NO_ROUTE a")
				c.Equal("the other", c.Bodies(q, 1), []string{"b"})
			}},
			{"tx/a full queue refuses a part", func(c *C) {
				full := c.Queue("full", classic, amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
				q := c.Queue("q", classic, nil)
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					c.OK(ch.Tx())
					for _, body := range []string{"1", "2", "3"} {
						c.OK(ch.Publish("", full, false, false, text(body)))
					}
					c.OK(ch.Publish("", q, false, false, text("a")))
					return ch.TxCommit()
				}), "406 PRECONDITION_FAILED - partial tx completion")
				c.Equal("the full one", c.Bodies(full, 1), []string{"1"})
				c.Empty(full)
				c.Equal("the other", c.Bodies(q, 1), []string{"a"})
			}},
			{"tx/rollback keeps what was delivered", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a")
				ch := c.transaction()
				d, _, err := ch.Get(q, false)
				c.OK(err)
				c.OK(d.Ack(false))
				c.OK(ch.TxRollback())
				c.Equal("ready", c.Ready(q), 0)
				c.OK(d.Ack(false)) // the tag is known again
				c.OK(ch.TxCommit())
				c.OK(ch.Close())
				c.Empty(q)
			}},
			{"tx/prefetch counts what is acked but not committed", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a", "b")
				ch := c.transaction()
				k := c.Consume(q, consume{Channel: ch, Prefetch: 1})
				c.OK(k.Next().Ack(false))
				k.None(50 * time.Millisecond)
				c.OK(ch.TxCommit())
				c.Equal("after the commit", string(k.Next().Body), "b")
			}},
			{"tx/empty", func(c *C) {
				ch := c.transaction()
				c.OK(ch.TxCommit())
				c.OK(ch.TxRollback())
				c.OK(ch.Tx())
			}},
		},
	)
}

// transaction is a channel in tx mode.
func (c *C) transaction() *amqp.Channel {
	c.Helper()
	ch := c.Channel()
	c.OK(ch.Tx())
	return ch
}
