package conformance

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func timeoutCases() []Case {
	timeout := func(ms int64) amqp.Table { return amqp.Table{"x-consumer-timeout": ms} }
	since43 := func(name string, run func(c *C)) Case {
		return Case{"timeout/" + name, func(c *C) {
			if c.version.before(v43) {
				c.Skip("timeouts are looked at once a minute before 4.3")
			}
			run(c)
		}}
	}
	counts := func(d amqp.Delivery) string {
		return fmt.Sprintf("%s %v acquired %v delivered %v", d.Body, d.Redelivered, d.Headers["x-acquired-count"], d.Headers["x-delivery-count"])
	}
	const tooLate = "406 PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: -1 ms. " +
		"This timeout value can be configured, see consumers doc guide to learn more"
	return []Case{
		since43("cancels the consumer and returns its messages", func(c *C) {
			q := c.Queue("q", quorum, nil)
			c.Fill(q, "a", "b")
			k := c.Consume(q, consume{Args: timeout(300)})
			k.Next()
			last := k.Next()
			select {
			case tag := <-k.cancelled:
				c.Equal("cancelled", tag == k.tag, true)
			case <-time.After(patience):
				c.Fatalf("the consumer was not cancelled")
			}
			c.Equal("consumers", c.inspect(q).Consumers, 1)
			other := c.Consume(q, consume{})
			c.Equal("returned", counts(other.Next())+", "+counts(other.Next()), "a true acquired 1 delivered <nil>, b true acquired 1 delivered <nil>")
			c.OK(last.Ack(true)) // too late, and no error
			c.OK(k.ch.Qos(0, 0, false))
			c.Equal("ready", c.Ready(q), 0)
		}),
		since43("closes the channel of a get", func(c *C) {
			q := c.Queue("q", quorum, timeout(300))
			c.Fill(q, "a")
			ch := c.ChannelOn(c.Dial())
			closed := ch.NotifyClose(make(chan *amqp.Error, 1))
			_, _, err := ch.Get(q, false)
			c.OK(err)
			c.Equal("closed", c.closing(closed), tooLate)
			c.Equal("returned", counts(c.Get(q)), "a true acquired 1 delivered <nil>")
		}),
		since43("closes the channel of a consumer that was cancelled", func(c *C) {
			q := c.Queue("q", quorum, nil)
			c.Policy("p", q, 0, map[string]any{"consumer-timeout": 300})
			c.Fill(q, "a")
			k := c.Consume(q, consume{Channel: c.ChannelOn(c.Dial())})
			closed := k.ch.NotifyClose(make(chan *amqp.Error, 1))
			k.Next()
			c.OK(k.ch.Cancel(k.tag, false))
			c.Equal("closed", c.closing(closed), tooLate)
		}),
		since43("of the consumer comes before that of the queue", func(c *C) {
			q := c.Queue("q", quorum, timeout(200))
			c.Fill(q, "a")
			k := c.Consume(q, consume{Args: timeout(60_000)})
			k.Next()
			k.None(600 * time.Millisecond)
			c.Equal("ready", c.Ready(q), 0)
		}),
		since43("arguments are checked", func(c *C) {
			for _, want := range []struct {
				kind, text string
				value      any
			}{
				{classic, "406 PRECONDITION_FAILED - invalid arg 'x-consumer-timeout' for queue 'classic' in vhost '/' of queue type rabbit_classic_queue", "x"},
				{quorum, "406 PRECONDITION_FAILED - invalid arg 'x-consumer-timeout' for queue 'quorum' in vhost '/': \"expected integer, got longstr\"", "x"},
				{quorum, "406 PRECONDITION_FAILED - invalid arg 'x-consumer-timeout' for queue 'quorum' in vhost '/': {value_negative,-1}", int32(-1)},
			} {
				q := c.Queue(want.kind, want.kind, nil)
				c.Equal("refusal", c.Refused(func(ch *amqp.Channel) error {
					_, err := ch.Consume(q, "", false, false, false, false, amqp.Table{"x-consumer-timeout": want.value})
					return err
				}), want.text)
			}
		}),
		{"timeout/a quorum consumer without prefetch gets 2000 messages", func(c *C) {
			q := c.Queue("q", quorum, nil)
			c.Fill(q, numbered(2100)...)
			k := c.Consume(q, consume{})
			k.Bodies(2000)
			c.Equal("ready", c.Ready(q), 100)
		}},
	}
}

func numbered(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}
