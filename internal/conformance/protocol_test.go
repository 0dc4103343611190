package conformance

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/wire"
)

func protocolCases() []Case {
	return slices.Concat(handshakeCases(), frameCases(), channelCases(), tableCases())
}

func handshakeCases() []Case {
	var cases []Case
	quoted := strconv.Quote(wire.ProtocolHeader)
	amqp10 := `"AMQP\x03\x01\x00\x00"` // what 4.x would rather speak
	for name, h := range map[string]struct {
		octets string
		want   any
	}{
		"HTTP":         {"GET / HTTP/1.1\r\n\r\n", changedIn(v40, quoted, amqp10)},
		"version 0-10": {"AMQP\x01\x01\x00\x0a", changedIn(v40, quoted, amqp10)},
		"version 0-9":  {"AMQP\x00\x00\x09\x00", quoted},
	} {
		cases = append(cases, Case{"handshake/protocol header of " + name, func(c *C) {
			r := c.Socket()
			r.Write([]byte(h.octets))
			got := make([]byte, 8)
			_, err := io.ReadFull(r.conn, got)
			c.OK(err)
			want := h.want
			if c.Deviates("it speaks AMQP 0-9-1 only, and says so") {
				want = quoted
			}
			c.Equal("answer", strconv.Quote(string(got)), want)
		}})
	}
	tuned := func(name string, tune wire.ConnectionTuneOk, accepted bool) Case {
		return Case{"handshake/tune " + name, func(c *C) {
			r := c.Tuned()
			r.Send(0, &tune, &wire.ConnectionOpen{VirtualHost: "/"})
			if accepted {
				r.Expect("connection.open-ok")
			} else {
				r.Ends()
			}
		}}
	}
	// A client that is not yet in is turned away without a word, but for a wrong password.
	return append(cases, []Case{
		tuned("with small frames", wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 100}, false),
		tuned("with large frames", wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 1 << 30}, false),
		tuned("with unlimited frames", wire.ConnectionTuneOk{ChannelMax: 100}, false),
		tuned("with too many channels", wire.ConnectionTuneOk{ChannelMax: 65535, FrameMax: 8192}, false),
		tuned("with unlimited channels", wire.ConnectionTuneOk{FrameMax: 8192}, false),
		{"handshake/tune with frames of 4096", func(c *C) {
			r := c.Tuned()
			r.Send(0, &wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 4096}, &wire.ConnectionOpen{VirtualHost: "/"})
			want := any(changedIn(v43, "connection.open-ok", "end"))
			if c.Deviates("the least that AMQP 0-9-1 asks for is 4096, and older clients choose it") {
				want = "connection.open-ok"
			}
			c.Equal("answer", r.Next(), want)
		}},
		tuned("as wished", wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: 8192, Heartbeat: 60}, true),
		{"handshake/what the broker is", func(c *C) {
			p := c.conn.Properties
			caps, _ := p["capabilities"].(amqp.Table)
			for _, name := range []string{
				"authentication_failure_close", "basic.nack", "connection.blocked", "consumer_cancel_notify", "consumer_priorities", "direct_reply_to",
				"exchange_exchange_bindings", "per_consumer_qos", "publisher_confirms",
			} {
				c.Equal(name, caps[name], true)
			}
		}},
		{"handshake/wrong password", func(c *C) {
			r := c.Started()
			r.Send(0, login("wrong"))
			c.Equal("answer", r.Next(), "connection.close 403 ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile. (0,0)")
		}},
		{"handshake/unknown mechanism", func(c *C) {
			r := c.Started()
			ok := login("guest")
			ok.Mechanism = "MAGIC"
			r.Send(0, ok)
			r.Ends()
		}},
		{"handshake/ANONYMOUS", func(c *C) {
			if c.version.before(v40) {
				c.Skip("it does not know the mechanism")
			}
			r := c.Started()
			ok := login("")
			ok.Mechanism, ok.Response = "ANONYMOUS", ""
			r.Send(0, ok)
			c.Equal("answer", r.Next(), "connection.tune")
		}},
		{"handshake/PLAIN for somebody else", func(c *C) {
			r := c.Started()
			ok := login("guest")
			ok.Response = "ann" + ok.Response
			ok.ClientProperties = nil
			r.Send(0, ok)
			r.Ends()
		}},
		{"handshake/AMQPLAIN", func(c *C) {
			r := c.Started()
			ok := login("")
			ok.Mechanism = "AMQPLAIN"
			ok.Response = string(wire.Table{{Name: "LOGIN", Value: "guest"}, {Name: "PASSWORD", Value: "guest"}}.AppendTo(nil))
			r.Send(0, ok)
			c.Equal("answer", r.Next(), "connection.tune")
		}},
		{"handshake/unknown virtual host", func(c *C) {
			r := c.Tuned()
			r.Send(0, &wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 8192}, &wire.ConnectionOpen{VirtualHost: "nowhere"})
			c.Equal("answer", r.Next(), "connection.close 530 NOT_ALLOWED - vhost nowhere not found (10,40)")
		}},
		{"handshake/close is answered", func(c *C) {
			r := c.Opened()
			r.Send(0, &wire.ConnectionClose{ReplyCode: 200})
			c.Equal("answer", r.Next(), "connection.close-ok")
		}},
	}...)
}

func frameCases() []Case {
	raw := func(name string, octets func(c *C) []byte, want any) Case {
		return Case{"frame/" + name, func(c *C) {
			r := c.Opened()
			r.Write(octets(c))
			c.Equal("answer", r.Next(), want)
		}}
	}
	unknown := func(name string, class, method byte) Case {
		return Case{"frame/" + name, func(c *C) {
			r := c.Opened()
			r.Write([]byte{1, 0, 1, 0, 0, 0, 4, 0, class, 0, method, wire.FrameEnd})
			r.Ends()
		}}
	}
	method := func(channel uint16, ms ...wire.Method) []byte {
		var b []byte
		for _, m := range ms {
			b = wire.AppendMethod(b, channel, m)
		}
		return b
	}
	publish := &wire.BasicPublish{RoutingKey: []byte("nowhere")}
	fixed := func(b []byte) func(*C) []byte { return func(*C) []byte { return b } }
	return []Case{
		raw("wrong end octet", fixed([]byte{8, 0, 0, 0, 0, 0, 0, 'x'}),
			"connection.close 501 FRAME_ERROR - type 8, all octets = <<>>: {invalid_frame_end_marker,120} (0,0)"),
		raw("larger than negotiated", func(*C) []byte {
			b := binary.BigEndian.AppendUint32([]byte{wire.FrameBody, 0, 1}, 20000)
			return append(b, make([]byte, 20001)...)
		},
			"connection.close 501 FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,20000,8184} (0,0)"),
		raw("unknown type", fixed([]byte{9, 0, 1, 0, 0, 0, 0, wire.FrameEnd}),
			"connection.close 501 FRAME_ERROR - type 9, all octets = <<>>: unknown_frame (0,0)"),
		raw("queue name that is no UTF-8", fixed(method(1, &wire.QueueDeclare{Queue: "a\xff"})),
			"connection.close 501 FRAME_ERROR - Malformed UTF-8 in shortstr (0,0)"),
		raw("routing key that is no UTF-8", fixed(append(
			wire.AppendHeader(method(1, &wire.BasicPublish{RoutingKey: []byte("a\xff")}), 1, 0, []byte{0, 0}),
			method(1, &wire.ChannelClose{})...)), "channel.close-ok"),
		raw("basic.return of a client that is malformed", fixed([]byte{1, 0, 1, 0, 0, 0, 5, 0, 60, 0, 50, 255, wire.FrameEnd}),
			"connection.close 501 FRAME_ERROR - cannot decode <<255>> (60,50)"),
		{"frame/method on channel 0 that is malformed", func(c *C) {
			r := c.Opened()
			r.Write([]byte{1, 0, 0, 0, 0, 0, 5, 0, 10, 0, 70, 255, wire.FrameEnd})
			want := "connection.close 541 INTERNAL_ERROR (0,0)"
			if c.Deviates("it says what is wrong, as on every other channel") {
				want = "connection.close 501 FRAME_ERROR - cannot decode <<255>> (10,70)"
			}
			c.Equal("answer", r.Next(), want)
		}},
		unknown("unknown class", 99, 1),
		unknown("unknown method", 60, 99),
		raw("body instead of a method", fixed(wire.AppendBody(nil, 1, 8192, []byte("x"))),
			"connection.close 505 UNEXPECTED_FRAME - expected method frame, got non method frame instead (0,0)"),
		raw("method instead of a content header", func(*C) []byte { return method(1, publish, publish) },
			"connection.close 505 UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead (60,40)"),
		raw("content header of another class", func(*C) []byte {
			b := method(1, publish)
			h := wire.AppendHeader(nil, 1, 0, wire.Properties{}.AppendTo(nil))
			binary.BigEndian.PutUint16(h[7:], 50)
			return append(b, h...)
		}, "connection.close 505 UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead (60,40)"),
		raw("method instead of a body", func(*C) []byte {
			return append(wire.AppendHeader(method(1, publish), 1, 10, wire.Properties{}.AppendTo(nil)), method(1, publish)...)
		}, "connection.close 505 UNEXPECTED_FRAME - expected content body, got non content body frame instead (60,40)"),
		raw("channel method on channel 0", fixed(method(0, &wire.BasicQos{})),
			"connection.close 504 CHANNEL_ERROR - unexpected method in connection state running (60,10)"),
		raw("connection method on a channel", fixed(method(1, &wire.ConnectionOpen{VirtualHost: "/"})), "connection.close 503 COMMAND_INVALID - unimplemented method (10,40)"),
		raw("heartbeat on channel 0 is silent", func(*C) []byte { return append(wire.AppendHeartbeat(nil), method(1, &wire.BasicQos{})...) }, "basic.qos-ok"),
		raw("body in several frames", func(c *C) []byte {
			b := wire.AppendHeader(method(1, publish), 1, 2, wire.Properties{}.AppendTo(nil))
			b = wire.AppendBody(b, 1, 8192, []byte("a"))
			b = wire.AppendBody(b, 1, 8192, []byte("b"))
			return append(b, method(1, &wire.BasicQos{})...)
		}, "basic.qos-ok"),
		raw("more body than announced", func(c *C) []byte {
			b := wire.AppendHeader(method(1, publish), 1, 1, wire.Properties{}.AppendTo(nil))
			return append(wire.AppendBody(b, 1, 8192, []byte("ab")), method(1, &wire.BasicQos{})...)
		}, changedIn(v43, "connection.close 505 UNEXPECTED_FRAME - expected content body, got non content body frame instead (60,40)",
			"connection.close 501 FRAME_ERROR - content body frame exceeds remaining content size (60,40)")),
	}
}

func channelCases() []Case {
	return []Case{
		{"channel/opened twice", func(c *C) {
			r := c.Opened()
			r.Send(1, &wire.ChannelOpen{})
			c.Equal("answer", r.Next(), "connection.close 504 CHANNEL_ERROR - second 'channel.open' seen (20,10)")
		}},
		{"channel/used without being opened", func(c *C) {
			r := c.Opened()
			r.Send(7, &wire.BasicQos{})
			c.Equal("answer", r.Next(), "connection.close 504 CHANNEL_ERROR - expected 'channel.open' (60,10)")
		}},
		{"channel/more than negotiated", func(c *C) {
			r := c.Tuned()
			r.Send(0, &wire.ConnectionTuneOk{ChannelMax: 2, FrameMax: 8192}, &wire.ConnectionOpen{VirtualHost: "/"})
			r.Expect("connection.open-ok")
			r.Send(1, &wire.ChannelOpen{})
			r.Expect("channel.open-ok")
			r.Send(2000, &wire.ChannelOpen{}) // the number does not matter, how many does
			r.Expect("channel.open-ok")
			r.Send(3, &wire.ChannelOpen{})
			c.Equal("answer", r.Next(), "connection.close 530 NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2) (0,0)")
		}},
		{"channel/closed and opened again", func(c *C) {
			r := c.Opened()
			r.Send(1, &wire.ChannelClose{ReplyCode: 200})
			r.Expect("channel.close-ok")
			r.Send(1, &wire.ChannelOpen{})
			c.Equal("answer", r.Next(), "channel.open-ok")
		}},
		{"channel/used after close", func(c *C) {
			r := c.Opened()
			r.Send(1, &wire.ChannelClose{ReplyCode: 200})
			r.Expect("channel.close-ok")
			r.Send(1, &wire.BasicQos{})
			c.Equal("answer", r.Next(), "connection.close 504 CHANNEL_ERROR - expected 'channel.open' (60,10)")
		}},
		{"channel/closed by the broker ignores what follows until close-ok", func(c *C) {
			r := c.Opened()
			r.Send(1, &wire.BasicAck{DeliveryTag: 1}, &wire.BasicQos{}, &wire.BasicAck{DeliveryTag: 2})
			c.Equal("answer", r.Next(), "channel.close 406 PRECONDITION_FAILED - unknown delivery tag 1 (60,80)")
			r.Send(1, &wire.BasicQos{}, &wire.ChannelCloseOk{}, &wire.ChannelOpen{})
			c.Equal("after close-ok", r.Next(), "channel.open-ok")
		}},
		{"channel/exception names class and method", func(c *C) {
			r := c.Opened()
			r.Send(1, &wire.QueueDeclare{Queue: c.Unique("q"), Passive: true})
			c.Equal("answer", r.Next(), "channel.close 404 NOT_FOUND - no queue 'q' in vhost '/' (50,10)")
		}},
		{"channel/access request", func(c *C) {
			r := c.Opened()
			r.Send(1, &wire.AccessRequest{Realm: "/data"})
			c.Equal("answer", r.Next(), "access.request-ok")
		}},
		{"channel/declare without waiting", func(c *C) {
			r := c.Opened()
			q := c.Unique("q")
			c.deleteLater(func(ch *amqp.Channel) error { return deleteQueue(ch, q) })
			r.Send(1, &wire.QueueDeclare{Queue: q, Durable: true, NoWait: true}, &wire.BasicQos{})
			c.Equal("answer", r.Next(), "basic.qos-ok")
			c.Equal("ready", c.Ready(q), 0)
		}},
		{"channel/unsupported recover-async", func(c *C) {
			r := c.Opened()
			r.Send(1, &wire.BasicRecoverAsync{Requeue: true}, &wire.BasicQos{})
			c.Equal("answer", r.Next(), "basic.qos-ok")
		}},
		{"channel/mandatory return comes before the confirm", func(c *C) {
			r := c.Opened()
			r.Send(1, &wire.ConfirmSelect{})
			r.Expect("confirm.select-ok")
			b := wire.AppendMethod(nil, 1, &wire.BasicPublish{RoutingKey: []byte("nowhere"), Mandatory: true})
			b = wire.AppendHeader(b, 1, 1, wire.Properties{}.AppendTo(nil))
			r.Write(wire.AppendBody(b, 1, 8192, []byte("x")))
			c.Equal("frames", strings.Join([]string{r.Next(), r.Next(), r.Next(), r.Next()}, ", "), "basic.return 312 NO_ROUTE, header, body, basic.ack")
		}},
	}
}

// untouched expects the headers as the client sent them of 3.x and of the embedded broker, which does not rewrite what
// it passes on; 4.x sorts them and keeps the first of a name.
func (c *C) untouched(as, sorted string) any {
	if c.Deviates("headers that the broker adds nothing to are passed on as they came, which is the older behaviour, loses nothing and costs nothing") {
		return as
	}
	return changedIn(v40, as, sorted)
}

// Ends fails the case unless the connection ends. RabbitMQ closes the socket without a word where the embedded broker may
// say why.
func (r *Raw) Ends() {
	r.c.Helper()
	got := r.Next()
	if strings.HasPrefix(got, "connection.close 5") && r.c.Deviates("it says why it closes the connection, where RabbitMQ closes the socket without a word") {
		got = "end"
	}
	r.c.Equal("answer", got, "end")
}

// tableCases look at the order and types of tables, which clients do not show.
func tableCases() []Case {
	headers := func(fields ...wire.Field) wire.Properties {
		return wire.Properties{Flags: wire.FlagHeaders | wire.FlagDeliveryMode, DeliveryMode: 2, Headers: fields}
	}
	field := func(name string, value any) wire.Field { return wire.Field{Name: name, Value: value} }
	return []Case{
		{"table/type L is passed on as l", func(c *C) {
			q := c.Queue("q", classic, nil)
			r := c.Opened()
			table := wire.Table{field("a", int64(-7)), field("b", wire.Table{field("c", []any{int64(9)})})}.AppendTo(nil)
			for i := range table {
				if table[i] == 'l' {
					table[i] = 'L'
				}
			}
			b := wire.AppendMethod(nil, 1, &wire.BasicPublish{RoutingKey: []byte(q)})
			properties := append(binary.BigEndian.AppendUint32([]byte{0x20, 0}, uint32(len(table))), table...)
			r.Write(wire.AppendHeader(b, 1, 0, properties))
			c.ReadyBecomes(q, 1)
			r.Send(1, &wire.BasicGet{Queue: q, NoAck: true})
			r.Expect("basic.get-ok")
			f := r.frame()
			c.Equal("letters", fmt.Sprint(bytes.Count(f.Payload, []byte("L")), bytes.Count(f.Payload, []byte("l"))), changedIn(v40, "2 0", "0 2"))
		}},
		{"table/order of the headers", func(c *C) {
			q := c.Queue("q", classic, nil)
			r := c.Opened()
			r.Publish("", q, headers(field("zebra", "1"), field("Alpha", "2"), field("mid", "3"), field("zebra", "4")), "x")
			c.ReadyBecomes(q, 1)
			var got []string
			for _, f := range r.Headers(q) {
				got = append(got, fmt.Sprintf("%s=%v", f.Name, f.Value))
			}
			c.Equal("headers", strings.Join(got, " "), c.untouched("zebra=1 Alpha=2 mid=3 zebra=4", "Alpha=2 mid=3 zebra=1"))
		}},
		{"table/every type arrives as it was sent", func(c *C) {
			q := c.Queue("q", classic, nil)
			r := c.Opened()
			sent := wire.Table{
				field("t", true), field("b", int8(-1)), field("B", uint8(200)), field("s", int16(-300)), field("u", uint16(60000)), field("I", int32(-70000)),
				field("i", uint32(4000000000)), field("l", int64(-5000000000)), field("f", float32(1.5)), field("d", 2.5), field("S", "s"),
				field("A", []any{int32(1), "x"}), field("T", wire.Timestamp(1700000000)), field("F", wire.Table{field("b", "1"), field("a", "2")}), field("V", nil),
				field("x", []byte{0, 255}),
			}
			r.Publish("", q, headers(sent...), "x")
			c.ReadyBecomes(q, 1)
			got := r.Headers(q)
			byName := func(a, b wire.Field) int { return strings.Compare(a.Name, b.Name) }
			slices.SortFunc(got, byName)
			slices.SortFunc(sent, byName)
			c.Equal("table", fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", sent))
		}},
		{"table/dead letter sorts the headers", func(c *C) {
			q, dead := c.DeadLetters(classic, nil)
			r := c.Opened()
			r.Publish("", q, headers(field("zebra", "1"), field("Alpha", "2"), field("x-first-death-queue", "mine"), field("y", nil)), "x")
			c.ReadyBecomes(q, 1)
			c.OK(c.Get(q).Reject(false))
			c.ReadyBecomes(dead, 1)
			c.Equal("names", names(r.Headers(dead)), changedIn(v40, "Alpha x-death x-first-death-exchange x-first-death-queue x-first-death-reason y zebra",
				"Alpha x-death x-first-death-exchange x-first-death-queue x-first-death-reason x-last-death-exchange x-last-death-queue x-last-death-reason y zebra"))
		}},
		{"table/dead letter of a message without headers", func(c *C) {
			q, dead := c.DeadLetters(classic, nil)
			r := c.Opened()
			r.Publish("", q, wire.Properties{Flags: wire.FlagDeliveryMode, DeliveryMode: 2}, "x")
			c.ReadyBecomes(q, 1)
			c.OK(c.Get(q).Reject(false))
			c.ReadyBecomes(dead, 1)
			c.Equal("names", names(r.Headers(dead)), changedIn(v40, "x-death x-first-death-exchange x-first-death-queue x-first-death-reason",
				"x-death x-first-death-exchange x-first-death-queue x-first-death-reason x-last-death-exchange x-last-death-queue x-last-death-reason"))
		}},
		{"table/dead letter of a message with a header twice", func(c *C) {
			q, dead := c.DeadLetters(classic, nil)
			r := c.Opened()
			r.Publish("", q, headers(field("h", "1"), field("h", "2"), field("h", "1")), "x")
			c.ReadyBecomes(q, 1)
			c.OK(c.Get(q).Reject(false))
			c.ReadyBecomes(dead, 1)
			var got []string
			for _, f := range r.Headers(dead) {
				if f.Name == "h" {
					got = append(got, fmt.Sprint(f.Value))
				}
			}
			c.Equal("values", strings.Join(got, " "), changedIn(v40, "1 2 1", "1"))
		}},
		{"table/fields of an x-death entry", func(c *C) {
			q, dead := c.DeadLetters(classic, nil)
			c.Publish("", q, text("a", expiration("10")))
			c.ReadyBecomes(dead, 1)
			v, _ := c.Opened().Headers(dead).Get("x-death")
			var got []string
			for _, f := range v.([]any)[0].(wire.Table) {
				got = append(got, f.Name+" "+wire.TypeName(f.Value))
			}
			c.Equal("fields", got, changedIn(v40,
				[]string{"count long", "reason longstr", "queue longstr", "time timestamp", "exchange longstr", "routing-keys array", "original-expiration longstr"},
				[]string{"original-expiration longstr", "count long", "reason longstr", "queue longstr", "time timestamp", "exchange longstr", "routing-keys array"}))
		}},
		{"table/returned counts sort the headers", func(c *C) {
			q := c.Queue("q", quorum, nil)
			r := c.Opened()
			r.Publish("", q, headers(field("zebra", "1"), field("Alpha", "2")), "x")
			c.ReadyBecomes(q, 1)
			c.OK(c.Get(q).Reject(true))
			c.ReadyBecomes(q, 1)
			c.Equal("names", names(r.Headers(q)), changedIn(v43,
				"Alpha x-delivery-count zebra", "Alpha x-acquired-count x-delivery-count zebra"))
		}},
		{"table/BCC is taken out in place", func(c *C) {
			q := c.Queue("q", classic, nil)
			r := c.Opened()
			r.Publish("", q, headers(field("zebra", "1"), field("BCC", []any{"nobody"}), field("CC", []any{}), field("Alpha", "2")), "x")
			c.ReadyBecomes(q, 1)
			c.Equal("names", names(r.Headers(q)), c.untouched("zebra CC Alpha", "Alpha CC zebra"))
		}},
		{"table/BCC alone leaves an empty table", func(c *C) {
			q := c.Queue("q", classic, nil)
			r := c.Opened()
			r.Publish("", q, headers(field("BCC", []any{"nobody"})), "x")
			c.ReadyBecomes(q, 1)
			p := r.Properties(q)
			c.Equal("has headers", p.Has(wire.FlagHeaders), true)
		}},
		{"table/priority 0 is lower than none on quorum", func(c *C) {
			q := c.Queue("q", quorum, nil)
			r := c.Opened()
			r.Publish("", q, wire.Properties{Flags: wire.FlagPriority, Priority: 0, MessageID: "0"}, "zero")
			r.Publish("", q, wire.Properties{}, "none")
			r.Publish("", q, wire.Properties{Flags: wire.FlagPriority, Priority: 4}, "four")
			c.ReadyBecomes(q, 3)
			c.Equal("order", c.Bodies(q, 3), changedIn(v43, []string{"zero", "none", "four"}, []string{"none", "four", "zero"}))
		}},
	}
}
