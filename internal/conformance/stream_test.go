package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const stream = "stream"

func streamCases() []Case {
	first := amqp.Table{"x-stream-offset": "first"}
	from := func(v any) amqp.Table { return amqp.Table{"x-stream-offset": v} }
	filtered := func(body string, value any) amqp.Publishing {
		return text(body, header("x-stream-filter-value", value))
	}
	refuse := func(c *C, durable, autoDelete, exclusive bool, args amqp.Table) string {
		c.Helper()
		return c.Refused(func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(c.Unique("q"), durable, autoDelete, exclusive, false, kindArgs(stream, args))
			return err
		})
	}
	refuseConsumer := func(c *C, q string, how consume) string {
		c.Helper()
		return c.Closed(func(ch *amqp.Channel) error {
			if how.Prefetch > 0 {
				if err := ch.Qos(how.Prefetch, 0, false); err != nil {
					return err
				}
			}
			_, err := ch.Consume(q, "", how.AutoAck, how.Exclusive, false, false, how.Args)
			return err
		})
	}
	return []Case{
		{"stream/declare", func(c *C) {
			c.Equal("transient", refuse(c, false, false, false, nil), "406 PRECONDITION_FAILED - invalid property 'non-durable' for queue 'q' in vhost '/'")
			c.Equal("auto-delete", refuse(c, true, true, false, nil), "406 PRECONDITION_FAILED - invalid property 'auto-delete' for queue 'q' in vhost '/'")
			c.Equal("exclusive", refuse(c, true, false, true, nil), "406 PRECONDITION_FAILED - invalid property 'exclusive-owner' for queue 'q' in vhost '/'")
			c.Equal("no name", c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclare("", true, false, false, false, kindArgs(stream, nil))
				return err
			}), "406 PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_stream_queue")
		}},
		{"stream/arguments of other queues", func(c *C) {
			for name, v := range map[string]any{
				"x-max-length": int32(5), "x-message-ttl": int32(5), "x-expires": int32(50000), "x-overflow": "drop-head", "x-dead-letter-exchange": "",
				"x-single-active-consumer": true, "x-max-priority": int32(3), "x-delivery-limit": int32(3), "x-quorum-initial-group-size": int32(1),
			} {
				c.Equal(name, refuse(c, true, false, false, amqp.Table{name: v}),
					"406 PRECONDITION_FAILED - invalid arg '"+name+"' for queue 'q' in vhost '/' of queue type rabbit_stream_queue")
			}
		}},
		{"stream/arguments", func(c *C) {
			invalid := func(name, reason string) string {
				return "406 PRECONDITION_FAILED - invalid arg '" + name + "' for queue 'q' in vhost '/': " + reason
			}
			const segment, age, size, filter = "x-stream-max-segment-size-bytes", "x-max-age", "x-max-length-bytes", "x-stream-filter-size-bytes"
			for _, a := range []struct {
				name   string
				value  any
				reason string
			}{
				{age, "1x", "invalid_max_age"}, {age, "5", "invalid_max_age"}, {age, "0s", "invalid_max_age"}, {age, "1.5h", "invalid_max_age"}, {age, int32(5), "{unacceptable_type,signedint}"},
				{size, int32(-1), "{value_negative,-1}"}, {size, "a", `"expected integer, got longstr"`},
				{segment, int32(-1), "{value_negative,-1}"}, {segment, "a", `"expected integer, got longstr"`},
				{"x-initial-cluster-size", int32(0), "{value_zero,0}"}, {"x-initial-cluster-size", "a", `"expected integer, got longstr"`},
				{"x-queue-leader-locator", "x", "invalid_queue_locator_arg"}, {"x-queue-leader-locator", int32(1), "{unacceptable_type,signedint}"},
			} {
				c.Equal(fmt.Sprint(a.name, " ", a.value), refuse(c, true, false, false, amqp.Table{a.name: a.value}), invalid(a.name, a.reason))
			}
			c.Equal("segments too large", refuse(c, true, false, false, amqp.Table{segment: int64(3_000_000_001)}),
				"406 PRECONDITION_FAILED - Exceeded max value for x-stream-max-segment-size-bytes")
			if !c.version.before(v40) {
				c.Equal("filter too small", refuse(c, true, false, false, amqp.Table{filter: int32(15)}), changedIn(v43,
					"406 PRECONDITION_FAILED - Invalid value for  x-stream-filter-size-bytes", "406 PRECONDITION_FAILED - Invalid value for x-stream-filter-size-bytes"))
			}
			c.Queue("q", stream, amqp.Table{
				age: "7D", size: int64(5_000_000_000), segment: int64(3_000_000_000), filter: int32(16), "x-initial-cluster-size": int32(1), "x-queue-leader-locator": "least-leaders",
			})
		}},
		{"stream/delivery mode is always told", func(c *C) {
			q := c.Queue("q", stream, nil)
			for _, mode := range []uint8{0, 1, 2} {
				c.Publish("", q, amqp.Publishing{DeliveryMode: mode})
			}
			k := c.Consume(q, consume{Prefetch: 3, Args: first})
			c.Equal("modes", fmt.Sprint(k.Next().DeliveryMode, k.Next().DeliveryMode, k.Next().DeliveryMode), changedIn(v40, "0 1 2", "1 1 2"))
		}},
		{"stream/declared again", func(c *C) {
			q := c.Queue("q", stream, amqp.Table{"x-max-age": "1h"})
			again := func(args amqp.Table) string {
				return c.Refused(func(ch *amqp.Channel) error {
					_, err := ch.QueueDeclare(q, true, false, false, false, kindArgs(stream, args))
					return err
				})
			}
			const inequivalent = "406 PRECONDITION_FAILED - inequivalent arg '%s' for queue 'q' in vhost '/': received %s but current is %s"
			c.Equal("the same", again(amqp.Table{"x-max-age": "1h"}), "")
			c.Equal("the same in minutes", again(amqp.Table{"x-max-age": "60m"}), changedIn(v43, fmt.Sprintf(inequivalent, "x-max-age", "'60m'", "'1h'"), ""))
			c.Equal("other age", again(amqp.Table{"x-max-age": "2h"}), changedIn(v43,
				fmt.Sprintf(inequivalent, "x-max-age", "'2h'", "'1h'"), fmt.Sprintf(inequivalent, "x-max-age", "'7200000'", "'3600000'")))
			c.Equal("no age", again(nil), changedIn(v43,
				fmt.Sprintf(inequivalent, "x-max-age", "none", "the value '1h' of type 'longstr'"), fmt.Sprintf(inequivalent, "x-max-age", "none", "the value '3600000' of type 'longstr'")))
			c.Equal("segment size", again(amqp.Table{"x-max-age": "1h", "x-stream-max-segment-size-bytes": int32(5000)}),
				fmt.Sprintf(inequivalent, "x-stream-max-segment-size-bytes", "the value '5000' of type 'signedint'", "none"))
			c.Equal("other type", c.Refused(func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclare(q, true, false, false, false, nil)
				return err
			}), changedIn(v40,
				fmt.Sprintf(inequivalent, "x-queue-type", "none", "the value 'stream' of type 'longstr'"), fmt.Sprintf(inequivalent, "x-queue-type", "'classic'", "'stream'")))
		}},
		{"stream/counts", func(c *C) {
			q := c.Queue("q", stream, nil)
			c.Fill(q, "a", "b", "c")
			k := c.Consume(q, consume{Prefetch: 10, Args: first})
			c.OK(lastOf(k, 3).Ack(true))
			c.ReadyBecomes(q, 3) // RabbitMQ counts every five seconds
			c.Equal("consumers", c.inspect(q).Consumers, 0)
		}},
		{"stream/delete has no conditions", func(c *C) {
			q := c.Queue("q", stream, nil)
			c.Fill(q, "a", "b")
			k := c.Consume(q, consume{Prefetch: 10})
			n, err := c.ch.QueueDelete(q, true, true, false)
			c.OK(err)
			c.Equal("messages", n, 0)
			select {
			case tag := <-k.cancelled:
				c.Equal("cancelled", tag, "q-consumer")
			case <-time.After(patience):
				c.Fatalf("the consumer was not cancelled")
			}
		}},
		{"stream/what is not offered", func(c *C) {
			q := c.Queue("q", stream, nil)
			c.Equal("get", c.Closed(func(ch *amqp.Channel) error { _, _, err := ch.Get(q, true); return err }),
				"540 NOT_IMPLEMENTED - basic.get not supported by stream queues queue 'q' in vhost '/'")
			c.Equal("purge", c.Closed(func(ch *amqp.Channel) error { _, err := ch.QueuePurge(q, false); return err }),
				"540 NOT_IMPLEMENTED - queue.purge not supported by stream queues queue 'q' in vhost '/'")
			noPrefetch := changedIn(v40, "406 PRECONDITION_FAILED - consumer prefetch count is not set for 'queue 'q' in vhost '/''",
				"406 PRECONDITION_FAILED - consumer prefetch count is not set for stream queue 'q' in vhost '/'")
			c.Equal("no prefetch", refuseConsumer(c, q, consume{}), noPrefetch)
			c.Equal("no ack", refuseConsumer(c, q, consume{Prefetch: 1, AutoAck: true}), changedIn(v40,
				"540 NOT_IMPLEMENTED - automatic acknowledgement not supported by stream queues queue 'q' in vhost '/'",
				"540 NOT_IMPLEMENTED - automatic acknowledgement not supported by stream queue 'q' in vhost '/'"))
			c.Equal("neither", refuseConsumer(c, q, consume{AutoAck: true}), noPrefetch)
			c.Equal("prefetch of the channel", c.Refused(func(ch *amqp.Channel) error {
				if err := ch.Qos(5, 0, true); err != nil {
					return err
				}
				_, err := ch.Consume(q, "", false, false, false, false, nil)
				return err
			}), changedIn(v43, noPrefetch, "")) // 4.3 takes it for that of each consumer
		}},
		{"stream/arguments of consumers", func(c *C) {
			q := c.Queue("q", stream, nil)
			invalid := func(value string) string {
				return "406 PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'q' in vhost '/': {invalid_stream_offset_arg,{longstr,<<" + value + ">>}}"
			}
			offset := func(v any) string { return refuseConsumer(c, q, consume{Prefetch: 5, Args: from(v)}) }
			for _, v := range []any{"first", "last", "next", int32(5), int64(-1), "1h", "10s", moment} {
				c.Equal(fmt.Sprint(v), offset(v), "")
			}
			c.Equal("digits", offset("5"), invalid(`"5"`))
			c.Equal("wrong unit", offset("1x"), invalid(`"1x"`))
			if !c.version.before(v43) { // before it fails inside
				c.Equal("a word", offset("x"), invalid(`"x"`))
				c.Equal("empty", offset(""), invalid(""))
			}
			c.Equal("priority", refuseConsumer(c, q, consume{Prefetch: 5, Args: amqp.Table{"x-priority": int32(5)}}),
				"406 PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/' of queue type rabbit_stream_queue")
			for _, kind := range []string{classic, quorum} {
				other := c.Queue("other-"+kind, kind, nil)
				c.Equal("on "+kind, refuseConsumer(c, other, consume{Args: first}),
					"406 PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'other-"+kind+"' in vhost '/' of queue type rabbit_"+kind+"_queue")
			}
		}},
		{"stream/exclusive consumers are not alone", func(c *C) {
			q := c.Queue("q", stream, nil)
			a := c.Consume(q, consume{Prefetch: 5, Exclusive: true})
			b := c.Consume(q, consume{Prefetch: 5, Exclusive: true})
			c.Fill(q, "x")
			c.Equal("both", a.Bodies(1)[0]+b.Bodies(1)[0], "xx")
		}},
		{"stream/offsets", func(c *C) {
			q := c.Queue("q", stream, nil)
			c.Fill(q, "0", "1", "2", "3", "4")
			for _, o := range []struct {
				from any
				want string
			}{
				{"first", "0 1 2"}, {"last", "4"}, {int64(2), "2 3 4"}, {int64(0), "0 1 2"}, {int64(-3), "0 1 2"}, {"1h", "0 1 2"},
				{time.Now().Add(-time.Hour), "0 1 2"},
			} {
				k := c.Consume(q, consume{Prefetch: 3, Args: from(o.from)})
				c.Equal(fmt.Sprint(o.from), strings.Join(k.Bodies(strings.Count(o.want, " ")+1), " "), o.want)
				k.Stop()
			}
		}},
		{"stream/offsets at the end", func(c *C) {
			q := c.Queue("q", stream, nil)
			c.Fill(q, "0", "1", "2")
			consumers := map[string]*Consumer{
				"3 4 5": c.Consume(q, consume{Prefetch: 5}),
				"5":     c.Consume(q, consume{Prefetch: 5, Args: from(int64(5))}), // is waited for
			}
			next := c.Consume(q, consume{Prefetch: 5, Args: from("next")})
			future := c.Consume(q, consume{Prefetch: 5, Args: from(time.Now().Add(time.Hour))})
			c.Fill(q, "3", "4", "5")
			for want, k := range consumers {
				c.Equal("from "+want[:1], strings.Join(k.Bodies(strings.Count(want, " ")+1), " "), want)
			}
			c.Equal("next", next.Bodies(3), []string{"3", "4", "5"})
			c.Equal("a time to come", future.Bodies(3), []string{"3", "4", "5"})
		}},
		{"stream/delivery", func(c *C) {
			q := c.Queue("q", stream, nil)
			p := amqp.Publishing{
				Body: []byte("a"), ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp.Persistent, Priority: 3, CorrelationId: "c", ReplyTo: "r",
				Expiration: "100000", MessageId: "m", Timestamp: moment, Type: "t", UserId: "guest", AppId: "app",
				Headers: amqp.Table{"word": "s", "number": int64(6), "yes": true, "x-own": "o", "x-stream-offset": int64(77)},
			}
			c.Publish("", q, p)
			c.Publish("", q, amqp.Publishing{Body: []byte("b")})
			k := c.Consume(q, consume{Prefetch: 5, Args: first})
			d := k.Next()
			c.Equal("headers", d.Headers, amqp.Table{"word": "s", "number": int64(6), "yes": true, "x-own": "o", "x-stream-offset": int64(0)})
			c.Equal("properties", fmt.Sprint(d.ContentType, d.ContentEncoding, d.DeliveryMode, d.Priority, d.CorrelationId, d.ReplyTo, d.Expiration, d.MessageId, d.Timestamp.Unix(), d.Type, d.UserId, d.AppId),
				fmt.Sprint(p.ContentType, p.ContentEncoding, p.DeliveryMode, p.Priority, p.CorrelationId, p.ReplyTo, p.Expiration, p.MessageId, p.Timestamp.Unix(), p.Type, p.UserId, p.AppId))
			c.Equal("second", k.Next().Headers, amqp.Table{"x-stream-offset": int64(1)})
			c.Equal("redelivered", d.Redelivered, false)
		}},
		{"stream/every consumer gets everything", func(c *C) {
			q := c.Queue("q", stream, nil)
			c.Fill(q, "a", "b")
			for range 2 {
				k := c.Consume(q, consume{Prefetch: 5, Args: first})
				d := k.Next()
				c.OK(k.Next().Ack(true))
				c.Equal("first", string(d.Body)+fmt.Sprint(d.Redelivered), "afalse")
				k.Stop()
			}
		}},
		{"stream/acks give credit", func(c *C) {
			q := c.Queue("q", stream, nil)
			c.Fill(q, "0", "1", "2", "3", "4", "5", "6")
			k := c.Consume(q, consume{Prefetch: 2, Args: first})
			a, b := k.Next(), k.Next()
			k.None(100 * time.Millisecond)
			c.OK(a.Ack(false))
			c.Equal("after an ack", k.Bodies(1), []string{"2"})
			c.OK(b.Ack(false))
			d := k.Next()
			c.Equal("after another", string(d.Body), "3")
			c.OK(d.Ack(true))
			c.Equal("after two with multiple", k.Bodies(2), []string{"4", "5"})
		}},
		{"stream/requeue and reject only give credit", func(c *C) {
			if c.version.before(v40) {
				c.Skip("3.10 fails inside on a requeue")
			}
			q := c.Queue("q", stream, nil)
			c.Fill(q, "0", "1", "2", "3", "4", "5")
			k := c.Consume(q, consume{Prefetch: 2, Args: first})
			a, b := k.Next(), k.Next()
			c.OK(a.Nack(false, true))
			c.Equal("after a nack with requeue", k.Bodies(1), []string{"2"})
			c.OK(b.Reject(false))
			c.Equal("after a reject", k.Bodies(1), []string{"3"})
			c.OK(k.ch.Recover(true))
			c.Equal("after recover", k.Bodies(2), []string{"4", "5"})
		}},
		{"stream/filter", func(c *C) {
			if c.version.before(v40) {
				c.Skip("filters are new in 3.13")
			}
			q := c.Queue("q", stream, nil)
			for _, p := range []amqp.Publishing{filtered("a0", "a"), filtered("b1", "b"), text("u2"), filtered("a3", "a"), filtered("c4", "c"), text("end", header("x-stream-filter-value", "end"))} {
				c.Publish("", q, p) // one at a time, so that each is a chunk of its own
			}
			for _, f := range []struct {
				args amqp.Table
				want string
			}{
				{amqp.Table{"x-stream-filter": "a"}, "a0 a3"},
				{amqp.Table{"x-stream-filter": []any{"a", "c", "end"}}, "a0 a3 c4 end"},
				{amqp.Table{"x-stream-filter": []any{"c", "end"}, "x-stream-match-unfiltered": true}, "u2 c4 end"},
				{amqp.Table{"x-stream-match-unfiltered": true}, "a0 b1 u2 a3 c4 end"},
			} {
				f.args["x-stream-offset"] = "first"
				k := c.Consume(q, consume{Prefetch: 10, Args: f.args})
				c.Equal(fmt.Sprint(f.args), strings.Join(k.Bodies(strings.Count(f.want, " ")+1), " "), f.want)
				k.Stop()
			}
		}},
		{"stream/retention by size", func(c *C) {
			q := c.Queue("q", stream, amqp.Table{"x-max-length-bytes": int64(300_000), "x-stream-max-segment-size-bytes": int64(100_000)})
			big := strings.Repeat("x", 10_000)
			n := 0
			c.Eventually("a first offset above 0", func() bool {
				for range 20 {
					c.Publish("", q, text(strconv.Itoa(n)+" "+big))
					n++
				}
				k := c.Consume(q, consume{Prefetch: 1, Args: first})
				defer k.Stop()
				d := k.Next()
				oldest, _, _ := strings.Cut(string(d.Body), " ")
				offset, _ := d.Headers["x-stream-offset"].(int64)
				if number, err := strconv.ParseInt(oldest, 10, 64); err != nil || number > offset { // RabbitMQ's own records take offsets too
					c.Fatalf("offset %d has message %s", offset, oldest)
				}
				return offset > 0
			})
			k := c.Consume(q, consume{Prefetch: 1, Args: from("last")})
			c.Equal("the last one stays", strings.HasPrefix(string(k.Next().Body), strconv.Itoa(n-1)+" "), true)
		}},
		{"stream/the current segment stays", func(c *C) {
			q := c.Queue("q", stream, amqp.Table{"x-max-length-bytes": int64(1), "x-max-age": "1s"})
			c.Fill(q, "a", "b", "c")
			c.Equal("all", c.Consume(q, consume{Prefetch: 5, Args: first}).Bodies(3), []string{"a", "b", "c"})
		}},
		{"stream/dead letters go there", func(c *C) {
			if c.version.before(v40) {
				c.Skip("streams take dead letters since 3.12")
			}
			s := c.Queue("s", stream, nil)
			q := c.Queue("q", quorum, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": s})
			c.Fill(q, "a")
			c.OK(c.Get(q).Reject(false))
			d := c.Consume(s, consume{Prefetch: 1, Args: first}).Next()
			c.Equal("dead", string(d.Body)+" "+fmt.Sprint(d.Headers["x-stream-offset"]), "a 0")
			c.Equal("deaths", shortDeaths(d), "q:rejected:1")
		}},
		{"stream/exchanges lead there", func(c *C) {
			x := c.Exchange("x", "topic", nil)
			s, q := c.Queue("s", stream, nil), c.Queue("q", classic, nil)
			c.Bind(s, "a.#", x, nil)
			c.Bind(q, "a.b", x, nil)
			c.Publish(x, "a.b", text("m", ttl(time.Millisecond)))
			d := c.Consume(s, consume{Prefetch: 1, Args: first}).Next()
			c.Equal("delivery", string(d.Body)+" "+d.Exchange+" "+d.RoutingKey, "m x a.b")
			c.Equal("returned", c.Returned(x, "b", text("m")), "312 NO_ROUTE x/b m")
		}},
		{"stream/in order at speed", func(c *C) {
			q := c.Queue("q", stream, nil)
			const n = 2000
			ch := c.publisher().ch
			var last *amqp.DeferredConfirmation
			for i := range n {
				var err error
				last, err = ch.PublishWithDeferredConfirm("", q, false, false, text(strconv.Itoa(i)))
				c.OK(err)
			}
			if !last.Wait() {
				c.Fatalf("nacked")
			}
			k := c.Consume(q, consume{Prefetch: 100, Args: first})
			for i := range n {
				d := k.Next()
				if string(d.Body) != strconv.Itoa(i) || d.Headers["x-stream-offset"] != int64(i) {
					c.Fatalf("number %d is %q at %v", i, d.Body, d.Headers["x-stream-offset"])
				}
				c.OK(d.Ack(false))
			}
		}},
	}
}

// lastOf takes n deliveries and returns the last.
func lastOf(k *Consumer, n int) amqp.Delivery {
	k.c.Helper()
	for range n - 1 {
		k.Next()
	}
	return k.Next()
}
