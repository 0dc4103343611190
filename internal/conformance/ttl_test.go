package conformance

import (
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func ttlCases() []Case {
	return slices.Concat(
		both("ttl/of the queue", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, amqp.Table{"x-message-ttl": int32(50)})
			start := time.Now()
			c.Fill(q, "a", "b")
			c.Equal("dead", c.Bodies(dead, 2), []string{"a", "b"})
			c.Equal("early", time.Since(start) < 50*time.Millisecond, false)
			c.Empty(q)
		}),
		both("ttl/of the message", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			start := time.Now()
			c.Publish("", q, text("a", ttl(50*time.Millisecond)))
			d := c.One(dead)
			c.Equal("early", time.Since(start) < 50*time.Millisecond, false)
			c.Equal("expiration afterwards", d.Expiration, "")
		}),
		both("ttl/the smaller counts", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, amqp.Table{"x-message-ttl": int32(50)})
			c.Publish("", q, text("a", ttl(time.Hour)))
			c.Publish("", q, text("b", ttl(60*time.Second)))
			c.Equal("the queue's", c.Bodies(dead, 2), []string{"a", "b"})
			slow := c.Queue("slow", kind, toQueue(dead, amqp.Table{"x-message-ttl": int64(3600000)}))
			c.Publish("", slow, text("c", ttl(20*time.Millisecond)))
			c.Equal("the message's", c.Bodies(dead, 1), []string{"c"})
		}),
		both("ttl/only the head expires", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			start := time.Now()
			c.Publish("", q, text("slow", ttl(400*time.Millisecond)))
			c.Publish("", q, text("fast", ttl(10*time.Millisecond)))
			c.Equal("order", c.Bodies(dead, 2), []string{"slow", "fast"})
			c.Equal("before the head", time.Since(start) < 400*time.Millisecond, false)
		}),
		both("ttl/expired behind a lasting head stays and counts", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			k := c.Consume(dead, consume{})
			c.Fill(q, "head")
			c.Publish("", q, text("fast", ttl(10*time.Millisecond)))
			k.None(100 * time.Millisecond)
			c.Equal("ready", c.Ready(q), 2)
			c.OK(c.Get(q).Ack(false))
			c.Equal("when the head is gone", k.Bodies(1), []string{"fast"})
			c.Equal("ready", c.Ready(q), 0)
		}),
		both("ttl/no dead-letter exchange drops", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Publish("", q, text("a", ttl(10*time.Millisecond)))
			c.ReadyBecomes(q, 0)
		}),
		both("ttl/0 without a consumer", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Publish("", q, text("a", ttl(0)))
			c.Equal("dead", c.Bodies(dead, 1), []string{"a"})
		}),
		both("ttl/0 with a waiting consumer", func(c *C, kind string) {
			q, _ := c.DeadLetters(kind, nil)
			k := c.Consume(q, consume{})
			c.Publish("", q, text("a", ttl(0)))
			c.Equal("delivered", k.Bodies(1), []string{"a"})
		}),
		both("ttl/0 of the queue", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, amqp.Table{"x-message-ttl": int32(0)})
			c.Fill(q, "a")
			c.Equal("dead", c.Bodies(dead, 1), []string{"a"})
			k := c.Consume(q, consume{})
			c.Fill(q, "b")
			d := k.Next()
			c.Equal("delivered", string(d.Body), "b")
			c.OK(d.Nack(false, true))
			c.Equal("requeued", c.Bodies(dead, 1), []string{"b"})
		}),
		both("ttl/0 is not returned", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Equal("return", c.Returned("", q, text("a", ttl(0))), "")
		}),
		both("ttl/unacked message does not expire", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			watch := c.Consume(dead, consume{})
			c.Publish("", q, text("a", ttl(100*time.Millisecond)))
			k := c.Consume(q, consume{})
			d := k.Next()
			watch.None(200 * time.Millisecond)
			c.OK(d.Nack(false, true))
			got := watch.Next()
			c.Equal("after the requeue", showDeaths(got), []string{
				`count=int64:1 exchange="" original-expiration="100" queue="q" reason="expired" routing-keys=["q"] time=time`,
			})
			c.Equal("delivery tag", got.DeliveryTag, 1)
		}),
		both("ttl/expired messages are not delivered", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Publish("", q, text("a", ttl(20*time.Millisecond)))
			c.Bodies(dead, 1)
			c.Empty(q)
		}),
		both("ttl/requeued with time left lives on", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, amqp.Table{"x-message-ttl": int32(2000)})
			start := time.Now()
			c.Fill(q, "a")
			c.OK(c.Get(q).Nack(false, true))
			c.ReadyBecomes(q, 1)
			c.Bodies(dead, 1)
			c.Equal("early", time.Since(start) < 2*time.Second, false)
		}),
		expirationCases(), expiresCases(),
	)
}

func expirationCases() []Case {
	var cases []Case
	for _, e := range []struct{ value, why string }{
		{"abc", "no_integer"}, {" 5", "no_integer"}, {"-", "no_integer"}, {"1.5", `{leftover_string,".5"}`}, {"5000ms", `{leftover_string,"ms"}`},
		{"5 ", `{leftover_string," "}`}, {"0x10", `{leftover_string,"x10"}`}, {"1e3", `{leftover_string,"e3"}`},
		{"-1", "{value_negative,-1}"}, {"315360000001", "{value_too_large,315360000001}"},
		{"+5", ""}, {"005", ""}, {"0", ""}, {"-0", ""}, {"4294967296", ""}, {"315360000000", ""},
	} {
		cases = append(cases, Case{"expiration/" + e.value, func(c *C) {
			q := c.Queue("q", classic, nil)
			want := ""
			if e.why != "" {
				want = "406 PRECONDITION_FAILED - invalid expiration '" + e.value + "': " + e.why
			}
			c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
				return ch.Publish("", q, false, false, text("a", expiration(e.value)))
			}), want)
		}})
	}
	return append(cases, Case{"expiration/beyond 64 bits", func(c *C) {
		got := c.Refused(func(ch *amqp.Channel) error {
			return ch.Publish("", "nowhere", false, false, text("a", expiration("99999999999999999999")))
		})
		// RabbitMQ breaks the line before a number as long as that.
		c.Equal("exception", strings.Join(strings.Fields(got), ""),
			"406PRECONDITION_FAILED-invalidexpiration'99999999999999999999':{value_too_large,99999999999999999999}")
	}}, Case{"expiration/is looked at after the exchange", func(c *C) {
		c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
			return ch.Publish(c.Unique("x"), "k", false, false, text("a", expiration("abc")))
		}), "404 NOT_FOUND - no exchange 'x' in vhost '/'")
	}}, Case{"expiration/is looked at before the route", func(c *C) {
		c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
			return ch.Publish("", "nowhere", false, false, text("a", expiration("abc")))
		}), "406 PRECONDITION_FAILED - invalid expiration 'abc': no_integer")
	}}, Case{"expiration/in its canonical form after death", func(c *C) {
		q, dead := c.DeadLetters(classic, nil)
		c.Publish("", q, text("a", expiration("+0020")))
		c.Equal("x-death", showDeaths(c.One(dead)), []string{
			`count=int64:1 exchange="" original-expiration="` + resolve(changedIn(v40, "+0020", "20"), c.version).(string) +
				`" queue="q" reason="expired" routing-keys=["q"] time=time`,
		})
	}})
}

// every does it n times, once in each interval.
func every(interval time.Duration, n int, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for range n {
		<-tick.C
		do()
	}
}

func expiresCases() []Case {
	expires := func(ms int) amqp.Table { return amqp.Table{"x-expires": int32(ms)} }
	gone := func(c *C, q string) {
		c.Helper()
		c.Eventually("the queue to vanish", func() bool {
			return c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclarePassive(q, true, false, false, false, nil)
				return err
			}) != ""
		})
	}
	// A passive declaration would keep the queue alive, so this one watches for the end of its consumer-less life
	// through what is bound.
	unrouted := func(c *C, q string) func() bool {
		c.Helper()
		c.publisher()
		return func() bool {
			c.publishAs("", q, true, text("probe")) // nacked when the queue vanishes under it
			select {
			case <-c.pub.returns:
				return true
			default:
				return false
			}
		}
	}
	return []Case{
		{"expires/unused queue", func(c *C) {
			q := c.Queue("q", classic, expires(100))
			c.Eventually("the queue to vanish", unrouted(c, q))
		}},
		{"expires/publishing does not renew and nothing is dead-lettered", func(c *C) {
			dead := c.Queue("dead", classic, nil)
			q := c.Queue("q", classic, toQueue(dead, expires(200)))
			c.Eventually("the queue to vanish while it is published to", unrouted(c, q))
			c.Empty(dead)
		}},
		{"expires/consumer keeps it", func(c *C) {
			q := c.Queue("q", classic, expires(1000))
			k := c.Consume(q, consume{})
			k.None(1500 * time.Millisecond)
			c.Equal("route", c.Returned("", q, text("a")), "")
			k.Stop()
			c.Eventually("the queue to vanish", unrouted(c, q))
		}},
		{"expires/get renews", func(c *C) {
			q := c.Queue("q", classic, expires(1500))
			every(300*time.Millisecond, 8, func() { c.Empty(q) })
			c.Equal("route", c.Returned("", q, text("a")), "")
		}},
		{"expires/declaring renews a classic queue", func(c *C) {
			q := c.Queue("q", classic, expires(1500))
			every(300*time.Millisecond, 8, func() {
				_, err := c.ch.QueueDeclare(q, true, false, false, false, expires(1500))
				c.OK(err)
			})
			c.Equal("route", c.Returned("", q, text("a")), "")
		}},
		{"expires/quorum", func(c *C) {
			q := c.Queue("q", quorum, expires(100))
			gone(c, q)
		}},
	}
}
