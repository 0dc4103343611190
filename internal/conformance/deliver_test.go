package conformance

import (
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const unknownTag = "406 PRECONDITION_FAILED - unknown delivery tag "

// Fill publishes one message per body.
func (c *C) Fill(queue string, bodies ...string) {
	c.Helper()
	for _, b := range bodies {
		c.Publish("", queue, text(b))
	}
}

func deliverCases() []Case {
	return slices.Concat(getCases(), ackCases(), consumeCases(), prefetchCases())
}

func getCases() []Case {
	return slices.Concat(
		both("get/counts what is left", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a", "b", "c")
			for left := 2; left >= 0; left-- {
				d := c.Get(q)
				c.Equal("message", fmt.Sprintf("%d %d %v", d.DeliveryTag, d.MessageCount, d.Redelivered), fmt.Sprintf("%d %d false", 3-left, left))
			}
			c.Empty(q)
		}),
		both("get/requeued message is redelivered", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a")
			c.OK(c.Get(q).Nack(false, true))
			d := c.Get(q)
			c.Equal("message", fmt.Sprint(d.DeliveryTag, d.Redelivered), "2 true")
		}),
		both("get/auto-ack", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a")
			ch := c.Channel()
			d, ok, err := ch.Get(q, true)
			c.OK(err)
			c.Equal("message", fmt.Sprint(ok)+string(d.Body), "truea")
			c.OK(ch.Close())
			c.Empty(q)
		}),
		[]Case{
			{"get/missing queue", func(c *C) {
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					_, _, err := ch.Get(c.Unique("q"), true)
					return err
				}), "404 NOT_FOUND - no queue 'q' in vhost '/'")
			}},
			{"get/prefetch does not matter", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a", "b")
				c.OK(c.ch.Qos(1, 0, false))
				c.Equal("bodies", string(c.Get(q).Body)+string(c.Get(q).Body), "ab")
			}},
		},
	)
}

func ackCases() []Case {
	cases := []Case{}
	for _, op := range []struct {
		name string
		do   func(ch *amqp.Channel, tag uint64, multiple bool) error
	}{
		{"ack", func(ch *amqp.Channel, tag uint64, multiple bool) error { return ch.Ack(tag, multiple) }},
		{"nack", func(ch *amqp.Channel, tag uint64, multiple bool) error { return ch.Nack(tag, multiple, true) }},
		{"reject", func(ch *amqp.Channel, tag uint64, _ bool) error { return ch.Reject(tag, true) }},
	} {
		cases = append(cases, Case{"ack/unknown tag/" + op.name, func(c *C) {
			c.Equal("tag never given", c.Refused(func(ch *amqp.Channel) error { return op.do(ch, 1, false) }), unknownTag+"1")
			c.Equal("tag 0", c.Refused(func(ch *amqp.Channel) error { return op.do(ch, 0, false) }), unknownTag+"0")
			q := c.Queue("q", classic, nil)
			c.Fill(q, "a")
			c.Equal("twice", c.Refused(func(ch *amqp.Channel) error {
				d, _, err := ch.Get(q, false)
				c.OK(err)
				c.OK(op.do(ch, d.DeliveryTag, false))
				return op.do(ch, d.DeliveryTag, false)
			}), unknownTag+"1")
		}})
		if op.name == "reject" {
			continue
		}
		cases = append(cases, Case{"ack/unknown tag/multiple " + op.name, func(c *C) {
			c.Equal("everything when there is nothing", c.Refused(func(ch *amqp.Channel) error { return op.do(ch, 0, true) }), "")
			c.Equal("tag never given", c.Refused(func(ch *amqp.Channel) error { return op.do(ch, 1, true) }), unknownTag+"1")
			q := c.Queue("q", classic, nil)
			c.Fill(q, "a", "b")
			c.Equal("beyond the last", c.Refused(func(ch *amqp.Channel) error {
				_, _, err := ch.Get(q, false)
				c.OK(err)
				return op.do(ch, 2, true)
			}), unknownTag+"2")
			c.ReadyBecomes(q, 2)
		}})
	}
	return slices.Concat(cases,
		both("ack/multiple", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a", "b", "c", "d")
			k := c.Consume(q, consume{})
			k.Next()
			k.Next()
			third := k.Next()
			k.Next()
			c.OK(third.Ack(true))
			k.Stop()
			c.Equal("left", c.Bodies(q, 1), []string{"d"})
		}),
		both("ack/everything", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a", "b")
			k := c.Consume(q, consume{})
			k.Bodies(2)
			c.OK(k.ch.Ack(0, true))
			k.Stop()
			c.Equal("ready", c.Ready(q), 0)
		}),
		both("ack/closing the channel returns what is not acked", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a", "b", "c")
			k := c.Consume(q, consume{})
			c.OK(k.Next().Ack(false))
			k.Bodies(2)
			k.Stop()
			k = c.Consume(q, consume{})
			for _, body := range []string{"b", "c"} {
				d := k.Next()
				c.Equal("delivery", string(d.Body)+fmt.Sprint(d.Redelivered), body+"true")
			}
		}),
		both("ack/closing the connection returns what is not acked", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a")
			conn := c.Dial()
			c.Consume(q, consume{Channel: c.ChannelOn(conn)}).Next()
			c.OK(conn.Close())
			d := c.One(q)
			c.Equal("delivery", string(d.Body)+fmt.Sprint(d.Redelivered), "atrue")
		}),
		both("ack/closing the connection delivers nothing more to its channels", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a")
			conn := c.Dial()
			c.Consume(q, consume{Channel: c.ChannelOn(conn)}).Next()
			other, err := c.ChannelOn(conn).Consume(q, "", false, false, false, false, nil)
			c.OK(err)
			c.OK(conn.Close())
			for d := range other {
				c.Errorf("%q was delivered", d.Body)
			}
			c.Equal("delivery", string(c.One(q).Body), "a")
		}),
		both("ack/back to the same consumer of a full queue", func(c *C, kind string) {
			q := c.Queue("q", kind, amqp.Table{"x-max-length": int32(1)})
			c.Fill(q, "a")
			k := c.Consume(q, consume{Prefetch: 1})
			d := k.Next()
			c.Fill(q, "b")
			c.OK(d.Reject(true))
			next := any("b") // the oldest is dropped first
			if kind == quorum {
				next = changedIn(v40, "b", "a")
			}
			c.Equal("next", string(k.Next().Body), next)
		}),
		both("ack/cancel keeps what is not acked", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a")
			k := c.Consume(q, consume{})
			d := k.Next()
			c.OK(k.ch.Cancel(k.tag, false))
			c.Equal("ready after cancel", c.Ready(q), 0)
			c.OK(d.Ack(false))
			k.Stop()
			c.Equal("ready after ack", c.Ready(q), 0)
		}),
		both("ack/auto-ack leaves nothing to return", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a")
			k := c.Consume(q, consume{AutoAck: true})
			k.Next()
			k.Stop()
			c.Equal("ready", c.Ready(q), 0)
		}),
		both("ack/recover", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "a", "b")
			k := c.Consume(q, consume{})
			k.Bodies(2)
			c.OK(k.ch.Recover(true))
			var got []string
			for range 2 {
				d := k.Next()
				got = append(got, fmt.Sprint(string(d.Body), " ", d.DeliveryTag, " ", d.Redelivered))
			}
			c.Equal("again", got, []string{"a 3 true", "b 4 true"})
		}),
		[]Case{
			{"ack/recover without requeue", func(c *C) {
				c.Equal("exception", c.Closed(func(ch *amqp.Channel) error { return ch.Recover(false) }), "540 NOT_IMPLEMENTED - requeue=false")
			}},
			{"ack/tag of another channel", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a")
				d := c.Get(q)
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error { return ch.Ack(d.DeliveryTag, false) }), unknownTag+"1")
				c.OK(d.Ack(false))
			}},
			{"ack/tag of an auto-ack delivery", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a")
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					d, _, err := ch.Get(q, true)
					c.OK(err)
					return ch.Ack(d.DeliveryTag, false)
				}), unknownTag+"1")
			}},
			{"ack/queue is gone", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a")
				d := c.Get(q)
				c.OK(deleteQueue(c.ch, q))
				c.OK(d.Ack(false))
				c.OK(c.ch.Qos(0, 0, false))
			}},
			{"ack/in a transaction", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a")
				ch := c.Channel()
				c.OK(ch.Tx())
				d, _, err := ch.Get(q, false)
				c.OK(err)
				c.OK(d.Ack(false))
				c.OK(ch.TxRollback())
				c.OK(ch.Close())
				c.Equal("after rollback and close", string(c.One(q).Body), "a")
			}},
		},
	)
}

func consumeCases() []Case {
	subscribe := func(queue, tag string, exclusive bool, args amqp.Table) func(ch *amqp.Channel) error {
		return func(ch *amqp.Channel) error {
			_, err := ch.Consume(queue, tag, false, exclusive, false, false, args)
			return err
		}
	}
	return slices.Concat(
		both("consume/delivery tells where it came from", func(c *C, kind string) {
			q, x := c.Queue("q", kind, nil), c.Exchange("x", "topic", nil)
			c.Bind(q, "#", x, nil)
			k := c.Consume(q, consume{})
			c.Publish(x, "some.key", text("a"))
			d := k.Next()
			c.Equal("delivery", fmt.Sprintf("%v %d %s/%s %v", d.ConsumerTag == k.tag, d.DeliveryTag, d.Exchange, d.RoutingKey, d.Redelivered),
				"true 1 x/some.key false")
		}),
		both("consume/one after the other", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			a, b := c.Consume(q, consume{Prefetch: 10}), c.Consume(q, consume{Prefetch: 10})
			c.Fill(q, "1", "2", "3", "4")
			got := []string{}
			for _, k := range []*Consumer{a, b} {
				got = append(got, fmt.Sprint(k.Bodies(2)))
			}
			slices.Sort(got)
			c.Equal("taken", got, []string{"[1 3]", "[2 4]"})
		}),
		both("consume/higher priority first", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			low := c.Consume(q, consume{Prefetch: 10})
			high := c.Consume(q, consume{Prefetch: 2, Args: amqp.Table{"x-priority": int32(5)}})
			c.Fill(q, "1", "2", "3")
			c.Equal("high", high.Bodies(2), []string{"1", "2"})
			c.Equal("low", low.Bodies(1), []string{"3"})
		}),
		[]Case{{"consume/exclusive", func(c *C) {
			q := c.Queue("q", classic, nil)
			const inUse = "403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
			k := c.Consume(q, consume{Exclusive: true})
			c.Equal("second", c.Refused(subscribe(q, "", false, nil)), inUse)
			c.Equal("second exclusive", c.Refused(subscribe(q, "", true, nil)), inUse)
			k.Stop()
			other := c.Consume(q, consume{})
			c.Equal("exclusive beside a shared one", c.Refused(subscribe(q, "", true, nil)), inUse)
			other.Stop()
		}}, {"consume/exclusive means nothing on quorum", func(c *C) {
			q := c.Queue("q", quorum, nil)
			c.Consume(q, consume{Exclusive: true})
			c.Equal("second", c.Refused(subscribe(q, "", true, nil)), "")
		}}},
		both("consume/single active consumer", func(c *C, kind string) {
			q := c.Queue("q", kind, amqp.Table{"x-single-active-consumer": true})
			first, second := c.Consume(q, consume{}), c.Consume(q, consume{})
			c.Fill(q, "1", "2")
			c.Equal("first", first.Bodies(2), []string{"1", "2"})
			c.OK(first.ch.Ack(0, true))
			first.Stop()
			c.Fill(q, "3")
			c.Equal("second", second.Bodies(1), []string{"3"})
		}),
		both("consume/single active consumer takes over what is not acked", func(c *C, kind string) {
			q := c.Queue("q", kind, amqp.Table{"x-single-active-consumer": true})
			first, second := c.Consume(q, consume{}), c.Consume(q, consume{})
			c.Fill(q, "1", "2")
			first.Bodies(2)
			first.Stop()
			c.Equal("second", second.Bodies(2), []string{"1", "2"})
		}),
		[]Case{
			{"consume/single active consumer of the highest priority/classic", func(c *C) {
				q := c.Queue("q", classic, amqp.Table{"x-single-active-consumer": true})
				first := c.Consume(q, consume{})
				higher := c.Consume(q, consume{Args: amqp.Table{"x-priority": int32(5)}})
				c.Fill(q, "1")
				c.Equal("the first stays active", first.Bodies(1), []string{"1"})
				c.OK(first.ch.Ack(0, true))
				c.Fill(q, "2")
				c.Equal("the first stays active", first.Bodies(1), []string{"2"})
				first.Stop()
				c.Equal("the other", higher.Bodies(1), []string{"2"})
			}},
			{"consume/single active consumer of the highest priority/quorum", func(c *C) {
				if c.version.before(v40) {
					c.Skip("its quorum queues do not look at the priority")
				}
				q := c.Queue("q", quorum, amqp.Table{"x-single-active-consumer": true})
				first := c.Consume(q, consume{})
				c.Fill(q, "1")
				c.Equal("alone", first.Bodies(1), []string{"1"})
				second := c.Consume(q, consume{Args: amqp.Table{"x-priority": int32(5)}})
				third := c.Consume(q, consume{Args: amqp.Table{"x-priority": int32(9)}})
				c.Fill(q, "2")
				c.OK(first.ch.Ack(0, true))
				c.Equal("takes over once the first has settled", third.Bodies(1), []string{"2"})
				third.Stop()
				c.Equal("next in priority", second.Bodies(1), []string{"2"})
				second.Stop()
				c.Equal("last", first.Bodies(1), []string{"2"})
			}},
		},
		both("consume/deleting the queue cancels", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			k := c.Consume(q, consume{})
			c.OK(deleteQueue(c.ch, q))
			c.Equal("cancelled", <-k.cancelled == k.tag, true)
		}),
		[]Case{
			{"consume/missing queue", func(c *C) {
				c.Equal("exception", c.Refused(subscribe(c.Unique("q"), "", false, nil)), "404 NOT_FOUND - no queue 'q' in vhost '/'")
			}},
			{"consume/tag in use", func(c *C) {
				q := c.Queue("q", classic, nil)
				tag := c.Unique("tag")
				c.Equal("exception", c.Closed(func(ch *amqp.Channel) error {
					c.OK(subscribe(q, tag, false, nil)(ch))
					return subscribe(q, tag, false, nil)(ch)
				}), "530 NOT_ALLOWED - attempt to reuse consumer tag 'tag'")
			}},
			{"consume/same tag on another channel", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Consume(q, consume{})
				c.Consume(q, consume{})
				c.Equal("consumers", c.inspect(q).Consumers, 2)
			}},
			{"consume/cancel of an unknown tag", func(c *C) {
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error { return ch.Cancel("nobody", false) }), "")
			}},
			{"consume/exclusive with single active consumer", func(c *C) {
				q := c.Queue("q", classic, amqp.Table{"x-single-active-consumer": true})
				c.Equal("exception", c.Refused(subscribe(q, "", true, nil)),
					"403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use")
			}},
			{"consume/priority as string", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Equal("exception", c.Refused(subscribe(q, "", false, amqp.Table{"x-priority": "high"})),
					`406 PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': "expected integer, got longstr"`)
			}},
			{"consume/no-local is ignored", func(c *C) {
				q := c.Queue("q", classic, nil)
				ch := c.Channel()
				msgs, err := ch.Consume(q, "", true, false, true, false, nil)
				c.OK(err)
				c.OK(ch.Publish("", q, false, false, text("a")))
				c.Equal("own message", string((<-msgs).Body), "a")
			}},
		},
	)
}

func prefetchCases() []Case {
	return slices.Concat(
		both("prefetch/limits unacked deliveries", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "1", "2", "3", "4")
			k := c.Consume(q, consume{Prefetch: 2})
			first := k.Next()
			k.Next()
			c.Equal("ready behind the prefetch", c.Ready(q), 2)
			c.OK(first.Ack(false))
			c.Equal("after one ack", k.Bodies(1), []string{"3"})
			c.Equal("ready", c.Ready(q), 1)
		}),
		both("prefetch/is per consumer", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			ch := c.Channel()
			a := c.Consume(q, consume{Prefetch: 1, Channel: ch})
			msgs, err := ch.Consume(q, c.Unique("b"), false, false, false, false, nil)
			c.OK(err)
			c.Fill(q, "1", "2", "3")
			a.Next()
			<-msgs
			c.Equal("ready", c.Ready(q), 1)
		}),
		both("prefetch/change is for later consumers only", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			k := c.Consume(q, consume{Prefetch: 1})
			c.OK(k.ch.Qos(10, 0, false))
			c.Fill(q, "1", "2")
			k.Next()
			c.Equal("ready", c.Ready(q), 1)
		}),
		both("prefetch/does not limit auto-ack", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "1", "2", "3")
			c.Equal("bodies", c.Consume(q, consume{Prefetch: 1, AutoAck: true}).Bodies(3), []string{"1", "2", "3"})
		}),
		both("prefetch/nack makes room", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Fill(q, "1", "2")
			k := c.Consume(q, consume{Prefetch: 1})
			c.OK(k.Next().Nack(false, false))
			c.Equal("next", k.Bodies(1), []string{"2"})
		}),
		[]Case{
			{"prefetch/size", func(c *C) {
				c.Equal("exception", c.Closed(func(ch *amqp.Channel) error { return ch.Qos(0, 1, false) }),
					"540 NOT_IMPLEMENTED - prefetch_size!=0 (1)")
			}},
			{"prefetch/global", func(c *C) {
				behind := 0
				if c.limitsChannels() {
					behind = 2
				}
				q := c.Queue("q", classic, nil)
				ch := c.Channel()
				c.OK(ch.Qos(2, 0, true))
				a := c.Consume(q, consume{Channel: ch})
				_, err := ch.Consume(q, c.Unique("b"), false, false, false, false, nil)
				c.OK(err)
				c.Fill(q, "1", "2", "3", "4")
				a.Next()
				c.ReadyBecomes(q, behind)
			}},
			{"prefetch/global holds up auto-ack too", func(c *C) {
				limits := c.limitsChannels()
				full, q := c.Queue("full", classic, nil), c.Queue("q", classic, nil)
				ch := c.Channel()
				c.OK(ch.Qos(1, 0, true))
				c.Fill(full, "1")
				first := c.Consume(full, consume{Channel: ch}).Next()
				k := c.Consume(q, consume{Channel: ch, AutoAck: true})
				c.Fill(q, "2", "3")
				if limits {
					k.None(300 * time.Millisecond)
					c.OK(first.Ack(false))
				}
				c.Equal("bodies", k.Bodies(2), []string{"2", "3"})
			}},
			{"prefetch/global lets queues take turns", func(c *C) {
				const rounds = 40
				ch := c.Channel()
				c.OK(ch.Qos(1, 0, true))
				queues := []string{c.Queue("a", classic, nil), c.Queue("b", classic, nil), c.Queue("c", classic, nil)}
				every := make(chan amqp.Delivery)
				ended := make(chan struct{})
				defer close(ended)
				for _, q := range queues {
					c.Fill(q, slices.Repeat([]string{"body"}, rounds)...)
					k := c.Consume(q, consume{Channel: ch})
					go func() {
						for d := range k.msgs {
							select {
							case every <- d:
							case <-ended:
								return
							}
						}
					}()
				}
				for range rounds - 1 {
					c.OK((<-every).Ack(false))
				}
				for _, q := range queues {
					c.Equal(c.plain(q)+" had a turn", c.Ready(q) < rounds, true)
				}
			}},
		},
	)
}

// limitsChannels tells whether a prefetch limit can be that of a channel.
func (c *C) limitsChannels() bool {
	c.Helper()
	return c.version.before(v43) || c.Deviates("4.3 takes the limit of a channel for one of each of its consumers, unless it is told to permit the deprecated feature global_qos; programs that ask for it still need it")
}
