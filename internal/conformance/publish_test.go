package conformance

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

func publishCases() []Case {
	publish := func(exchange, key string, p amqp.Publishing) func(ch *amqp.Channel) error {
		return func(ch *amqp.Channel) error { return ch.Publish(exchange, key, false, false, p) }
	}
	return slices.Concat(
		both("publish/properties arrive unchanged", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Publish("", q, amqp.Publishing{
				ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp.Persistent, Priority: 3,
				CorrelationId: "corr", ReplyTo: "reply", Expiration: "100000", MessageId: "id", Timestamp: moment,
				Type: "type", UserId: "guest", AppId: "app", Body: []byte("body"),
				Headers: amqp.Table{
					"string": "s", "bytes": []byte("b"), "bool": true, "byte": int8(-1), "ubyte": uint8(1), "short": int16(-2),
					"int": int32(-3), "long": int64(-4), "float": float32(1.5), "double": 2.5, "decimal": amqp.Decimal{Scale: 2, Value: 314},
					"time": moment, "list": []any{int32(1), "x", nil, []any{}}, "table": amqp.Table{"inner": amqp.Table{}}, "void": nil,
				},
			})
			d := c.One(q)
			c.Equal("properties", fmt.Sprint([]any{
				d.ContentType, d.ContentEncoding, d.DeliveryMode, d.Priority, d.CorrelationId, d.ReplyTo, d.Expiration,
				d.MessageId, d.Timestamp.UTC(), d.Type, d.UserId, d.AppId, string(d.Body),
			}), "[text/plain gzip 2 3 corr reply 100000 id 2023-11-14 22:13:20 +0000 UTC type guest app body]")
			delete(d.Headers, "x-delivery-count") // 3.10 sends it on the first delivery of a message with an expiration
			c.Equal("headers", d.Headers, `{bool=bool:true byte=int8:-1 bytes=[]uint8:[98] decimal=amqp091.Decimal:{2 314} double=float64:2.5 float=float32:1.5 `+
				`int=int32:-3 list=[int32:1 "x" void []] long=int64:-4 short=int16:-2 string="s" table={inner={}} time=time:2023-11-14T22:13:20Z ubyte=uint8:1 void=void}`)
		}),
		both("publish/nothing is added to a bare message", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Publish("", q, amqp.Publishing{})
			d := c.One(q)
			c.Equal("headers", d.Headers, "{}")
			c.Equal("delivery", fmt.Sprintf("%d %d %q %q %v %q", d.DeliveryMode, len(d.Body), d.Exchange, c.plain(d.RoutingKey), d.Redelivered, d.ContentType),
				`0 0 "" "q" false ""`)
		}),
		both("publish/body of many frames", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			c.Publish("", q, amqp.Publishing{Body: body})
			c.Equal("same body", bytes.Equal(c.One(q).Body, body), true)
		}),
		[]Case{
			{"publish/missing exchange", func(c *C) {
				c.Equal("exception", c.Refused(publish(c.Unique("x"), "k", text("a"))), "404 NOT_FOUND - no exchange 'x' in vhost '/'")
			}},
			{"publish/mandatory", func(c *C) {
				x, q := c.Exchange("x", "direct", nil), c.Queue("q", classic, nil)
				c.Bind(q, "k", x, nil)
				c.Equal("routed", c.Returned(x, "k", text("a")), "")
				c.Equal("unroutable", c.Returned(x, "other", text("b")), "312 NO_ROUTE x/other b")
				c.Equal("no such queue", c.Returned("", "nowhere", text("c")), "312 NO_ROUTE /nowhere c")
			}},
			{"publish/returned message is whole", func(c *C) {
				x := c.Exchange("x", "direct", nil)
				p := text("body", header("h", int32(1)), header("BCC", []any{"nobody"}), expiration("500"))
				p.MessageId = "id"
				c.OK(c.publisher().ch.Publish(x, "k", true, false, p))
				r := <-c.pub.returns
				c.Equal("return", fmt.Sprint(string(r.Body), r.MessageId, r.Expiration, r.DeliveryMode, show(r.Headers)), "bodyid5002{h=int32:1}")
			}},
			{"publish/name for direct replies", func(c *C) {
				q, ch := c.Queue("q", classic, nil), c.Channel()
				_, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
				c.OK(err)
				c.OK(ch.Publish("", q, false, false, amqp.Publishing{ReplyTo: "amq.rabbitmq.reply-to"}))
				name := c.One(q).ReplyTo
				c.Equal("two parts, as clients expect", regexp.MustCompile(`^amq\.rabbitmq\.reply-to\.[^.]+\.[^.]+==$`).MatchString(name), true)
			}},
			{"publish/unroutable is confirmed", func(c *C) {
				c.Equal("acked", c.TryPublish("", "nowhere", text("a")), true)
			}},
			{"publish/immediate", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Equal("exception", c.Closed(func(ch *amqp.Channel) error { return ch.Publish("", q, false, true, text("a")) }),
					"540 NOT_IMPLEMENTED - immediate=true")
			}},
			{"publish/user id of somebody else", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Equal("exception", c.Refused(publish("", q, amqp.Publishing{UserId: "other"})),
					"406 PRECONDITION_FAILED - user_id property set to 'other' but authenticated user was 'guest'")
			}},
			{"publish/one copy for each queue", func(c *C) {
				x := c.Exchange("x", "fanout", nil)
				a, b := c.Queue("a", classic, nil), c.Queue("b", quorum, nil)
				c.Bind(a, "", x, nil)
				c.Bind(b, "", x, nil)
				c.Publish(x, "k", text("m"))
				c.Equal("a", c.Bodies(a, 1), []string{"m"})
				d := c.One(b)
				c.Equal("b", c.plain(d.Exchange)+"/"+d.RoutingKey+" "+string(d.Body), "x/k m")
			}},
			{"publish/message larger than the limit", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Equal("exception", c.Refused(publish("", q, amqp.Publishing{Body: make([]byte, 16<<20+1)})), changedIn(v40, "",
					"406 PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216"))
			}},
			{"publish/confirms are numbered from one", func(c *C) {
				q := c.Queue("q", classic, nil)
				ch := c.Channel()
				c.OK(ch.Confirm(false))
				confirms := ch.NotifyPublish(make(chan amqp.Confirmation, 10))
				for range 3 {
					c.OK(ch.Publish("", q, false, false, text("a")))
				}
				for tag := range 3 {
					got := <-confirms
					c.Equal("confirm", fmt.Sprint(got.DeliveryTag, got.Ack), fmt.Sprint(tag+1, true))
				}
			}},
			{"publish/confirm.select twice", func(c *C) {
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					c.OK(ch.Confirm(false))
					return ch.Confirm(false)
				}), "")
			}},
			{"publish/confirm after tx", func(c *C) {
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					c.OK(ch.Tx())
					return ch.Confirm(false)
				}), "406 PRECONDITION_FAILED - cannot switch from tx to confirm mode")
			}},
			{"publish/tx after confirm", func(c *C) {
				c.Equal("exception", c.Refused(func(ch *amqp.Channel) error {
					c.OK(ch.Confirm(false))
					return ch.Tx()
				}), "406 PRECONDITION_FAILED - cannot switch from confirm to tx mode")
			}},
			{"publish/tx commit without tx", func(c *C) {
				c.Equal("commit", c.Refused(func(ch *amqp.Channel) error { return ch.TxCommit() }), "406 PRECONDITION_FAILED - channel is not transactional")
				c.Equal("rollback", c.Refused(func(ch *amqp.Channel) error { return ch.TxRollback() }), "406 PRECONDITION_FAILED - channel is not transactional")
			}},
			{"publish/transaction", func(c *C) {
				q := c.Queue("q", classic, nil)
				ch := c.Channel()
				c.OK(ch.Tx())
				c.OK(ch.Publish("", q, false, false, text("a")))
				c.OK(ch.TxRollback())
				c.Equal("after rollback", c.Ready(q), 0)
				c.OK(ch.Publish("", q, false, false, text("b")))
				c.Equal("before commit", c.Ready(q), 0)
				c.OK(ch.TxCommit())
				c.Equal("after commit", c.Bodies(q, 1), []string{"b"})
			}},
			{"publish/flow cannot be stopped by the client", func(c *C) {
				c.Equal("active", c.Refused(func(ch *amqp.Channel) error { return ch.Flow(true) }), "")
				c.Equal("not active", c.Closed(func(ch *amqp.Channel) error { return ch.Flow(false) }), "540 NOT_IMPLEMENTED - active=false")
			}},
		},
		copyCases(), alternateCases(), exchangeToExchangeCases(),
	)
}

// keys is the value of a CC or BCC header.
func (c *C) keys(names ...string) []any {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}

func copyCases() []Case {
	return slices.Concat(
		both("copy/cc and bcc", func(c *C, kind string) {
			a, b, d := c.Queue("a", kind, nil), c.Queue("b", kind, nil), c.Queue("d", kind, nil)
			c.Publish("", a, text("m", header("CC", c.keys(b)), header("BCC", c.keys(d)), header("h", "1")))
			want := `{CC=["b"] h="1"}`
			for _, q := range []string{a, b, d} {
				m := c.One(q)
				delete(m.Headers, "x-delivery-count")
				c.Equal("headers in "+c.plain(q), m.Headers, want)
				c.Equal("routing key in "+c.plain(q), m.RoutingKey, "a")
			}
		}),
		[]Case{
			{"copy/same queue twice", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Publish("", q, text("m", header("CC", c.keys(q, q)), header("BCC", c.keys(q))))
				c.Equal("copies", c.Ready(q), 1)
			}},
			{"copy/through a topic exchange", func(c *C) {
				x := c.Exchange("x", "topic", nil)
				a, b := c.Queue("a", classic, nil), c.Queue("b", classic, nil)
				c.Bind(a, "k.a", x, nil)
				c.Bind(b, "k.*", x, nil)
				c.Publish(x, "none", text("m", header("CC", c.keys("k.a"))))
				c.Equal("copies", fmt.Sprint(c.Ready(a), c.Ready(b)), "1 1")
				c.Equal("routing key", c.One(a).RoutingKey, "none")
			}},
			{"copy/mandatory looks at all keys", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Equal("cc", c.Returned("", "nowhere", text("m", header("CC", c.keys(q)))), "")
				c.Equal("bcc", c.Returned("", "nowhere", text("m", header("BCC", c.keys(q)))), "")
				c.Equal("none", c.Returned("", "nowhere", text("m", header("CC", c.keys("nowhere too")))), "312 NO_ROUTE /nowhere m")
			}},
			{"copy/lower case is an ordinary header", func(c *C) {
				a, b := c.Queue("a", classic, nil), c.Queue("b", classic, nil)
				c.Publish("", a, text("m", header("cc", c.keys(b)), header("bcc", c.keys(b))))
				c.Equal("copies", fmt.Sprint(c.Ready(a), c.Ready(b)), "1 0")
				c.Equal("headers", c.One(a).Headers, `{bcc=["b"] cc=["b"]}`)
			}},
			{"copy/elements that are no strings", func(c *C) {
				a, b := c.Queue("a", classic, nil), c.Queue("b", classic, nil)
				c.Publish("", a, text("m", header("CC", []any{int32(1), b, nil, []byte("x")})))
				c.Equal("copies", fmt.Sprint(c.Ready(a), c.Ready(b)), "1 1")
			}},
			{"copy/wrong type", func(c *C) {
				for _, name := range []string{"CC", "BCC"} {
					for typ, v := range map[string]any{"longstr": "q", "signedint": int32(1), "table": amqp.Table{}, "void": nil} {
						c.Equal(name+" as "+typ, c.Refused(func(ch *amqp.Channel) error {
							return ch.Publish("", "nowhere", false, false, text("m", header(name, v)))
						}), fmt.Sprintf("406 PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,%q,%s}", name, typ))
					}
				}
			}},
			{"copy/default exchange ignores missing queues", func(c *C) {
				a := c.Queue("a", classic, nil)
				c.Publish("", a, text("m", header("CC", c.keys("nowhere"))))
				c.Equal("headers", c.One(a).Headers, `{CC=["nowhere"]}`)
			}},
		},
	)
}

func alternateCases() []Case {
	alternate := func(name string) amqp.Table { return amqp.Table{"alternate-exchange": name} }
	return []Case{
		{"alternate/takes what is not routed", func(c *C) {
			alt := c.Exchange("alt", "fanout", nil)
			x := c.Exchange("x", "direct", alternate(alt))
			a, b := c.Queue("a", classic, nil), c.Queue("b", classic, nil)
			c.Bind(a, "k", x, nil)
			c.Bind(b, "", alt, nil)
			c.Equal("routed", c.Returned(x, "k", text("1")), "")
			c.Equal("to the alternate", c.Returned(x, "other", text("2")), "")
			c.Equal("a", c.Bodies(a, 1), []string{"1"})
			d := c.One(b)
			c.Equal("b", string(d.Body)+" "+c.plain(d.Exchange)+"/"+d.RoutingKey, "2 x/other")
		}},
		{"alternate/routes nowhere itself", func(c *C) {
			alt := c.Exchange("alt", "direct", nil)
			x := c.Exchange("x", "direct", alternate(alt))
			c.Equal("return", c.Returned(x, "k", text("a")), "312 NO_ROUTE x/k a")
		}},
		{"alternate/does not exist", func(c *C) {
			x := c.Exchange("x", "direct", alternate(c.Unique("missing")))
			c.Equal("return", c.Returned(x, "k", text("a")), "312 NO_ROUTE x/k a")
		}},
		{"alternate/of an alternate", func(c *C) {
			last := c.Exchange("last", "fanout", nil)
			alt := c.Exchange("alt", "direct", alternate(last))
			x := c.Exchange("x", "direct", alternate(alt))
			q := c.Queue("q", classic, nil)
			c.Bind(q, "", last, nil)
			c.Equal("return", c.Returned(x, "k", text("a")), "")
			c.Equal("body", c.Bodies(q, 1), []string{"a"})
		}},
		{"alternate/in a circle", func(c *C) {
			x := c.Exchange("x", "direct", alternate(c.Unique("y")))
			c.Exchange("y", "direct", alternate(x))
			c.Equal("return", c.Returned(x, "k", text("a")), "312 NO_ROUTE x/k a")
		}},
		{"alternate/of the destination of a binding", func(c *C) {
			alt := c.Exchange("alt", "fanout", nil)
			y := c.Exchange("y", "direct", alternate(alt))
			x := c.Exchange("x", "fanout", nil)
			q := c.Queue("q", classic, nil)
			c.Bind(q, "", alt, nil)
			c.OK(c.ch.ExchangeBind(y, "", x, false, nil))
			c.Equal("return", c.Returned(x, "k", text("a")), "")
			c.Equal("body", c.Bodies(q, 1), []string{"a"})
		}},
		{"alternate/routed by one of several keys", func(c *C) {
			alt := c.Exchange("alt", "fanout", nil)
			x := c.Exchange("x", "direct", alternate(alt))
			a, b := c.Queue("a", classic, nil), c.Queue("b", classic, nil)
			c.Bind(a, "k", x, nil)
			c.Bind(b, "", alt, nil)
			c.Publish(x, "other", text("m", header("CC", c.keys("k"))))
			c.Equal("copies", fmt.Sprint(c.Ready(a), c.Ready(b)), "1 0")
		}},
	}
}

func exchangeToExchangeCases() []Case {
	return []Case{
		{"e2e/chain keeps exchange and key", func(c *C) {
			x, y, z := c.Exchange("x", "direct", nil), c.Exchange("y", "topic", nil), c.Exchange("z", "fanout", nil)
			q := c.Queue("q", classic, nil)
			c.OK(c.ch.ExchangeBind(y, "a.b", x, false, nil))
			c.OK(c.ch.ExchangeBind(z, "a.*", y, false, nil))
			c.Bind(q, "", z, nil)
			c.Publish(x, "a.b", text("m"))
			d := c.One(q)
			c.Equal("delivery", c.plain(d.Exchange)+"/"+d.RoutingKey, "x/a.b")
		}},
		{"e2e/circle", func(c *C) {
			x, y := c.Exchange("x", "fanout", nil), c.Exchange("y", "fanout", nil)
			q := c.Queue("q", classic, nil)
			c.OK(c.ch.ExchangeBind(y, "", x, false, nil))
			c.OK(c.ch.ExchangeBind(x, "", y, false, nil))
			c.Bind(q, "", x, nil)
			c.Bind(q, "", y, nil)
			c.Publish(x, "", text("m"))
			c.Equal("copies", c.Ready(q), 1)
		}},
		{"e2e/diamond gives one copy", func(c *C) {
			x, l, r, y := c.Exchange("x", "fanout", nil), c.Exchange("l", "fanout", nil), c.Exchange("r", "fanout", nil), c.Exchange("y", "fanout", nil)
			q := c.Queue("q", classic, nil)
			for _, mid := range []string{l, r} {
				c.OK(c.ch.ExchangeBind(mid, "", x, false, nil))
				c.OK(c.ch.ExchangeBind(y, "", mid, false, nil))
			}
			c.Bind(q, "", y, nil)
			c.Publish(x, "", text("m"))
			c.Equal("copies", c.Ready(q), 1)
		}},
		{"e2e/unbind", func(c *C) {
			x, y := c.Exchange("x", "fanout", nil), c.Exchange("y", "fanout", nil)
			q := c.Queue("q", classic, nil)
			c.Bind(q, "", y, nil)
			c.OK(c.ch.ExchangeBind(y, "", x, false, nil))
			c.Equal("bound", c.Returned(x, "", text("a")), "")
			c.OK(c.ch.ExchangeUnbind(y, "", x, false, nil))
			c.Equal("unbound", c.Returned(x, "", text("b")), "312 NO_ROUTE x/ b")
		}},
		{"e2e/goes with its destination", func(c *C) {
			x, y := c.Exchange("x", "fanout", nil), c.Exchange("y", "fanout", nil)
			q := c.Queue("q", classic, nil)
			c.Bind(q, "", y, nil)
			c.OK(c.ch.ExchangeBind(y, "", x, false, nil))
			c.OK(c.ch.ExchangeDelete(y, false, false))
			c.Equal("return", c.Returned(x, "", text("a")), "312 NO_ROUTE x/ a")
			c.Exchange("y", "fanout", nil)
			c.Bind(q, "", y, nil)
			c.Equal("with a new one of that name", c.Returned(x, "", text("a")), "312 NO_ROUTE x/ a")
		}},
		{"e2e/headers exchange behind a direct one", func(c *C) {
			x, y := c.Exchange("x", "direct", nil), c.Exchange("y", "headers", nil)
			q := c.Queue("q", classic, nil)
			c.OK(c.ch.ExchangeBind(y, "k", x, false, nil))
			c.Bind(q, "", y, amqp.Table{"type": "order"})
			c.Equal("match", c.Returned(x, "k", text("a", header("type", "order"))), "")
			c.Equal("no match", c.Returned(x, "k", text("b", header("type", "bill"))), "312 NO_ROUTE x/k b")
		}},
		{"e2e/copies pass through", func(c *C) {
			x, y := c.Exchange("x", "direct", nil), c.Exchange("y", "direct", nil)
			q := c.Queue("q", classic, nil)
			c.OK(c.ch.ExchangeBind(y, "a", x, false, nil))
			c.Bind(q, "b", y, nil)
			c.Equal("key for each exchange", c.Returned(x, "a", text("m", header("BCC", c.keys("b")))), "")
			c.Equal("ready", c.Ready(q), 1)
		}},
	}
}
