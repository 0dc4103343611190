package conformance

import (
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

func bindCases() []Case {
	const noQueue, noExchange = "404 NOT_FOUND - no queue 'q' in vhost '/'", "404 NOT_FOUND - no exchange 'x' in vhost '/'"
	return []Case{
		{"bind/missing queue", func(c *C) {
			x := c.Exchange("x", "direct", nil)
			c.Equal("bind", c.Refused(func(ch *amqp.Channel) error { return ch.QueueBind(c.Unique("q"), "k", x, false, nil) }), noQueue)
			c.Equal("unbind", c.Refused(func(ch *amqp.Channel) error { return ch.QueueUnbind(c.Unique("q"), "k", x, nil) }), "")
		}},
		{"bind/missing exchange", func(c *C) {
			q := c.Queue("q", classic, nil)
			c.Equal("bind", c.Refused(func(ch *amqp.Channel) error { return ch.QueueBind(q, "k", c.Unique("x"), false, nil) }), noExchange)
			c.Equal("unbind", c.Refused(func(ch *amqp.Channel) error { return ch.QueueUnbind(q, "k", c.Unique("x"), nil) }), "")
		}},
		{"bind/both missing", func(c *C) {
			c.Equal("bind", c.Refused(func(ch *amqp.Channel) error {
				return ch.QueueBind(c.Unique("q"), "k", c.Unique("x"), false, nil)
			}), noExchange)
		}},
		{"bind/exchange to missing exchange", func(c *C) {
			x := c.Exchange("there", "direct", nil)
			c.Equal("missing source", c.Refused(func(ch *amqp.Channel) error { return ch.ExchangeBind(x, "k", c.Unique("x"), false, nil) }), noExchange)
			c.Equal("missing destination", c.Refused(func(ch *amqp.Channel) error { return ch.ExchangeBind(c.Unique("x"), "k", x, false, nil) }), noExchange)
			c.Equal("unbind", c.Refused(func(ch *amqp.Channel) error { return ch.ExchangeUnbind(c.Unique("x"), "k", x, false, nil) }), "")
		}},
		{"bind/default exchange", func(c *C) {
			const refused = "403 ACCESS_REFUSED - operation not permitted on the default exchange"
			q, x := c.Queue("q", classic, nil), c.Exchange("x", "direct", nil)
			c.Equal("bind", c.Refused(func(ch *amqp.Channel) error { return ch.QueueBind(q, "k", "", false, nil) }), refused)
			c.Equal("unbind", c.Refused(func(ch *amqp.Channel) error { return ch.QueueUnbind(q, q, "", nil) }), refused)
			c.Equal("as source", c.Refused(func(ch *amqp.Channel) error { return ch.ExchangeBind(x, "k", "", false, nil) }), refused)
			c.Equal("as destination", c.Refused(func(ch *amqp.Channel) error { return ch.ExchangeBind("", "k", x, false, nil) }), refused)
		}},
		{"bind/unbind what is not bound", func(c *C) {
			q, x := c.Queue("q", classic, nil), c.Exchange("x", "direct", nil)
			c.Bind(q, "k", x, nil)
			c.Equal("other key", c.Refused(func(ch *amqp.Channel) error { return ch.QueueUnbind(q, "other", x, nil) }), "")
			c.Equal("other arguments", c.Refused(func(ch *amqp.Channel) error {
				return ch.QueueUnbind(q, "k", x, amqp.Table{"a": "b"})
			}), "")
			c.Publish(x, "k", text("a"))
			c.Equal("still bound", c.Bodies(q, 1), []string{"a"})
		}},
		{"bind/twice gives one copy", func(c *C) {
			q, x := c.Queue("q", classic, nil), c.Exchange("x", "direct", nil)
			c.Bind(q, "k", x, nil)
			c.Bind(q, "k", x, nil)
			c.Publish(x, "k", text("a"))
			c.Equal("copies", c.Ready(q), 1)
			c.OK(c.ch.QueueUnbind(q, "k", x, nil))
			c.Equal("after one unbind", c.Returned(x, "k", text("b")), "312 NO_ROUTE x/k b")
		}},
		{"bind/other arguments make another binding", func(c *C) {
			q, x := c.Queue("q", classic, nil), c.Exchange("x", "direct", nil)
			args := amqp.Table{"a": int32(1)}
			c.Bind(q, "k", x, nil)
			c.Bind(q, "k", x, args)
			c.Publish(x, "k", text("a"))
			c.Equal("copies", c.Ready(q), 1)
			c.OK(c.ch.QueueUnbind(q, "k", x, nil))
			c.Equal("after the first unbind", c.Returned(x, "k", text("b")), "")
			c.OK(c.ch.QueueUnbind(q, "k", x, amqp.Table{"a": int64(1)}))
			c.Equal("after an unbind with another integer type", c.Returned(x, "k", text("c")), "")
			c.OK(c.ch.QueueUnbind(q, "k", x, args))
			c.Equal("after the last unbind", c.Returned(x, "k", text("d")), "312 NO_ROUTE x/k d")
		}},
		{"bind/goes with its queue", func(c *C) {
			q, x := c.Queue("q", classic, nil), c.Exchange("x", "direct", nil)
			c.Bind(q, "k", x, nil)
			c.OK(deleteQueue(c.ch, q))
			c.Queue("q", classic, nil)
			c.Equal("publish", c.Returned(x, "k", text("a")), "312 NO_ROUTE x/k a")
		}},
		{"bind/goes with its exchange", func(c *C) {
			q, x := c.Queue("q", classic, nil), c.Exchange("x", "direct", nil)
			c.Bind(q, "k", x, nil)
			c.OK(c.ch.ExchangeDelete(x, false, false))
			c.Exchange("x", "direct", nil)
			c.Equal("publish", c.Returned(x, "k", text("a")), "312 NO_ROUTE x/k a")
		}},
		{"bind/topic with many hashes", func(c *C) {
			q, x := c.Queue("q", classic, nil), c.Exchange("x", "topic", nil)
			bind := func(key string) string {
				return c.Refused(func(ch *amqp.Channel) error { return ch.QueueBind(q, key, x, false, nil) })
			}
			c.Equal("two", bind("#.a.#"), "")
			c.Equal("three", bind("#.a.#.b.#"), changedIn(v43, "",
				"406 PRECONDITION_FAILED - Topic binding key '#.a.#.b.#' uses 3 '#' wildcards, at most 2 are allowed"))
		}},
		{"bind/headers with an unknown x-match", func(c *C) {
			q, x := c.Queue("q", classic, nil), c.Exchange("x", "headers", nil)
			bind := func(match any) string {
				return c.Refused(func(ch *amqp.Channel) error {
					return ch.QueueBind(q, "", x, false, amqp.Table{"x-match": match})
				})
			}
			c.Equal("value", bind("some"), "406 PRECONDITION_FAILED - Invalid x-match field value <<\"some\">>; expected all, any, all-with-x, or any-with-x")
			c.Equal("integer", bind(int32(1)), "406 PRECONDITION_FAILED - Invalid x-match field type signedint (value 1); expected longstr")
			c.Equal("bool", bind(true), "406 PRECONDITION_FAILED - Invalid x-match field type bool (value true); expected longstr")
			c.Equal("void", bind(nil), "406 PRECONDITION_FAILED - Invalid x-match field type void (value undefined); expected longstr")
			c.Equal("double", bind(1.5), "406 PRECONDITION_FAILED - Invalid x-match field type double (value 1.5); expected longstr")
			c.Equal("list", bind([]any{"a"}), "406 PRECONDITION_FAILED - Invalid x-match field type array (value [{longstr,<<\"a\">>}]); expected longstr")
			c.Equal("bytes", bind([]byte("all")), "406 PRECONDITION_FAILED - Invalid x-match field type binary (value <<\"all\">>); expected longstr")
		}},
	}
}

// route is a set of bindings from an exchange and the queues that a message must reach.
type route struct {
	name string
	kind string
	bind []binding
	msgs []message
}

type binding struct {
	queue, key string
	args       amqp.Table
}

type message struct {
	key     string
	headers amqp.Table
	want    any // queues, sorted
}

func routeCases() []Case {
	var cases []Case
	for _, r := range slices.Concat(keyRoutes(), headerRoutes()) {
		cases = append(cases, Case{"route/" + r.name, func(c *C) {
			x := c.Exchange("x", r.kind, nil)
			queues := map[string]string{}
			for _, b := range r.bind {
				if queues[b.queue] == "" {
					queues[b.queue] = c.Queue(b.queue, classic, nil)
				}
				c.Bind(queues[b.queue], b.key, x, b.args)
			}
			for i, m := range r.msgs {
				c.Publish(x, m.key, amqp.Publishing{Headers: m.headers})
				var got []string
				for alias, q := range queues {
					n, err := c.ch.QueuePurge(q, false)
					c.OK(err)
					for range n {
						got = append(got, alias)
					}
				}
				slices.Sort(got)
				c.Equal(fmt.Sprintf("queues of message %d with key %q and headers %s", i, m.key, show(m.headers)), got, m.want)
			}
		}})
	}
	return cases
}

func keyRoutes() []route {
	to := func(queues ...string) []string { return queues }
	return []route{
		{"direct", "direct",
			[]binding{{"a", "k", nil}, {"b", "k", nil}, {"c", "k.l", nil}, {"d", "", nil}, {"e", "#", nil}},
			[]message{{"k", nil, to("a", "b")}, {"k.l", nil, to("c")}, {"", nil, to("d")}, {"#", nil, to("e")}, {"K", nil, to()}}},
		{"fanout", "fanout",
			[]binding{{"a", "k", nil}, {"a", "l", nil}, {"b", "", nil}},
			[]message{{"other", nil, to("a", "b")}, {"", nil, to("a", "b")}}},
		{"topic star is one word", "topic",
			[]binding{{"a", "*", nil}, {"b", "*.*", nil}, {"c", "x.*", nil}, {"d", "*.x", nil}},
			[]message{
				{"", nil, to()}, {"x", nil, to("a")}, {"x.x", nil, to("b", "c", "d")}, {"x.", nil, to("b", "c")},
				{".x", nil, to("b", "d")}, {".", nil, to("b")}, {"..", nil, to()}, {"x.y.z", nil, to()},
			}},
		{"topic hash is any number of words", "topic",
			[]binding{{"a", "#", nil}, {"b", "#.x", nil}, {"c", "x.#", nil}, {"d", "x.#.y", nil}, {"e", "#.x.#", nil}},
			[]message{
				{"", nil, to("a")}, {"x", nil, to("a", "b", "c", "e")}, {"x.y", nil, to("a", "c", "d", "e")},
				{"x.z.y", nil, to("a", "c", "d", "e")}, {"z.x", nil, to("a", "b", "e")}, {"z.x.z", nil, to("a", "e")}, {"x..y", nil, to("a", "c", "d", "e")},
				{"xx", nil, to("a")}, {".", nil, to("a")},
			}},
		{"topic star and hash", "topic",
			[]binding{{"a", "*.#", nil}, {"b", "#.*", nil}, {"c", "x.*.#", nil}, {"d", "#.#", nil}},
			[]message{{"", nil, to("d")}, {"x", nil, to("a", "b", "d")}, {"x.y", nil, to("a", "b", "c", "d")}, {"y.x.z", nil, to("a", "b", "d")}}},
		{"topic wildcards are whole words", "topic",
			[]binding{{"a", "x*", nil}, {"b", "#x", nil}, {"c", "x*.y", nil}},
			[]message{{"x*", nil, to("a")}, {"xx", nil, to()}, {"#x", nil, to("b")}, {"x*.y", nil, to("c")}}},
		{"topic wildcards in a routing key are plain words", "topic",
			[]binding{{"a", "x", nil}, {"b", "*", nil}, {"c", "#", nil}},
			[]message{{"*", nil, to("b", "c")}, {"#", nil, to("b", "c")}}},
		{"topic empty binding key", "topic",
			[]binding{{"a", "", nil}, {"b", ".", nil}},
			[]message{{"", nil, to("a")}, {"x", nil, to()}, {".", nil, to("b")}}},
		{"topic several matching bindings give one copy", "topic",
			[]binding{{"a", "x.#", nil}, {"a", "*.y", nil}, {"a", "x.y", nil}, {"a", "#", nil}},
			[]message{{"x.y", nil, to("a")}}},
	}
}

func headerRoutes() []route {
	to := func(queues ...string) []string { return queues }
	match := func(m string, args amqp.Table) amqp.Table {
		args["x-match"] = m
		return args
	}
	one := func(v any) amqp.Table { return amqp.Table{"h": v} }
	return []route{
		{"headers all", "headers",
			[]binding{{"a", "", match("all", amqp.Table{"h": "1", "g": "2"})}, {"b", "", amqp.Table{"h": "1", "g": "2"}}},
			[]message{
				{"", nil, to()}, {"", one("1"), to()},
				{"", amqp.Table{"h": "1", "g": "2"}, to("a", "b")}, {"", amqp.Table{"h": "1", "g": "2", "f": "3"}, to("a", "b")},
				{"", amqp.Table{"h": "1", "g": "3"}, to()},
			}},
		{"headers any", "headers",
			[]binding{{"a", "", match("any", amqp.Table{"h": "1", "g": "2"})}},
			[]message{{"", nil, to()}, {"", one("1"), to("a")}, {"", amqp.Table{"h": "9", "g": "2"}, to("a")}, {"", one("2"), to()}}},
		{"headers without arguments", "headers",
			[]binding{{"all", "", match("all", amqp.Table{})}, {"any", "", match("any", amqp.Table{})}, {"none", "", nil}},
			[]message{{"", nil, to("all", "none")}, {"", one("1"), to("all", "none")}}},
		{"headers void means present", "headers",
			[]binding{{"a", "", amqp.Table{"h": nil}}},
			[]message{{"", nil, to()}, {"", one("1"), to("a")}, {"", one(int32(1)), to("a")}, {"", one(nil), to("a")}}},
		{"headers with x-", "headers",
			[]binding{
				{"all", "", match("all", amqp.Table{"x-h": "1", "h": "1"})}, {"allx", "", match("all-with-x", amqp.Table{"x-h": "1", "h": "1"})},
				{"any", "", match("any", amqp.Table{"x-h": "1", "h": "1"})}, {"anyx", "", match("any-with-x", amqp.Table{"x-h": "1", "h": "1"})},
			},
			[]message{
				{"", amqp.Table{"h": "1"}, to("all", "any", "anyx")}, {"", amqp.Table{"x-h": "1"}, to("anyx")},
				{"", amqp.Table{"h": "1", "x-h": "1"}, to("all", "allx", "any", "anyx")}, {"", nil, to()},
			}},
		{"headers integer width does not matter", "headers",
			[]binding{{"a", "", one(int32(1))}, {"b", "", one(int64(1))}, {"c", "", one(int8(1))}},
			[]message{{"", one(int16(1)), to("a", "b", "c")}, {"", one(int64(1)), to("a", "b", "c")}, {"", one("1"), to()}, {"", one(true), to()}}},
		{"headers integer and float", "headers",
			[]binding{{"int", "", one(int32(1))}, {"float", "", one(float64(1))}},
			[]message{
				{"", one(int64(1)), changedIn(v40, to("float", "int"), to("int"))},
				{"", one(float32(1)), changedIn(v40, to("float", "int"), to("float"))},
			}},
		{"headers string and bytes", "headers",
			[]binding{{"string", "", one("a")}, {"bytes", "", one([]byte("a"))}},
			[]message{{"", one("a"), to("bytes", "string")}, {"", one([]byte("a")), to("bytes", "string")}}},
		{"headers bool", "headers",
			[]binding{{"true", "", one(true)}, {"false", "", one(false)}, {"string", "", one("true")}},
			[]message{{"", one(true), to("true")}, {"", one(false), to("false")}, {"", one("true"), to("string")}}},
		{"headers list", "headers",
			[]binding{{"a", "", one([]any{int32(1), "a"})}, {"b", "", one([]any{int64(1), "a"})}, {"c", "", one([]any{})}},
			[]message{{"", one([]any{int32(1), "a"}), to("a")}, {"", one([]any{"a", int32(1)}), to()}, {"", one([]any{}), to("c")}}},
		{"headers table", "headers",
			[]binding{{"a", "", one(amqp.Table{"k": int32(1)})}},
			[]message{{"", one(amqp.Table{"k": int32(1)}), to("a")}, {"", one(amqp.Table{"k": int64(1)}), to()}}},
		{"headers timestamp", "headers",
			[]binding{{"time", "", one(moment)}, {"long", "", one(moment.Unix())}},
			[]message{
				{"", one(moment), changedIn(v40, to("long", "time"), to())},
				{"", one(moment.Unix()), to("long", "time")},
			}},
	}
}
