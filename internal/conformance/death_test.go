package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// showDeaths writes the x-death header, an entry a line. The time of a death is shown by its type alone.
func showDeaths(d amqp.Delivery) []string {
	list, ok := d.Headers["x-death"].([]any)
	if !ok {
		return []string{"x-death: " + typed(d.Headers["x-death"])}
	}
	lines := []string{}
	for _, e := range list {
		t, ok := e.(amqp.Table)
		if !ok {
			return append(lines, "no table: "+typed(e))
		}
		fields := make([]string, 0, len(t))
		for _, k := range slices.Sorted(maps.Keys(t)) {
			if _, is := t[k].(time.Time); is {
				fields = append(fields, k+"=time")
			} else {
				fields = append(fields, k+"="+typed(t[k]))
			}
		}
		lines = append(lines, strings.Join(fields, " "))
	}
	return lines
}

// shortDeaths writes the x-death header as queue, reason and count.
func shortDeaths(d amqp.Delivery) string {
	var parts []string
	list, _ := d.Headers["x-death"].([]any)
	for _, e := range list {
		t := e.(amqp.Table)
		parts = append(parts, fmt.Sprintf("%v:%v:%v", t["queue"], t["reason"], t["count"]))
	}
	return strings.Join(parts, " ")
}

// ends writes the x-first-death and x-last-death headers.
func ends(d amqp.Delivery) string {
	var parts []string
	for _, which := range []string{"first", "last"} {
		var p []string
		for _, what := range []string{"queue", "reason", "exchange"} {
			p = append(p, show(d.Headers["x-"+which+"-death-"+what]))
		}
		parts = append(parts, which+" "+strings.Join(p, ","))
	}
	return strings.Join(parts, " ")
}

// toQueue are arguments that send dead letters to a queue by the default exchange.
func toQueue(name string, more amqp.Table) amqp.Table {
	args := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name}
	maps.Copy(args, more)
	return args
}

// DeadLetters declares a queue whose dead letters go to a second one, and returns both names.
func (c *C) DeadLetters(kind string, args amqp.Table) (queue, dead string) {
	c.Helper()
	dead = c.Queue("dead", classic, nil)
	return c.Queue("q", kind, toQueue(dead, args)), dead
}

func deathCases() []Case {
	return slices.Concat(reasonCases(), deadRouteCases(), historyCases(), loopCases(), republishCases(), cycleCases())
}

func reasonCases() []Case {
	entry := func(reason string, more string) any {
		return []string{`count=int64:1 exchange="" ` + more + `queue="q" reason="` + reason + `" routing-keys=["q"] time=time`}
	}
	return slices.Concat(
		both("death/rejected", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(false))
			d := c.One(dead)
			c.Equal("x-death", showDeaths(d), entry("rejected", ""))
			c.Equal("ends", ends(d), changedIn(v40, "first q,rejected, last void,void,void", "first q,rejected, last q,rejected,"))
			c.Equal("where from", d.Exchange+"/"+d.RoutingKey, "/dead")
		}),
		both("death/nacked", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Fill(q, "a", "b", "c")
			k := c.Consume(q, consume{})
			k.Next()
			k.Next()
			c.OK(k.Next().Nack(true, false))
			got := c.Receive(dead, 3)
			c.Equal("order", string(got[0].Body)+string(got[1].Body)+string(got[2].Body), "abc")
			c.Equal("x-death", showDeaths(got[2]), entry("rejected", ""))
		}),
		both("death/expired by the queue", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, amqp.Table{"x-message-ttl": int32(10)})
			c.Fill(q, "a")
			c.Equal("x-death", showDeaths(c.One(dead)), entry("expired", ""))
		}),
		both("death/expired by its expiration", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Publish("", q, text("a", expiration("10")))
			c.Equal("x-death", showDeaths(c.One(dead)), entry("expired", `original-expiration="10" `))
		}),
		both("death/rejected with an expiration", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Publish("", q, text("a", expiration("100000")))
			c.OK(c.Get(q).Reject(false))
			d := c.One(dead)
			c.Equal("x-death", showDeaths(d), entry("rejected", `original-expiration="100000" `))
			c.Equal("expiration", d.Expiration, "")
		}),
		both("death/expiration 0", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Publish("", q, text("a", expiration("0")))
			c.Equal("x-death", showDeaths(c.One(dead)), entry("expired", `original-expiration="0" `))
		}),
		both("death/maxlen", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, amqp.Table{"x-max-length": int32(1)})
			c.Fill(q, "a", "b")
			d := c.One(dead)
			c.Equal("the head", string(d.Body), "a")
			c.Equal("x-death", showDeaths(d), entry("maxlen", ""))
		}),
		[]Case{
			{"death/delivery limit", func(c *C) {
				q, dead := c.DeadLetters(quorum, amqp.Table{"x-delivery-limit": int64(0)})
				c.Fill(q, "a")
				c.OK(c.Get(q).Reject(true))
				c.Equal("x-death", showDeaths(c.One(dead)), entry("delivery_limit", ""))
			}},
			{"death/time is that of the death in seconds", func(c *C) {
				q, dead := c.DeadLetters(classic, nil)
				c.Fill(q, "a")
				before := time.Now().Truncate(time.Second)
				c.OK(c.Get(q).Reject(false))
				at := c.One(dead).Headers["x-death"].([]any)[0].(amqp.Table)["time"].(time.Time)
				c.Equal("within the test", !at.Before(before) && !at.After(time.Now()), true)
			}},
			{"death/properties are kept", func(c *C) {
				q, dead := c.DeadLetters(classic, nil)
				p := text("body", header("h", int32(1)), priority(4))
				p.ContentType, p.CorrelationId, p.MessageId, p.Timestamp, p.Type = "text/plain", "corr", "id", moment, "t"
				c.Publish("", q, p)
				c.OK(c.Get(q).Reject(false))
				d := c.One(dead)
				c.Equal("properties", fmt.Sprint([]any{d.ContentType, d.CorrelationId, d.MessageId, d.Timestamp.Unix(), d.Type, d.Priority, d.DeliveryMode, d.Headers["h"], string(d.Body)}),
					"[text/plain corr id 1700000000 t 4 2 1 body]")
			}},
			{"death/not by purge or delete", func(c *C) {
				q, dead := c.DeadLetters(classic, nil)
				c.Fill(q, "a")
				_, err := c.ch.QueuePurge(q, false)
				c.OK(err)
				c.Fill(q, "b")
				c.OK(deleteQueue(c.ch, q))
				c.Fill(dead, "fence")
				c.Equal("dead", c.Bodies(dead, 1), []string{"fence"})
			}},
			{"death/not without a dead-letter exchange", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Fill(q, "a")
				c.OK(c.Get(q).Reject(false))
				c.Equal("ready", c.Ready(q), 0)
			}},
		},
	)
}

func deadRouteCases() []Case {
	return slices.Concat(
		both("dead letter/keeps its key without a dead-letter key", func(c *C, kind string) {
			dlx, x := c.Exchange("dlx", "direct", nil), c.Exchange("x", "direct", nil)
			dead := c.Queue("dead", classic, nil)
			q := c.Queue("q", kind, amqp.Table{"x-dead-letter-exchange": dlx})
			c.Bind(dead, "k", dlx, nil)
			c.Bind(q, "k", x, nil)
			c.Publish(x, "k", text("a"))
			c.OK(c.Get(q).Reject(false))
			d := c.One(dead)
			c.Equal("where from", c.plain(d.Exchange)+"/"+d.RoutingKey, "dlx/k")
			c.Equal("x-death", showDeaths(d), []string{`count=int64:1 exchange="x" queue="q" reason="rejected" routing-keys=["k"] time=time`})
			c.Equal("ends", ends(d), changedIn(v40, "first q,rejected,x last void,void,void", "first q,rejected,x last q,rejected,x"))
		}),
		both("dead letter/cc and bcc are routed too", func(c *C, kind string) {
			dlx, x := c.Exchange("dlx", "direct", nil), c.Exchange("x", "fanout", nil)
			q := c.Queue("q", kind, amqp.Table{"x-dead-letter-exchange": dlx})
			c.Bind(q, "", x, nil)
			queues := map[string]string{}
			for _, key := range []string{"k", "cc", "bcc"} {
				queues[key] = c.Queue("dead-"+key, classic, nil)
				c.Bind(queues[key], key, dlx, nil)
			}
			c.Publish(x, "k", text("a", header("CC", c.keys("cc")), header("BCC", c.keys("bcc"))))
			c.OK(c.Get(q).Reject(false))
			for _, key := range []string{"k", "cc", "bcc"} {
				d := c.One(queues[key])
				c.Equal("x-death in "+key, showDeaths(d), []string{`count=int64:1 exchange="x" queue="q" reason="rejected" routing-keys=["k" "cc"] time=time`})
				c.Equal("CC and BCC in "+key, typed(d.Headers["CC"])+typed(d.Headers["BCC"]), `["cc"]void`)
				c.Equal("routing key in "+key, d.RoutingKey, "k")
			}
		}),
		both("dead letter/cc with a dead-letter key", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			other := c.Queue("other", classic, nil)
			c.Publish("", q, text("a", header("CC", c.keys(other)), header("BCC", c.keys(other))))
			c.Equal("copy", c.Bodies(other, 1), []string{"a"})
			c.OK(c.Get(q).Reject(false))
			d := c.One(dead)
			c.Equal("CC", d.Headers["CC"], changedIn(v40, "void", `["other"]`))
			c.Equal("x-death", showDeaths(d), []string{`count=int64:1 exchange="" queue="q" reason="rejected" routing-keys=["q" "other"] time=time`})
			c.Equal("copies of the dead letter", c.Ready(other), 0)
		}),
		both("dead letter/missing exchange drops", func(c *C, kind string) {
			q := c.Queue("q", kind, amqp.Table{"x-dead-letter-exchange": c.Unique("missing")})
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(false))
			c.ReadyBecomes(q, 0)
		}),
		both("dead letter/exchange declared later", func(c *C, kind string) {
			dlx := c.Unique("dlx")
			q := c.Queue("q", kind, amqp.Table{"x-dead-letter-exchange": dlx})
			c.Exchange("dlx", "fanout", nil)
			dead := c.Queue("dead", classic, nil)
			c.Bind(dead, "", dlx, nil)
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(false))
			c.Equal("dead", c.Bodies(dead, 1), []string{"a"})
		}),
		[]Case{
			{"dead letter/through an alternate exchange", func(c *C) {
				alt := c.Exchange("alt", "fanout", nil)
				dlx := c.Exchange("dlx", "direct", amqp.Table{"alternate-exchange": alt})
				q, dead := c.Queue("q", classic, amqp.Table{"x-dead-letter-exchange": dlx}), c.Queue("dead", classic, nil)
				c.Bind(dead, "", alt, nil)
				c.Fill(q, "a")
				c.OK(c.Get(q).Reject(false))
				d := c.One(dead)
				c.Equal("where from", c.plain(d.Exchange+"/"+d.RoutingKey), "dlx/q")
			}},
			{"dead letter/through an internal exchange", func(c *C) {
				dlx := c.Unique("dlx")
				c.Equal("declare", c.ExchangeRefused(dlx, exchange{Kind: "fanout", Internal: true}, nil), "")
				q, dead := c.Queue("q", classic, amqp.Table{"x-dead-letter-exchange": dlx}), c.Queue("dead", classic, nil)
				c.Bind(dead, "", dlx, nil)
				c.Fill(q, "a")
				c.OK(c.Get(q).Reject(false))
				c.Equal("dead", c.Bodies(dead, 1), []string{"a"})
			}},
			{"dead letter/through a headers exchange", func(c *C) {
				dlx := c.Exchange("dlx", "headers", nil)
				q, dead := c.Queue("q", classic, amqp.Table{"x-dead-letter-exchange": dlx}), c.Queue("dead", classic, nil)
				c.Bind(dead, "", dlx, amqp.Table{"x-match": "all-with-x", "x-first-death-reason": "rejected", "h": "1"})
				c.Publish("", q, text("a", header("h", "1")))
				c.OK(c.Get(q).Reject(false))
				if !c.version.before(v40) {
					c.Equal("dead", c.Bodies(dead, 1), []string{"a"})
				}
			}},
			{"dead letter/into several queues", func(c *C) {
				dlx := c.Exchange("dlx", "fanout", nil)
				q := c.Queue("q", classic, amqp.Table{"x-dead-letter-exchange": dlx})
				a, b := c.Queue("a", classic, nil), c.Queue("b", quorum, nil)
				c.Bind(a, "", dlx, nil)
				c.Bind(b, "", dlx, nil)
				c.Fill(q, "m")
				c.OK(c.Get(q).Reject(false))
				c.Equal("a", c.Bodies(a, 1), []string{"m"})
				c.Equal("b", c.Bodies(b, 1), []string{"m"})
			}},
			{"dead letter/at-least-once", func(c *C) {
				q, dead := c.DeadLetters(quorum, amqp.Table{
					"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-message-ttl": int32(10),
				})
				c.Fill(q, "a", "b")
				got := c.Receive(dead, 2)
				c.Equal("bodies", string(got[0].Body)+string(got[1].Body), "ab")
				c.Equal("x-death", showDeaths(got[0]), []string{`count=int64:1 exchange="" queue="q" reason="expired" routing-keys=["q"] time=time`})
			}},
			{"dead letter/at-least-once keeps what has no target", func(c *C) {
				q := c.Queue("q", quorum, amqp.Table{
					"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
					"x-dead-letter-exchange": "", "x-dead-letter-routing-key": c.Unique("missing"),
				})
				c.Fill(q, "a", "b")
				c.OK(c.Get(q).Reject(false))
				c.Equal("ready", c.Ready(q), 1)
				c.Equal("next", c.Bodies(q, 1), []string{"b"})
			}},
		},
	)
}

func historyCases() []Case {
	// loop has a work queue whose rejects wait and come back.
	loop := func(c *C, kind string) string {
		wait := c.Unique("wait")
		work := c.Queue("work", kind, toQueue(wait, nil))
		c.Queue("wait", classic, toQueue(work, amqp.Table{"x-message-ttl": int32(10)}))
		return work
	}
	return slices.Concat(
		both("history/reject and wait", func(c *C, kind string) {
			work := loop(c, kind)
			c.Fill(work, "a")
			k := c.Consume(work, consume{Prefetch: 1})
			for n := range 4 {
				d := k.Next()
				want := ""
				if n > 0 {
					want = fmt.Sprintf("wait:expired:%d work:rejected:%d", n, n)
				}
				c.Equal(fmt.Sprint("x-death of delivery ", n+1), shortDeaths(d), want)
				if n > 0 {
					c.Equal("ends", ends(d), changedIn(v40, "first work,rejected, last void,void,void", "first work,rejected, last wait,expired,"))
				}
				c.OK(d.Reject(false))
			}
		}),
		[]Case{
			{"history/a repeated death keeps all but the count", func(c *C) {
				// The second time round the message has another exchange and key; only the count tells.
				x := c.Exchange("x", "fanout", nil)
				work := c.Queue("work", classic, amqp.Table{"x-dead-letter-exchange": c.Unique("dlx"), "x-dead-letter-routing-key": "again"})
				dlx := c.Exchange("dlx", "direct", nil)
				c.Bind(work, "", x, nil)
				c.Bind(work, "again", dlx, nil)
				c.Publish(x, "k", text("a"))
				c.OK(c.Get(work).Reject(false))
				c.ReadyBecomes(work, 1)
				c.OK(c.Get(work).Reject(false))
				c.ReadyBecomes(work, 1)
				d := c.One(work)
				c.Equal("x-death", showDeaths(d), []string{`count=int64:2 exchange="x" queue="work" reason="rejected" routing-keys=["k"] time=time`})
				c.Equal("ends", ends(d), changedIn(v40, "first work,rejected,x last void,void,void", "first work,rejected,x last work,rejected,dlx"))
			}},
			{"history/original expiration is that of the first death", func(c *C) {
				work := c.Queue("work", classic, toQueue(c.Unique("dead"), nil))
				dead := c.Queue("dead", classic, nil)
				c.Publish("", work, text("a", expiration("10")))
				c.Equal("x-death", showDeaths(c.One(dead)), []string{
					`count=int64:1 exchange="" original-expiration="10" queue="work" reason="expired" routing-keys=["work"] time=time`,
				})
			}},
			{"history/three queues, the latest first", func(c *C) {
				d := c.Queue("d", classic, nil)
				q3 := c.Queue("q3", classic, toQueue(d, amqp.Table{"x-message-ttl": int32(10)}))
				q2 := c.Queue("q2", classic, toQueue(q3, amqp.Table{"x-message-ttl": int32(10)}))
				q1 := c.Queue("q1", classic, toQueue(q2, amqp.Table{"x-message-ttl": int32(10)}))
				c.Fill(q1, "a")
				got := c.One(d)
				entry := func(q string) string {
					return `count=int64:1 exchange="" queue="` + q + `" reason="expired" routing-keys=["` + q + `"] time=time`
				}
				// 3.10 turns round all entries behind the new one each time.
				c.Equal("x-death", showDeaths(got), changedIn(v40,
					[]string{entry("q3"), entry("q1"), entry("q2")}, []string{entry("q3"), entry("q2"), entry("q1")}))
				c.Equal("ends", ends(got), changedIn(v40, "first q1,expired, last void,void,void", "first q1,expired, last q3,expired,"))
			}},
			{"history/same queue twice for different reasons", func(c *C) {
				limit := int64(2) // the rejection counts, and the count travels with the message
				if c.version.before(v43) {
					limit = 1
				}
				end := c.Queue("end", classic, nil)
				work := c.Queue("work", quorum, amqp.Table{"x-dead-letter-exchange": c.Unique("dlx"), "x-delivery-limit": limit})
				dlx := c.Exchange("dlx", "fanout", nil)
				c.Bind(work, "", dlx, nil)
				c.Bind(end, "", dlx, nil)
				c.Fill(work, "a")
				c.OK(c.Get(work).Reject(false))
				over := c.Consume(end, consume{})
				c.Equal("after a rejection", shortDeaths(over.Next()), "work:rejected:1")
				k := c.Consume(work, consume{Prefetch: 1})
				for range 2 {
					c.OK(k.Next().Reject(true))
				}
				c.Equal("after the limit", shortDeaths(over.Next()), "work:delivery_limit:1 work:rejected:1")
			}},
		},
	)
}

func republishCases() []Case {
	republish := func(d amqp.Delivery) amqp.Publishing {
		return amqp.Publishing{Headers: d.Headers, Body: d.Body, DeliveryMode: d.DeliveryMode}
	}
	return slices.Concat(
		both("republish/a client's x-death is a plain header until the next death", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(false))
			p := republish(c.One(dead))
			c.Publish("", q, p)
			d := c.Get(q)
			c.Equal("before the next death", shortDeaths(d), "q:rejected:1")
			c.Equal("ends", ends(d), changedIn(v40, "first q,rejected, last void,void,void", "first q,rejected, last q,rejected,"))
			c.OK(d.Reject(false))
			c.Equal("after it", shortDeaths(c.One(dead)), changedIn(v40, "q:rejected:2", "q:rejected:1"))
		}),
		[]Case{
			{"republish/an x-death of another queue", func(c *C) {
				q, dead := c.DeadLetters(classic, nil)
				p := text("a", header("x-first-death-queue", "mine"), header("x-last-death-queue", "mine"))
				p.Headers["x-death"] = []any{amqp.Table{"queue": "other", "reason": "expired", "count": int64(7), "exchange": "", "time": moment, "routing-keys": []any{"k"}}}
				c.Publish("", q, p)
				c.OK(c.Get(q).Reject(false))
				d := c.One(dead)
				c.Equal("x-death", shortDeaths(d), changedIn(v40, "q:rejected:1 other:expired:7", "q:rejected:1"))
				c.Equal("ends", ends(d), changedIn(v40, "first mine,void,void last mine,void,void", "first q,rejected, last q,rejected,"))
			}},
			{"republish/an x-death that is no list", func(c *C) {
				q, dead := c.DeadLetters(classic, nil)
				c.Publish("", q, text("a", header("x-death", "garbage")))
				d := c.Get(q)
				c.Equal("before", d.Headers["x-death"], "garbage")
				c.OK(d.Reject(false))
				c.Equal("after", shortDeaths(c.One(dead)), "q:rejected:1")
			}},
			{"republish/other headers beside x-death stay", func(c *C) {
				q, dead := c.DeadLetters(classic, nil)
				c.Publish("", q, text("a", header("zebra", "z"), header("Alpha", "a"), header("x-mine", int32(1))))
				c.OK(c.Get(q).Reject(false))
				d := c.One(dead)
				delete(d.Headers, "x-death")
				c.Equal("headers", d.Headers, changedIn(v40,
					`{Alpha="a" x-first-death-exchange="" x-first-death-queue="q" x-first-death-reason="rejected" x-mine=int32:1 zebra="z"}`,
					`{Alpha="a" x-first-death-exchange="" x-first-death-queue="q" x-first-death-reason="rejected" x-last-death-exchange="" x-last-death-queue="q" x-last-death-reason="rejected" x-mine=int32:1 zebra="z"}`))
			}},
		},
	)
}

func cycleCases() []Case {
	fast := amqp.Table{"x-message-ttl": int32(10)}
	return slices.Concat(
		both("cycle/into itself by time", func(c *C, kind string) {
			q := c.Queue("q", kind, amqp.Table{"x-dead-letter-exchange": c.Unique("dlx"), "x-message-ttl": int32(10)})
			dlx := c.Exchange("dlx", "fanout", nil)
			see := c.Queue("see", classic, nil)
			c.Bind(q, "", dlx, nil)
			c.Bind(see, "", dlx, nil)
			k := c.Consume(see, consume{})
			c.Fill(q, "a")
			c.Equal("the other target", shortDeaths(k.Next()), "q:expired:1")
			k.None(100 * time.Millisecond)
			c.Equal("ready", c.Ready(q), 0)
		}),
		both("cycle/into itself by rejection", func(c *C, kind string) {
			q := c.Unique("q")
			c.Queue("q", kind, toQueue(q, nil))
			c.Fill(q, "a")
			k := c.Consume(q, consume{Prefetch: 1})
			c.OK(k.Next().Reject(false))
			c.Equal("x-death", shortDeaths(k.Next()), "q:rejected:1")
		}),
		both("cycle/two queues by time", func(c *C, kind string) {
			q1 := c.Unique("q1")
			q2 := c.Queue("q2", kind, amqp.Table{"x-dead-letter-exchange": c.Unique("dlx"), "x-message-ttl": int32(10)})
			c.Queue("q1", kind, toQueue(q2, fast))
			dlx := c.Exchange("dlx", "fanout", nil)
			see := c.Queue("see", classic, nil)
			c.Bind(q1, "", dlx, nil)
			c.Bind(see, "", dlx, nil)
			k := c.Consume(see, consume{})
			c.Fill(q1, "a")
			c.Equal("leaving q2", shortDeaths(k.Next()), "q2:expired:1 q1:expired:1")
			k.None(100 * time.Millisecond)
		}),
		[]Case{
			{"cycle/delivery limit counts as automatic", func(c *C) {
				work := c.Queue("work", quorum, toQueue(c.Unique("wait"), amqp.Table{"x-delivery-limit": int64(0)}))
				c.Queue("wait", classic, amqp.Table{"x-dead-letter-exchange": c.Unique("dlx"), "x-message-ttl": int32(10)})
				dlx := c.Exchange("dlx", "fanout", nil)
				see := c.Queue("see", classic, nil)
				c.Bind(work, "", dlx, nil)
				c.Bind(see, "", dlx, nil)
				c.Fill(work, "a")
				c.OK(c.Get(work).Reject(true))
				c.Equal("leaving wait", shortDeaths(c.One(see)), "wait:expired:1 work:delivery_limit:1")
				c.Equal("ready in work", c.Ready(work), 0)
			}},
			{"cycle/a rejection does not protect a later lap by time", func(c *C) {
				// The message is rejected in work, comes back, and expires there.
				x := c.Exchange("x", "fanout", nil)
				work := c.Queue("work", classic, amqp.Table{"x-dead-letter-exchange": x, "x-message-ttl": int32(400)})
				wait, see := c.Queue("wait", classic, toQueue(work, amqp.Table{"x-message-ttl": int32(10)})), c.Queue("see", classic, nil)
				c.Bind(wait, "", x, nil)
				c.Bind(see, "", x, nil)
				c.Fill(work, "a")
				c.OK(c.Get(work).Reject(false))
				k := c.Consume(see, consume{})
				c.Equal("first death in work", shortDeaths(k.Next()), "work:rejected:1")
				c.Equal("second", shortDeaths(k.Next()), changedIn(v40,
					"work:expired:1 work:rejected:1 wait:expired:1", "work:expired:1 wait:expired:1 work:rejected:1"))
				if !c.version.before(v40) { // 3.10 has the rejection between the two for the order it keeps
					k.None(600 * time.Millisecond)
					c.Equal("left", c.Ready(wait)+c.Ready(work), 0)
				}
			}},
			{"cycle/by length", func(c *C) {
				q1 := c.Unique("q1")
				q2 := c.Queue("q2", classic, amqp.Table{"x-dead-letter-exchange": c.Unique("dlx"), "x-message-ttl": int32(10)})
				c.Queue("q1", classic, toQueue(q2, amqp.Table{"x-max-length": int32(1)}))
				dlx := c.Exchange("dlx", "fanout", nil)
				see := c.Queue("see", classic, nil)
				c.Bind(q1, "", dlx, nil)
				c.Bind(see, "", dlx, nil)
				c.Fill(q1, "a", "b")
				c.Equal("leaving q2", shortDeaths(c.One(see)), "q2:expired:1 q1:maxlen:1")
				c.Equal("left in q1", c.Bodies(q1, 1), []string{"b"})
				c.Empty(q1)
			}},
			{"cycle/a rejection on the way protects", func(c *C) {
				work := c.Queue("work", classic, toQueue(c.Unique("hold"), amqp.Table{"x-message-ttl": int32(10)}))
				hold := c.Queue("hold", classic, toQueue(c.Unique("wait"), nil))
				see := c.Queue("see", classic, nil)
				c.Queue("wait", classic, amqp.Table{"x-dead-letter-exchange": c.Unique("dlx"), "x-message-ttl": int32(10)})
				dlx := c.Exchange("dlx", "fanout", nil)
				c.Bind(work, "", dlx, nil)
				c.Bind(see, "", dlx, nil)
				c.Fill(work, "a")
				k := c.Consume(hold, consume{Prefetch: 1})
				c.OK(k.Next().Reject(false)) // work:expired hold:rejected wait:expired, so it comes back to work
				c.Equal("leaving wait", shortDeaths(c.One(see)), changedIn(v40,
					"wait:expired:1 work:expired:1 hold:rejected:1", "wait:expired:1 hold:rejected:1 work:expired:1"))
				if c.version.before(v40) { // 3.10 does not see the rejection for the order it keeps
					k.None(100 * time.Millisecond)
					return
				}
				c.Equal("in hold again", shortDeaths(k.Next()), "work:expired:2 wait:expired:1 hold:rejected:1")
			}},
		},
	)
}
