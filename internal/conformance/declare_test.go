package conformance

import (
	"fmt"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/wire"
)

// declare are the flags of a queue declaration.
type declare struct {
	Transient, AutoDelete, Exclusive bool
}

// DeclareRefused declares a queue and returns the exception.
func (c *C) DeclareRefused(name string, d declare, args amqp.Table) string {
	c.Helper()
	if !d.Exclusive { // which goes with its connection
		c.deleteLater(func(ch *amqp.Channel) error { return deleteQueue(ch, name) })
	}
	return c.Refused(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, !d.Transient, d.AutoDelete, d.Exclusive, false, args)
		return err
	})
}

const locked = "405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. " +
	"It could be originally declared on another connection or the exclusive property value does not match that of the original declaration."

func declareCases() []Case {
	return slices.Concat(
		redeclareCases(),
		passiveCases(),
		exclusiveCases(),
		lifetimeCases(),
		[]Case{
			{"declare/answer counts messages and consumers", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Publish("", q, text("a"))
				c.Publish("", q, text("b"))
				c.Consume(q, consume{Prefetch: 1}).Next()
				info, err := c.ch.QueueDeclare(q, true, false, false, false, nil)
				c.OK(err)
				c.Equal("answer", fmt.Sprint(info.Name == q, info.Messages, info.Consumers), "true 1 1")
			}},
			{"declare/reserved prefix", func(c *C) {
				name := "amq." + c.Unique("q")
				got := c.Refused(func(ch *amqp.Channel) error {
					_, err := ch.QueueDeclare(name, true, false, false, false, nil)
					return err
				})
				c.Equal("exception", got, "403 ACCESS_REFUSED - queue name 'amq.q' contains reserved prefix 'amq.*'")
			}},
			{"declare/transient shared queue", func(c *C) {
				name := c.Unique("q")
				got := c.Closed(func(ch *amqp.Channel) error {
					_, err := ch.QueueDeclare(name, false, false, false, false, nil)
					return err
				})
				c.deleteLater(func(ch *amqp.Channel) error { return deleteQueue(ch, name) })
				c.Equal("exception", got, "")
			}},
			{"declare/server-named", func(c *C) {
				q, err := c.ch.QueueDeclare("", false, false, true, false, nil)
				c.OK(err)
				c.Equal("form", fmt.Sprint(strings.HasPrefix(q.Name, "amq.gen-"), len(q.Name)), "true 30")
				other, err := c.ch.QueueDeclare("", false, false, true, false, nil)
				c.OK(err)
				c.Equal("two names are the same", q.Name == other.Name, false)
			}},
			{"declare/empty name means the channel's last queue", func(c *C) {
				c.Queue("first", classic, nil)
				q := c.Queue("q", classic, nil)
				x := c.Exchange("x", "fanout", nil)
				c.Bind("", "", x, nil)
				c.Publish(x, "", text("a"))
				d, ok, err := c.ch.Get("", true)
				c.OK(err)
				c.Equal("message from", fmt.Sprint(ok)+" "+string(d.Body), "true a")
				n, err := c.ch.QueueDelete("", false, false, false)
				c.OK(err)
				c.Equal("deleted with messages", n, 0)
				c.Equal("queue after delete", c.Refused(func(ch *amqp.Channel) error {
					_, err := ch.QueueDeclarePassive(q, true, false, false, false, nil)
					return err
				}), "404 NOT_FOUND - no queue 'q' in vhost '/'")
			}},
			{"declare/empty name without a last queue", func(c *C) {
				x := c.Exchange("x", "fanout", nil)
				c.Equal("bind", c.Refused(func(ch *amqp.Channel) error {
					return ch.QueueBind("", "", x, false, nil)
				}), "404 NOT_FOUND - no previously declared queue")
				c.Equal("get", c.Refused(func(ch *amqp.Channel) error {
					_, _, err := ch.Get("", true)
					return err
				}), "404 NOT_FOUND - no previously declared queue")
			}},
			{"declare/unknown argument is kept but not compared", func(c *C) {
				q := c.Queue("q", classic, amqp.Table{"x-nobody-knows": "1"})
				c.Equal("again with another value", c.DeclareRefused(q, declare{}, amqp.Table{"x-nobody-knows": "2"}), "")
				c.Equal("again without", c.DeclareRefused(q, declare{}, nil), "")
			}},
		},
	)
}

func redeclareCases() []Case {
	inequivalent := func(arg, received, current string) string {
		return fmt.Sprintf("406 PRECONDITION_FAILED - inequivalent arg '%s' for queue 'q' in vhost '/': received %s but current is %s",
			arg, received, current)
	}
	long := func(n int) string { return fmt.Sprintf("the value '%d' of type 'long'", n) }
	cases := []Case{}
	for _, r := range []struct {
		name        string
		first, then amqp.Table
		want        any
	}{
		{"the same arguments", amqp.Table{"x-message-ttl": int64(1000)}, amqp.Table{"x-message-ttl": int64(1000)}, ""},
		{"an integer of another width", amqp.Table{"x-message-ttl": int32(1000)}, amqp.Table{"x-message-ttl": int64(1000)}, ""},
		{"another ttl", amqp.Table{"x-message-ttl": int64(1000)}, amqp.Table{"x-message-ttl": int64(2000)},
			inequivalent("x-message-ttl", "'2000'", "'1000'")},
		{"another ttl of another width", amqp.Table{"x-message-ttl": int32(1000)}, amqp.Table{"x-message-ttl": int64(2000)},
			inequivalent("x-message-ttl", "'2000'", "'1000'")},
		{"no ttl", amqp.Table{"x-message-ttl": int64(1000)}, nil,
			inequivalent("x-message-ttl", "none", long(1000))},
		{"a ttl where there was none", nil, amqp.Table{"x-message-ttl": int64(1000)},
			inequivalent("x-message-ttl", long(1000), "none")},
		{"a void ttl", amqp.Table{"x-message-ttl": int64(1000)}, amqp.Table{"x-message-ttl": nil},
			inequivalent("x-message-ttl", "none", "'1000'")},
		{"another expires", amqp.Table{"x-expires": int64(60000)}, amqp.Table{"x-expires": int64(70000)},
			inequivalent("x-expires", "'70000'", "'60000'")},
		{"another max-length", amqp.Table{"x-max-length": int64(1)}, amqp.Table{"x-max-length": int64(2)},
			inequivalent("x-max-length", "'2'", "'1'")},
		{"another max-length-bytes", amqp.Table{"x-max-length-bytes": int64(1)}, amqp.Table{"x-max-length-bytes": int64(2)},
			inequivalent("x-max-length-bytes", "'2'", "'1'")},
		{"another max-priority", amqp.Table{"x-max-priority": int64(1)}, amqp.Table{"x-max-priority": int64(2)},
			inequivalent("x-max-priority", "'2'", "'1'")},
		{"another dead-letter exchange", amqp.Table{"x-dead-letter-exchange": "a"}, amqp.Table{"x-dead-letter-exchange": "b"},
			inequivalent("x-dead-letter-exchange", "'b'", "'a'")},
		{"no dead-letter exchange", amqp.Table{"x-dead-letter-exchange": "a"}, nil,
			inequivalent("x-dead-letter-exchange", "none", "the value 'a' of type 'longstr'")},
		{"another dead-letter key", amqp.Table{"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": "a"},
			amqp.Table{"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": "b"},
			inequivalent("x-dead-letter-routing-key", "'b'", "'a'")},
		{"another overflow", amqp.Table{"x-overflow": "drop-head"}, amqp.Table{"x-overflow": "reject-publish"},
			inequivalent("x-overflow", "'reject-publish'", "'drop-head'")},
		{"another single active consumer", amqp.Table{"x-single-active-consumer": true}, amqp.Table{"x-single-active-consumer": false},
			inequivalent("x-single-active-consumer", "'false'", "'true'")},
		{"no single active consumer", amqp.Table{"x-single-active-consumer": true}, nil,
			inequivalent("x-single-active-consumer", "none", "the value 'true' of type 'bool'")},
		{"another type", nil, amqp.Table{"x-queue-type": "quorum"},
			changedIn(v40, inequivalent("x-queue-type", "the value 'quorum' of type 'longstr'", "none"), inequivalent("x-queue-type", "'quorum'", "'classic'"))},
		{"the default type by name", nil, amqp.Table{"x-queue-type": "classic"}, ""},
		{"several differences", amqp.Table{"x-message-ttl": int64(1), "x-expires": int64(60000)},
			amqp.Table{"x-message-ttl": int64(2), "x-expires": int64(70000)},
			inequivalent("x-expires", "'70000'", "'60000'")},
	} {
		cases = append(cases, Case{"redeclare/" + r.name, func(c *C) {
			q := c.Queue("q", classic, r.first)
			c.Equal("exception", c.DeclareRefused(q, declare{}, r.then), r.want)
		}})
	}
	for _, r := range []struct {
		name string
		d    declare
		args amqp.Table
		want string
	}{
		{"transient", declare{Transient: true}, nil, inequivalent("durable", "'false'", "'true'")},
		{"auto-delete", declare{AutoDelete: true}, nil, inequivalent("auto_delete", "'true'", "'false'")},
		{"exclusive", declare{Exclusive: true}, nil, locked},
		{"flags before arguments", declare{AutoDelete: true}, amqp.Table{"x-message-ttl": int64(1000)},
			inequivalent("auto_delete", "'true'", "'false'")},
	} {
		cases = append(cases, Case{"redeclare/" + r.name, func(c *C) {
			q := c.Queue("q", classic, nil)
			c.Equal("exception", c.DeclareRefused(q, r.d, r.args), r.want)
		}})
	}
	return append(cases, Case{"redeclare/quorum with another delivery limit", func(c *C) {
		q := c.Queue("q", quorum, amqp.Table{"x-delivery-limit": int64(5)})
		c.Equal("exception", c.DeclareRefused(q, declare{}, amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(6)}),
			inequivalent("x-delivery-limit", "'6'", "'5'"))
	}}, Case{"redeclare/quorum as classic", func(c *C) {
		q := c.Queue("q", quorum, nil)
		c.Equal("exception", c.DeclareRefused(q, declare{}, nil), changedIn(v40,
			inequivalent("x-queue-type", "none", "the value 'quorum' of type 'longstr'"),
			inequivalent("x-queue-type", "'classic'", "'quorum'")))
	}})
}

func passiveCases() []Case {
	passive := func(name string) func(ch *amqp.Channel) error {
		return func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			return err
		}
	}
	return []Case{
		{"passive/missing queue", func(c *C) {
			c.Equal("exception", c.Refused(passive(c.Unique("q"))), "404 NOT_FOUND - no queue 'q' in vhost '/'")
		}},
		{"passive/looks at neither flags nor arguments", func(c *C) {
			q := c.Queue("q", classic, amqp.Table{"x-message-ttl": int64(1000)})
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclarePassive(q, false, true, false, false, amqp.Table{"x-expires": "never"})
				return err
			}), "")
		}},
		{"passive/missing exchange", func(c *C) {
			x := c.Unique("x")
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
				return ch.ExchangeDeclarePassive(x, "direct", true, false, false, false, nil)
			}), "404 NOT_FOUND - no exchange 'x' in vhost '/'")
		}},
		{"passive/exchange looks at neither type nor flags", func(c *C) {
			x := c.Exchange("x", "direct", nil)
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
				return ch.ExchangeDeclarePassive(x, "fanout", false, true, true, false, nil)
			}), "")
		}},
	}
}

func exclusiveCases() []Case {
	cases := []Case{
		{"exclusive/goes with its connection", func(c *C) {
			conn := c.Dial()
			_, err := c.ChannelOn(conn).QueueDeclare(c.Unique("q"), false, false, true, false, nil)
			c.OK(err)
			c.OK(conn.Close())
			c.Eventually("the queue to vanish", func() bool {
				return c.Refused(func(ch *amqp.Channel) error {
					_, err := ch.QueueDeclarePassive(c.Unique("q"), false, false, true, false, nil)
					return err
				}) == "404 NOT_FOUND - no queue 'q' in vhost '/'"
			})
		}},
		{"exclusive/survives its channel", func(c *C) {
			ch := c.Channel()
			q, err := ch.QueueDeclare(c.Unique("q"), false, false, true, false, nil)
			c.OK(err)
			c.OK(ch.Close())
			c.Equal("ready", c.Ready(q.Name), 0)
		}},
		{"exclusive/again on the same connection", func(c *C) {
			name := c.Unique("q")
			_, err := c.ch.QueueDeclare(name, false, false, true, false, nil)
			c.OK(err)
			c.Equal("exclusive again", c.DeclareRefused(name, declare{Transient: true, Exclusive: true}, nil), "")
			c.Equal("not exclusive", c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclare(name, false, false, false, false, nil)
				return err
			}), locked)
		}},
		{"exclusive/is never durable", func(c *C) {
			for _, first := range []bool{true, false} {
				name := c.Unique("q")
				_, err := c.ch.QueueDeclare(name, first, false, true, false, nil)
				c.OK(err)
				c.Equal("again, otherwise durable", c.DeclareRefused(name, declare{Transient: first, Exclusive: true}, nil), "")
				_, err = c.ch.QueueDelete(name, false, false, false)
				c.OK(err)
			}
		}},
		{"exclusive/quorum", func(c *C) {
			c.Equal("exception", c.DeclareRefused(c.Unique("q"), declare{Exclusive: true}, amqp.Table{"x-queue-type": "quorum"}),
				"406 PRECONDITION_FAILED - invalid property 'exclusive-owner' for queue 'q' in vhost '/'")
		}},
	}
	for _, op := range []struct {
		name string
		do   func(ch *amqp.Channel, q string) error
	}{
		{"declare", func(ch *amqp.Channel, q string) error {
			_, err := ch.QueueDeclare(q, false, false, true, false, nil)
			return err
		}},
		{"declare not exclusive", func(ch *amqp.Channel, q string) error {
			_, err := ch.QueueDeclare(q, false, false, false, false, nil)
			return err
		}},
		{"passive declare", func(ch *amqp.Channel, q string) error {
			_, err := ch.QueueDeclarePassive(q, false, false, true, false, nil)
			return err
		}},
		{"bind", func(ch *amqp.Channel, q string) error { return ch.QueueBind(q, "", "amq.fanout", false, nil) }},
		{"consume", func(ch *amqp.Channel, q string) error {
			_, err := ch.Consume(q, "", true, false, false, false, nil)
			return err
		}},
		{"get", func(ch *amqp.Channel, q string) error {
			_, _, err := ch.Get(q, true)
			return err
		}},
		{"purge", func(ch *amqp.Channel, q string) error {
			_, err := ch.QueuePurge(q, false)
			return err
		}},
		{"delete", func(ch *amqp.Channel, q string) error {
			_, err := ch.QueueDelete(q, false, false, false)
			return err
		}},
	} {
		cases = append(cases, Case{"exclusive/" + op.name + " from another connection", func(c *C) {
			name := c.Unique("q")
			_, err := c.ch.QueueDeclare(name, false, false, true, false, nil)
			c.OK(err)
			c.Equal("exception", c.Closed(func(ch *amqp.Channel) error { return op.do(ch, name) }), locked)
		}})
	}
	return append(cases, Case{"exclusive/unbind from another connection", func(c *C) {
		name := c.Unique("q")
		_, err := c.ch.QueueDeclare(name, false, false, true, false, nil)
		c.OK(err)
		c.Equal("exception", c.Closed(func(ch *amqp.Channel) error { return ch.QueueUnbind(name, "", "amq.fanout", nil) }), "")
		c.OK(c.ch.QueueBind(name, "", "amq.fanout", false, nil))
		c.Equal("exception when bound", c.Closed(func(ch *amqp.Channel) error { return ch.QueueUnbind(name, "", "amq.fanout", nil) }), locked)
	}}, Case{"exclusive/publish from another connection", func(c *C) {
		name := c.Unique("q")
		_, err := c.ch.QueueDeclare(name, false, false, true, false, nil)
		c.OK(err)
		c.Equal("exception", c.Closed(func(ch *amqp.Channel) error { return ch.Publish("", name, false, false, text("a")) }), "")
		c.ReadyBecomes(name, 1)
	}})
}

func lifetimeCases() []Case {
	gone := func(c *C, q string) func() bool {
		return func() bool {
			return c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclarePassive(q, true, true, false, false, nil)
				return err
			}) != ""
		}
	}
	autoDelete := func(c *C) string {
		name := c.Unique("q")
		c.Equal("declare", c.DeclareRefused(name, declare{AutoDelete: true}, nil), "")
		return name
	}
	return []Case{
		{"auto-delete/stays while it never had a consumer", func(c *C) {
			q := autoDelete(c)
			c.Publish("", q, text("a"))
			c.Equal("get", string(c.Get(q).Body), "a")
			c.Equal("ready", c.Ready(q), 0)
		}},
		{"auto-delete/goes with its last consumer", func(c *C) {
			q := autoDelete(c)
			a, b := c.Consume(q, consume{}), c.Consume(q, consume{})
			c.OK(a.ch.Cancel(a.tag, false))
			c.Equal("consumers left", c.inspect(q).Consumers, 1)
			c.OK(b.ch.Cancel(b.tag, false))
			c.Eventually("the queue to vanish", gone(c, q))
		}},
		{"auto-delete/goes with the channel of its consumer", func(c *C) {
			q := autoDelete(c)
			c.Consume(q, consume{}).Stop()
			c.Eventually("the queue to vanish", gone(c, q))
		}},
		{"delete/missing queue", func(c *C) {
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error { return deleteQueue(ch, c.Unique("q")) }), "")
		}},
		{"delete/answer counts messages", func(c *C) {
			q := c.Queue("q", classic, nil)
			c.Publish("", q, text("a"))
			c.Publish("", q, text("b"))
			n, err := c.ch.QueueDelete(q, false, false, false)
			c.OK(err)
			c.Equal("messages", n, 2)
		}},
		{"delete/if-unused", func(c *C) {
			q := c.Queue("q", classic, nil)
			k := c.Consume(q, consume{})
			del := func(ch *amqp.Channel) error {
				_, err := ch.QueueDelete(q, true, false, false)
				return err
			}
			c.Equal("with a consumer", c.Refused(del), "406 PRECONDITION_FAILED - queue 'q' in vhost '/' in use")
			k.Stop()
			c.Equal("without", c.Refused(del), "")
		}},
		{"delete/if-empty", func(c *C) {
			q := c.Queue("q", classic, nil)
			c.Publish("", q, text("a"))
			del := func(ch *amqp.Channel) error {
				_, err := ch.QueueDelete(q, false, true, false)
				return err
			}
			c.Equal("with a message", c.Refused(del), "406 PRECONDITION_FAILED - queue 'q' in vhost '/' not empty")
			c.One(q)
			c.Equal("without", c.Refused(del), "")
		}},
		{"delete/if-empty counts only ready messages", func(c *C) {
			q := c.Queue("q", classic, nil)
			c.Publish("", q, text("a"))
			c.Get(q)
			c.Equal("with an unacked message", c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDelete(q, false, true, false)
				return err
			}), "")
		}},
		{"delete/if-unused on quorum", func(c *C) {
			q := c.Queue("q", quorum, nil)
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDelete(q, true, false, false)
				return err
			}), "540 NOT_IMPLEMENTED - cannot delete queue 'q' in vhost '/'. queue.delete operations with if-unused flag set are not supported by quorum queues")
		}},
		{"delete/cancels its consumers", func(c *C) {
			q := c.Queue("q", classic, nil)
			k := c.Consume(q, consume{})
			c.OK(deleteQueue(c.ch, q))
			c.Equal("cancelled", <-k.cancelled == k.tag, true)
		}},
		{"delete/is answered before consumers of the channel are cancelled", func(c *C) {
			q := c.Queue("q", classic, nil)
			r := c.Opened()
			r.Send(1, &wire.BasicConsume{Queue: q, ConsumerTag: "a"}, &wire.BasicConsume{Queue: q, ConsumerTag: "b"})
			r.Expect("basic.consume-ok")
			r.Expect("basic.consume-ok")
			r.Send(1, &wire.QueueDelete{Queue: q})
			r.Expect("queue.delete-ok")
			r.Expect("basic.cancel")
			r.Expect("basic.cancel")
		}},
		{"purge/counts ready messages only", func(c *C) {
			q := c.Queue("q", classic, nil)
			for _, s := range []string{"a", "b", "c"} {
				c.Publish("", q, text(s))
			}
			d := c.Get(q)
			n, err := c.ch.QueuePurge(q, false)
			c.OK(err)
			c.Equal("purged", n, 2)
			c.OK(d.Nack(false, true))
			c.Equal("left", c.Bodies(q, 1), []string{"a"})
		}},
		{"purge/missing queue", func(c *C) {
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueuePurge(c.Unique("q"), false)
				return err
			}), "404 NOT_FOUND - no queue 'q' in vhost '/'")
		}},
	}
}
