package conformance

import (
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

// requeueing are the three ways of a client to give a message back.
var requeueing = []struct {
	name string
	do   func(k *Consumer, d amqp.Delivery) error
}{
	{"nack", func(_ *Consumer, d amqp.Delivery) error { return d.Nack(false, true) }},
	{"reject", func(_ *Consumer, d amqp.Delivery) error { return d.Reject(true) }},
	{"recover", func(k *Consumer, _ amqp.Delivery) error { return k.ch.Recover(true) }},
}

// counts are the headers by which a queue tells how often a message came back.
func counts(d amqp.Delivery) string {
	return fmt.Sprintf("%v delivery=%s acquired=%s", d.Redelivered, typed(d.Headers["x-delivery-count"]), typed(d.Headers["x-acquired-count"]))
}

func requeueCases() []Case {
	return slices.Concat(orderCases(), countCases(), deliveryLimitCases())
}

func orderCases() []Case {
	// abc publishes three messages, lets give return one of them, and tells the order afterwards.
	abc := func(name string, args amqp.Table, kind string, give func(c *C, k *Consumer, got []amqp.Delivery), want any) Case {
		return Case{"requeue order/" + name, func(c *C) {
			q := c.Queue("q", kind, args)
			c.Fill(q, "a", "b", "c", "d", "e")
			k := c.Consume(q, consume{Prefetch: 3})
			got := []amqp.Delivery{k.Next(), k.Next(), k.Next()}
			c.OK(k.ch.Cancel(k.tag, false))
			give(c, k, got)
			k.Stop()
			c.Equal("order", c.Bodies(q, 5), want)
		}}
	}
	nack := func(order ...int) func(c *C, k *Consumer, got []amqp.Delivery) {
		return func(c *C, _ *Consumer, got []amqp.Delivery) {
			for _, i := range order {
				c.OK(got[i].Nack(false, true))
			}
		}
	}
	reject := func(order ...int) func(c *C, k *Consumer, got []amqp.Delivery) {
		return func(c *C, _ *Consumer, got []amqp.Delivery) {
			for _, i := range order {
				c.OK(got[i].Reject(true))
			}
		}
	}
	all := func(c *C, _ *Consumer, got []amqp.Delivery) { c.OK(got[2].Nack(true, true)) }
	closing := func(c *C, k *Consumer, got []amqp.Delivery) {}
	inOrder := []string{"a", "b", "c", "d", "e"}
	// 3.10 takes -1 for a limit below zero and drops what comes back.
	unlimited := func(name string, give func(c *C, k *Consumer, got []amqp.Delivery), in40 any) Case {
		return Case{"requeue order/quorum without a limit/" + name, func(c *C) {
			if c.version.before(v40) {
				c.Skip("no way to say no limit")
			}
			abc("", amqp.Table{"x-delivery-limit": int64(-1)}, quorum, give, changedIn(v43, in40, inOrder)).Run(c)
		}}
	}
	return []Case{
		abc("classic/nack", nil, classic, nack(1, 0, 2), inOrder),
		abc("classic/nack last first", nil, classic, nack(2, 1, 0), inOrder),
		abc("classic/nack multiple", nil, classic, all, inOrder),
		abc("classic/close", nil, classic, closing, inOrder),
		abc("quorum/nack", nil, quorum, nack(0, 1, 2), changedIn(v40, []string{"d", "e", "a", "b", "c"}, inOrder)),
		abc("quorum/nack last first", nil, quorum, nack(2, 1, 0), changedIn(v40, []string{"d", "e", "c", "b", "a"}, []string{"c", "b", "a", "d", "e"})),
		abc("quorum/reject last first", nil, quorum, reject(2, 1, 0), changedIn(v40, []string{"d", "e", "c", "b", "a"}, []string{"c", "b", "a", "d", "e"})),
		abc("quorum/nack multiple", nil, quorum, all, changedIn(v40, []string{"d", "e", "a", "b", "c"}, inOrder)),
		abc("quorum/close", nil, quorum, closing, inOrder),
		abc("quorum with a limit/nack last first", amqp.Table{"x-delivery-limit": int64(5)}, quorum, nack(2, 1, 0), []string{"c", "b", "a", "d", "e"}),
		unlimited("nack", nack(0, 1, 2), []string{"d", "e", "a", "b", "c"}),
		unlimited("reject", reject(0, 1, 2), []string{"d", "e", "a", "b", "c"}),
		unlimited("close", closing, inOrder),
	}
}

func countCases() []Case {
	var cases []Case
	for _, op := range requeueing {
		cases = append(cases,
			Case{"delivery count/classic has none/" + op.name, func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a")
				k := c.Consume(q, consume{Prefetch: 1})
				d := k.Next()
				c.Equal("first", counts(d), "false delivery=void acquired=void")
				c.OK(op.do(k, d))
				c.Equal("second", counts(k.Next()), "true delivery=void acquired=void")
			}},
			Case{"delivery count/quorum/" + op.name, func(c *C) {
				q := c.Queue("q", quorum, nil)
				c.Fill(q, "a")
				k := c.Consume(q, consume{Prefetch: 1})
				for n := range 3 {
					d := k.Next()
					old := any(fmt.Sprintf("true delivery=int64:%d acquired=void", n))
					now := fmt.Sprintf("true delivery=void acquired=int64:%d", n)
					if op.name == "reject" {
						now = fmt.Sprintf("true delivery=int64:%d acquired=int64:%d", n, n)
					}
					if n == 0 {
						old, now = "false delivery=void acquired=void", "false delivery=void acquired=void"
					}
					c.Equal(fmt.Sprint("delivery ", n+1), counts(d), changedIn(v43, old, now))
					c.OK(op.do(k, d))
				}
			}},
		)
	}
	return append(cases,
		Case{"delivery count/quorum/close", func(c *C) {
			q := c.Queue("q", quorum, nil)
			c.Fill(q, "a")
			for n, want := range []any{
				"false delivery=void acquired=void",
				changedIn(v43, "true delivery=int64:1 acquired=void", "true delivery=int64:1 acquired=int64:1"),
				changedIn(v43, "true delivery=int64:2 acquired=void", "true delivery=int64:2 acquired=int64:2"),
			} {
				k := c.Consume(q, consume{Prefetch: 1})
				c.Equal(fmt.Sprint("delivery ", n+1), counts(k.Next()), want)
				k.Stop()
			}
		}},
		Case{"delivery count/quorum/get", func(c *C) {
			q := c.Queue("q", quorum, nil)
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(true))
			c.Equal("second", counts(c.Get(q)), changedIn(v43, "true delivery=int64:1 acquired=void", "true delivery=int64:1 acquired=int64:1"))
		}},
		Case{"delivery count/quorum/replaces a client's header", func(c *C) {
			q := c.Queue("q", quorum, nil)
			c.Publish("", q, text("a", header("x-delivery-count", "mine"), header("x-acquired-count", "mine")))
			d := c.Get(q)
			c.Equal("first", counts(d), changedIn(v40, `false delivery=int64:0 acquired="mine"`, `false delivery="mine" acquired="mine"`))
			c.OK(d.Reject(true))
			c.Equal("second", counts(c.Get(q)), changedIn(v43, `true delivery=int64:1 acquired="mine"`, "true delivery=int64:1 acquired=int64:1"))
		}},
		Case{"delivery count/quorum/carried into the next quorum queue", func(c *C) {
			dead := c.Queue("dead", quorum, nil)
			q := c.Queue("q", quorum, toQueue(dead, nil))
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(true))
			c.OK(c.Get(q).Reject(false))
			c.Equal("in the target", counts(c.One(dead)), changedIn(v40, "false delivery=void acquired=void",
				changedIn(v43, "true delivery=int64:1 acquired=void", "true delivery=int64:2 acquired=int64:2")))
		}},
		Case{"delivery count/quorum/acquired counts anew in the next quorum queue", func(c *C) {
			if c.version.before(v43) {
				c.Skip("before 4.3 returns and failures have one count")
			}
			dead := c.Queue("dead", quorum, nil)
			q := c.Queue("q", quorum, toQueue(dead, nil))
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(true))
			c.OK(c.Get(q).Reject(false))
			c.ReadyBecomes(dead, 1)
			d := c.Get(dead)
			c.Equal("in the target", counts(d), "true delivery=int64:2 acquired=int64:2")
			c.OK(d.Nack(false, true))
			d = c.Get(dead)
			c.Equal("once back", counts(d), "true delivery=int64:2 acquired=int64:1")
			c.OK(d.Reject(true))
			c.Equal("twice back", counts(c.Get(dead)), "true delivery=int64:3 acquired=int64:2")
		}},
		Case{"delivery count/quorum/not shown by a classic queue", func(c *C) {
			dead := c.Queue("dead", classic, nil)
			q := c.Queue("q", quorum, toQueue(dead, nil))
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(true))
			c.OK(c.Get(q).Reject(false))
			c.ReadyBecomes(dead, 1)
			c.Equal("after it waited in the target", counts(c.One(dead)),
				changedIn(v43, "false delivery=void acquired=void", "true delivery=void acquired=void"))
			k := c.Consume(dead, consume{})
			c.Fill(q, "b")
			c.OK(c.Get(q).Reject(true))
			c.OK(c.Get(q).Reject(false))
			c.Equal("handed to a waiting consumer", counts(k.Next()), "false delivery=void acquired=void")
		}},
		carriedCase("reject", classic, classic, func(d amqp.Delivery) error { return d.Reject(false) }, "true delivery=void acquired=void"),
		carriedCase("nack", classic, classic, func(d amqp.Delivery) error { return d.Nack(false, false) }, "false delivery=void acquired=void"),
		carriedCase("reject", classic, quorum, func(d amqp.Delivery) error { return d.Reject(false) }, "true delivery=int64:1 acquired=int64:1"),
		carriedCase("nack", classic, quorum, func(d amqp.Delivery) error { return d.Nack(false, false) }, "false delivery=void acquired=void"),
		Case{"delivery count/quorum/carried through a classic queue", func(c *C) {
			dead := c.Queue("dead", quorum, nil)
			wait := c.Queue("wait", classic, toQueue(dead, amqp.Table{"x-message-ttl": int32(20)}))
			q := c.Queue("q", quorum, toQueue(wait, nil))
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(true))
			c.OK(c.Get(q).Reject(false))
			c.Equal("in the target", counts(c.One(dead)), changedIn(v40, "false delivery=void acquired=void",
				changedIn(v43, "true delivery=int64:1 acquired=void", "true delivery=int64:2 acquired=int64:2")))
		}},
	)
}

// carriedCase sees what a dead letter brings along from a queue where a consumer had it once.
func carriedCase(name, from, to string, give func(d amqp.Delivery) error, now string) Case {
	return Case{"delivery count/carried from " + from + " to " + to + "/" + name, func(c *C) {
		dead := c.Queue("dead", to, nil)
		q := c.Queue("q", from, toQueue(dead, nil))
		c.Fill(q, "a")
		c.OK(give(c.Get(q)))
		c.ReadyBecomes(dead, 1)
		c.Equal("in the target", counts(c.One(dead)), changedIn(v43, "false delivery=void acquired=void", now))
	}}
}

func deliveryLimitCases() []Case {
	// deliveries counts how often a message is delivered until it is dead-lettered.
	deliveries := func(c *C, limit amqp.Table, give func(k *Consumer, d amqp.Delivery) error, enough int) (n int, ended bool) {
		c.Helper()
		q, dead := c.DeadLetters(quorum, limit)
		c.Fill(q, "a")
		k, over := c.Consume(q, consume{Prefetch: 1}), c.Consume(dead, consume{})
		for n < enough {
			select {
			case d := <-k.msgs:
				n++
				c.OK(give(k, d))
			case <-over.msgs:
				return n, true
			}
		}
		return n, false
	}
	three := amqp.Table{"x-delivery-limit": int64(3)}
	limit := func(name string, args amqp.Table, op int, enough int, want any) Case {
		return Case{"delivery limit/" + name, func(c *C) {
			n, ended := deliveries(c, args, requeueing[op].do, enough)
			c.Equal("deliveries and end", fmt.Sprintf("%d %v", n, ended), want)
		}}
	}
	return []Case{
		limit("3 by reject", three, 1, 30, "4 true"),
		limit("3 by nack", three, 0, 30, changedIn(v43, "4 true", "30 false")),
		limit("3 by recover", three, 2, 30, changedIn(v43, "4 true", "30 false")),
		limit("0", amqp.Table{"x-delivery-limit": int64(0)}, 1, 30, "1 true"),
		limit("default by reject", nil, 1, 30, changedIn(v40, "30 false", "21 true")),
		limit("default by nack", nil, 0, 30, changedIn(v40, "30 false", changedIn(v43, "21 true", "30 false"))),
		limit("none", amqp.Table{"x-delivery-limit": int64(-1)}, 1, 30, changedIn(v40, "1 true", "30 false")),
		limit("as string means the default", amqp.Table{"x-delivery-limit": "3"}, 1, 30, changedIn(v43, "30 false", "21 true")),
		{"delivery limit/by closing the channel", func(c *C) {
			q, dead := c.DeadLetters(quorum, amqp.Table{"x-delivery-limit": int64(1)})
			c.Fill(q, "a")
			for range 2 {
				k := c.Consume(q, consume{Prefetch: 1})
				k.Next()
				k.Stop()
			}
			c.Equal("dead", c.Bodies(dead, 1), []string{"a"})
		}},
		{"delivery limit/of a sibling in the same prefetch", func(c *C) {
			q, dead := c.DeadLetters(quorum, amqp.Table{"x-delivery-limit": int64(0)})
			c.Fill(q, "a", "b")
			k := c.Consume(q, consume{Prefetch: 2})
			k.Bodies(2)
			k.Stop()
			got := c.Bodies(dead, 2)
			slices.Sort(got)
			c.Equal("dead", got, []string{"a", "b"})
		}},
		{"delivery limit/without a dead-letter exchange drops", func(c *C) {
			q := c.Queue("q", quorum, amqp.Table{"x-delivery-limit": int64(0)})
			c.Fill(q, "a", "b")
			c.OK(c.Get(q).Reject(true))
			c.Equal("next", c.Bodies(q, 1), []string{"b"})
			c.Empty(q)
		}},
		{"delivery limit/counts on through a retry loop", func(c *C) {
			// reject, wait, back: on 4.x the count travels with the message.
			wait := c.Unique("wait")
			q := c.Queue("q", quorum, toQueue(wait, amqp.Table{"x-delivery-limit": int64(2)}))
			c.Queue("wait", classic, toQueue(q, amqp.Table{"x-message-ttl": int32(10)}))
			c.Fill(q, "a")
			k := c.Consume(q, consume{Prefetch: 1})
			var got []string
			for range 4 {
				d := k.Next()
				got = append(got, counts(d))
				c.OK(d.Reject(false))
			}
			old := slices.Repeat([]string{"false delivery=void acquired=void"}, 4)
			c.Equal("counts", got, changedIn(v40, old, changedIn(v43,
				[]string{"false delivery=void acquired=void", "true delivery=int64:1 acquired=void", "true delivery=int64:2 acquired=void", "true delivery=int64:3 acquired=void"},
				[]string{"false delivery=void acquired=void", "true delivery=int64:1 acquired=int64:1", "true delivery=int64:2 acquired=int64:2", "true delivery=int64:3 acquired=int64:3"})))
		}},
	}
}
