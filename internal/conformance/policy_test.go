package conformance

import (
	"fmt"
	"regexp"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Policy sets a policy for one queue or exchange of the virtual host "/", in the place of the one that the case has
// set under that alias.
func (c *C) Policy(alias, of string, priority int, definition map[string]any) {
	c.Helper()
	c.policy("policies", alias, of, priority, definition)
}

// OperatorPolicy does the same with an operator policy.
func (c *C) OperatorPolicy(alias, of string, definition map[string]any) {
	c.Helper()
	c.policy("operator-policies", alias, of, 0, definition)
}

func (c *C) policy(kind, alias, of string, priority int, definition map[string]any) {
	c.Helper()
	path := []string{kind, "/", c.Unique(alias)}
	c.Put(map[string]any{"pattern": "^" + regexp.QuoteMeta(of) + "$", "definition": definition, "priority": priority}, path...)
	c.cleanLater("DELETE", Path(path...)) // the case may have deleted it
}

func policyCases() []Case {
	return slices.Concat(
		both("policy/lowering the length drops the head", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			c.Fill(q, "a", "b", "c", "d")
			c.Policy("p", q, 0, map[string]any{"max-length": 2})
			var dropped any = []string{"a", "b"}
			if kind == quorum {
				dropped = changedIn(v43, []string{"b", "a"}, dropped)
			}
			c.Equal("dropped", c.Bodies(dead, 2), dropped)
			c.Equal("kept", c.Bodies(q, 2), []string{"c", "d"})
		}),
		both("policy/the smaller length counts", func(c *C, kind string) {
			q := c.Queue("q", kind, amqp.Table{"x-max-length": int32(2)})
			c.Policy("p", q, 0, map[string]any{"max-length": 3})
			c.Fill(q, "a", "b", "c")
			c.Equal("kept", c.Bodies(q, 2), []string{"b", "c"})
			c.OperatorPolicy("p", q, map[string]any{"max-length": 1})
			c.Fill(q, "a", "b", "c")
			c.Equal("kept with an operator policy", c.Bodies(q, 1), []string{"c"})
			c.Empty(q)
		}),
		both("policy/a message keeps its expiry", func(c *C, kind string) {
			dead := c.Queue("dead", classic, nil)
			q := c.Queue("q", kind, nil)
			to := map[string]any{"dead-letter-exchange": "", "dead-letter-routing-key": dead, "message-ttl": 400}
			c.Policy("p", q, 0, to)
			c.Fill(q, "a")
			delete(to, "message-ttl")
			c.Policy("p", q, 0, to)
			c.Equal("dead", c.Bodies(dead, 1), []string{"a"})
			c.Fill(q, "b")
			to["message-ttl"] = 0
			c.Policy("p", q, 0, to)
			c.Equal("kept", c.Bodies(q, 1), []string{"b"})
			c.Empty(dead)
		}),
		both("policy/arguments win for dead letters", func(c *C, kind string) {
			q, dead := c.DeadLetters(kind, nil)
			other := c.Queue("other", classic, nil)
			c.Policy("p", q, 0, map[string]any{"dead-letter-exchange": "", "dead-letter-routing-key": other, "max-length": 0})
			c.Fill(q, "a")
			c.Equal("dead", c.Bodies(dead, 1), []string{"a"})
			c.Empty(other)
		}),
		both("policy/of the highest priority", func(c *C, kind string) {
			q := c.Queue("q", kind, nil)
			c.Policy("low", q, 1, map[string]any{"max-length": 1})
			c.Policy("high", q, 2, map[string]any{"max-length": 3})
			c.Fill(q, "a", "b", "c", "d")
			c.Equal("kept", c.Bodies(q, 3), []string{"b", "c", "d"})
			c.Delete("policies", "/", c.Unique("high"))
			c.Fill(q, "a", "b", "c", "d")
			c.Equal("kept under the other", c.Bodies(q, 1), []string{"d"})
		}),
		[]Case{
			{"policy/overflow of a classic queue is that of the argument", func(c *C) {
				q := c.Queue("q", classic, amqp.Table{"x-max-length": int32(1), "x-overflow": "drop-head"})
				c.Policy("p", q, 0, map[string]any{"overflow": "reject-publish"})
				c.Equal("acks", fmt.Sprint(c.TryPublish("", q, text("a")), c.TryPublish("", q, text("b"))), "true true")
				c.Equal("kept", c.Bodies(q, 1), []string{"b"})
			}},
			{"policy/overflow of a quorum queue is that of the policy", func(c *C) {
				q := c.Queue("q", quorum, amqp.Table{"x-max-length": int32(1), "x-overflow": "drop-head"})
				c.Policy("p", q, 0, map[string]any{"overflow": "reject-publish"})
				acks := fmt.Sprint(c.TryPublish("", q, text("a")), c.TryPublish("", q, text("b")), c.TryPublish("", q, text("c")))
				c.Equal("acks", acks, "true true false")
			}},
			{"policy/a policy with what the queue does not know is passed over", func(c *C) {
				q := c.Queue("q", classic, nil)
				c.Policy("limit", q, 2, map[string]any{"max-length": 1, "delivery-limit": 5})
				c.Policy("other", q, 1, map[string]any{"max-length": 2})
				c.Fill(q, "a", "b", "c")
				c.Equal("kept", c.Bodies(q, 2), []string{"b", "c"})
			}},
			{"policy/delivery limit", func(c *C) {
				q, dead := c.DeadLetters(quorum, amqp.Table{"x-delivery-limit": int32(7)})
				c.Policy("p", q, 0, map[string]any{"delivery-limit": 1})
				c.Fill(q, "a")
				c.OK(c.Get(q).Reject(true))
				c.OK(c.Get(q).Reject(true))
				c.Equal("dead", shortDeaths(c.One(dead)), "q:delivery_limit:1")
			}},
			{"policy/alternate exchange", func(c *C) {
				lost := c.Exchange("lost", "fanout", nil)
				x := c.Exchange("x", "direct", nil)
				q := c.Queue("q", classic, nil)
				c.Bind(q, "", lost, nil)
				c.Equal("returned", c.Returned(x, "key", text("a")), "312 NO_ROUTE x/key a")
				c.Policy("p", x, 0, map[string]any{"alternate-exchange": lost})
				c.Eventually("a message that is not returned", func() bool { return c.Returned(x, "key", text("b")) == "" })
				c.Equal("lost", c.Bodies(q, 1), []string{"b"})
				c.Delete("policies", "/", c.Unique("p"))
				c.Eventually("a message that is returned", func() bool { return c.Returned(x, "key", text("c")) != "" })
			}},
		},
	)
}
