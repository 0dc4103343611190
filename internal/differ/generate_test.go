package differ

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/dormousemq/dormouse/internal/wire"
)

// autoAck ends the tags of consumers that acknowledge nothing.
const autoAck = "!"

// soon and late are times to live: what lives a short time is dead when its step is over, what lives long outlives the
// program. Anything between would make the outcome a matter of speed.
const (
	soon = 150
	late = 3_600_000
)

// A generator makes one program.
type generator struct {
	*rand.Rand
	program
	queues    []string
	kinds     map[string]string
	exchanges []string
	tags      int
	bodies    int
	streams   bool
	quorums   bool
}

func generate(seed uint64) program {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 4)), kinds: map[string]string{}}
	g.timed = g.IntN(4) == 0
	for i := range 1 + g.IntN(3) {
		name := fmt.Sprintf("q%d", i+1)
		g.queues = append(g.queues, name)
		g.kinds[name] = pick(g, "classic", "classic", "quorum", "quorum", "quorum", "classic", "stream")
		g.streams = g.streams || g.kinds[name] == "stream"
		g.quorums = g.quorums || g.kinds[name] == "quorum"
	}
	for i := range 1 + g.IntN(2) {
		g.exchanges = append(g.exchanges, fmt.Sprintf("x%d", i+1))
	}
	for _, x := range g.exchanges {
		g.exchange(x)
	}
	for _, q := range g.queues {
		g.queue(q)
	}
	for range 1 + g.IntN(4) {
		g.bind(false)
	}
	if g.IntN(2) == 0 {
		g.add(method(g.channel(), func(naming) wire.Method { return &wire.ConfirmSelect{} }))
	}
	for range 6 + g.IntN(16) {
		g.step()
	}
	return g.program
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) add(o op) { g.ops = append(g.ops, o) }

func (g *generator) channel() uint16 { return pick[uint16](g, 1, 1, 1, 1, 2, 2, 3, 11) }

// one in n
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *generator) step() {
	on := g.channel()
	switch n := g.IntN(100); {
	case n < 34:
		g.publish(on)
	case n < 48:
		g.get(on)
	case n < 59:
		g.consume(on)
	case n < 80:
		g.settle(on)
	case n < 82:
		g.cancel(on)
	case n < 84:
		q := pick(g, g.queues...)
		g.add(method(on, func(n naming) wire.Method { return &wire.QueuePurge{Queue: n(q)} }))
	case n < 86:
		q, unused, empty := pick(g, g.queues...), g.one(3), g.one(3)
		if g.kinds[q] == "quorum" {
			// RabbitMQ refuses these for quorum queues with a text of its own; a case of conformance has it.
			unused, empty = false, false
		}
		g.add(method(on, func(n naming) wire.Method {
			return &wire.QueueDelete{Queue: n(q), IfUnused: unused, IfEmpty: empty}
		}))
	case n < 88:
		g.queue(pick(g, g.queues...))
	case n < 89:
		x, unused := pick(g, g.exchanges...), g.one(2)
		g.add(method(on, func(n naming) wire.Method { return &wire.ExchangeDelete{Exchange: n(x), IfUnused: unused} }))
	case n < 90:
		g.exchange(pick(g, g.exchanges...))
	case n < 92:
		g.bind(false)
	case n < 93:
		g.bind(true)
	case n < 95:
		g.add(op{on: on, closes: true})
	case n < 96:
		// RabbitMQ ends the channels of a connection at once: whether one of them still gets what another gives back, which
		// the counts of a quorum queue tell, is chance. The second connection has one channel.
		g.add(op{on: 11, hangsUp: true})
	case n < 98:
		g.transact(on)
	default:
		g.policy()
	}
}

func (g *generator) queue(q string) {
	kind := g.kinds[q]
	exclusive, autoDelete := kind == "classic" && g.one(12), kind == "classic" && g.one(12)
	durable := !exclusive || g.one(2)
	args := g.queueArguments(q, kind)
	on := g.channel()
	g.add(method(on, func(n naming) wire.Method {
		return &wire.QueueDeclare{Queue: n(q), Durable: durable, Exclusive: exclusive, AutoDelete: autoDelete, Arguments: args(n)}
	}))
}

func (g *generator) queueArguments(q, kind string) func(n naming) wire.Table {
	var table []func(n naming) wire.Field
	add := func(name string, v any) {
		table = append(table, func(naming) wire.Field { return wire.Field{Name: name, Value: v} })
	}
	named := func(name, v string) {
		table = append(table, func(n naming) wire.Field { return wire.Field{Name: name, Value: n(v)} })
	}
	if kind != "classic" || g.one(3) {
		add("x-queue-type", kind)
	}
	if kind == "stream" {
		if g.one(4) {
			add("x-max-length-bytes", int64(1_000_000))
		}
		if g.one(6) {
			add("x-max-age", pick(g, "1h", "1Y", "5x"))
		}
	} else {
		switch {
		case g.timed && g.one(3):
			add("x-message-ttl", int32(soon))
		case g.one(5):
			add("x-message-ttl", pick[any](g, int32(late), int64(late), int16(-1), "5", uint16(60000)))
		}
		if g.one(2) {
			if g.one(4) {
				add("x-dead-letter-exchange", "")
			} else {
				named("x-dead-letter-exchange", pick(g, append(g.exchanges, "nowhere")...))
			}
			if g.one(2) {
				named("x-dead-letter-routing-key", pick(g, append(g.queues, "k1", "k1.k2")...))
			}
		}
		if g.one(3) {
			add("x-max-length", pick[any](g, int32(1), int32(2), int64(3), int32(0), int8(2), int32(-1)))
		}
		if g.one(8) {
			add("x-max-length-bytes", pick[any](g, int32(5), int32(12), int64(100)))
		}
		if g.one(4) {
			add("x-overflow", pick(g, "drop-head", "reject-publish", "reject-publish", "reject-publish-dlx", "other"))
		}
		if g.one(8) {
			add("x-expires", pick[any](g, int32(late), int32(0)))
		}
	}
	if g.one(8) {
		add("x-single-active-consumer", pick(g, true, true, false))
	}
	if kind == "classic" && g.one(4) {
		add("x-max-priority", pick[any](g, int8(1), int32(5), int64(10), uint8(255), int32(256)))
	}
	if kind == "quorum" {
		if g.one(3) {
			add("x-delivery-limit", pick[any](g, int32(0), int32(1), int32(2), int32(-1)))
		}
		if g.one(8) {
			add("x-dead-letter-strategy", pick(g, "at-most-once", "at-least-once", "never"))
		}
		if g.timed && g.one(3) {
			add("x-delayed-retry-type", pick(g, "all", "failed", "returned", "disabled"))
			add("x-delayed-retry-min", int32(50))
			if g.one(2) {
				add("x-delayed-retry-max", int32(150))
			}
		}
	}
	return func(n naming) wire.Table {
		var t wire.Table
		for _, f := range table {
			t = append(t, f(n))
		}
		return t
	}
}

func (g *generator) exchange(x string) {
	kind := pick(g, "direct", "direct", "fanout", "topic", "headers", "fanout", "x-nothing")
	if !g.one(10) && kind == "x-nothing" {
		kind = "topic"
	}
	durable, autoDelete, internal := !g.one(6), g.one(10), g.one(12)
	alternate := ""
	if g.one(4) {
		alternate = pick(g, append(g.exchanges, "nowhere", "amq.fanout")...)
	}
	g.add(method(g.channel(), func(n naming) wire.Method {
		var args wire.Table
		if strings.HasPrefix(alternate, "amq.") {
			alternate = "nowhere"
		}
		if alternate != "" {
			args = wire.Table{{Name: "alternate-exchange", Value: n(alternate)}}
		}
		return &wire.ExchangeDeclare{Exchange: n(x), Type: kind, Durable: durable, AutoDelete: autoDelete, Internal: internal, Arguments: args}
	}))
}

func (g *generator) key() string { return pick(g, "k1", "k2", "k1.k2", "k1.k2.k3", "") }

func (g *generator) bind(undo bool) {
	x, q, key := pick(g, g.exchanges...), pick(g, g.queues...), pick(g, g.key(), g.key(), "#", "*.k2", "k1.#", "#.k2", "*")
	var args wire.Table
	if g.one(3) {
		args = wire.Table{{Name: "x-match", Value: pick[any](g, "all", "any", "all-with-x", "any-with-x", "most", int32(1))}, g.header()}
		if g.one(2) {
			args = append(args, g.header())
		}
	}
	to := ""
	if len(g.exchanges) > 1 && g.one(4) {
		to = pick(g, g.exchanges...)
	}
	on := g.channel()
	g.add(method(on, func(n naming) wire.Method {
		switch {
		case to != "" && undo:
			return &wire.ExchangeUnbind{Destination: n(to), Source: n(x), RoutingKey: key, Arguments: args}
		case to != "":
			return &wire.ExchangeBind{Destination: n(to), Source: n(x), RoutingKey: key, Arguments: args}
		case undo:
			return &wire.QueueUnbind{Queue: n(q), Exchange: n(x), RoutingKey: key, Arguments: args}
		}
		return &wire.QueueBind{Queue: n(q), Exchange: n(x), RoutingKey: key, Arguments: args}
	}))
}

// header is a header of any type. Each name has few values, so that bindings match. The embedded broker's streams keep
// the tables, arrays and the cluster-id that RabbitMQ's lose in their conversion to AMQP 1.0, on purpose (decision 13 of
// the architecture), so there are none where there are streams.
func (g *generator) header() wire.Field {
	if g.streams {
		return pick(g,
			wire.Field{Name: "h1", Value: pick[any](g, int64(1), "1", true, float64(1))},
			wire.Field{Name: "h2", Value: pick[any](g, "a", "b")},
			wire.Field{Name: "x-h3", Value: "a"},
		)
	}
	return pick(g,
		wire.Field{Name: "h1", Value: pick[any](g, int32(1), int64(1), "1", true, float64(1), nil)},
		wire.Field{Name: "h2", Value: pick[any](g, "a", "b", []byte("a"))},
		wire.Field{Name: "x-h3", Value: pick[any](g, "a", int8(-3), uint8(3))},
		wire.Field{Name: "h4", Value: pick[any](g, float32(1.5), float64(0.1), wire.Timestamp(1_700_000_000), wire.Decimal{Scale: 2, Value: 314})},
		wire.Field{Name: "h5", Value: pick[any](g, int16(-5), uint16(5), uint32(7), int64(-1<<40))},
		wire.Field{Name: "h6", Value: pick[any](g, []any{"a", int32(1)}, []any{}, wire.Table{{Name: "in", Value: "a"}}, wire.Table{})},
		wire.Field{Name: "x-death", Value: pick[any](g, "a", []any{wire.Table{{Name: "queue", Value: "q1"}, {Name: "count", Value: int64(3)}}})},
		wire.Field{Name: "x-delivery-count", Value: int64(7)},
	)
}

func (g *generator) publish(on uint16) {
	x, key := pick(g, append(g.exchanges, "")...), g.key()
	if x == "" {
		key = pick(g, append(g.queues, "q9")...)
	} else if g.one(3) {
		x, key = "", pick(g, g.queues...)
	}
	times := pick(g, 1, 1, 1, 2, 3)
	if g.quorums {
		// By how many messages a quorum queue with reject-publish exceeds its limit depends on when the publishing
		// channel hears that it is full.
		times = 1
	}
	mandatory := g.one(5)
	g.bodies++
	body := fmt.Sprintf("m%d", g.bodies)
	if g.one(6) {
		body += strings.Repeat(".", 9)
	}
	var headers []func(n naming) wire.Field
	seen := map[string]bool{}
	if g.one(3) {
		for range 1 + g.IntN(3) {
			if h := g.header(); !seen[h.Name] {
				seen[h.Name] = true
				headers = append(headers, func(naming) wire.Field { return h })
			}
		}
	}
	for _, name := range []string{"CC", "BCC"} {
		if !g.one(10) {
			continue
		}
		to, second := pick(g, append(g.queues, "k1")...), pick[any](g, nil, "k2", int32(1))
		headers = append(headers, func(n naming) wire.Field {
			list := []any{to}
			if strings.HasPrefix(to, "q") {
				list[0] = n(to)
			}
			if second != nil {
				list = append(list, second)
			}
			return wire.Field{Name: name, Value: list}
		})
	}
	p := wire.Properties{}
	if !g.one(4) {
		p.Flags, p.DeliveryMode = wire.FlagDeliveryMode, wire.Persistent
	}
	if g.one(3) {
		p.Flags, p.Priority = p.Flags|wire.FlagPriority, pick[uint8](g, 0, 1, 3, 5, 9, 200)
	}
	switch {
	case g.timed && g.one(4):
		p.Flags, p.Expiration = p.Flags|wire.FlagExpiration, fmt.Sprint(soon)
	case g.one(12):
		p.Flags, p.Expiration = p.Flags|wire.FlagExpiration, pick(g, fmt.Sprint(late), "x", "-1", "")
	}
	if g.one(8) {
		p.Flags, p.MessageID = p.Flags|wire.FlagMessageID, "id"
		p.Flags, p.Timestamp = p.Flags|wire.FlagTimestamp, 1_600_000_000
		p.Flags, p.Type = p.Flags|wire.FlagType, "kind"
		p.Flags, p.ContentType = p.Flags|wire.FlagContentType, "text/plain"
		p.Flags, p.ContentEncoding = p.Flags|wire.FlagContentEncoding, "none"
		p.Flags, p.CorrelationID = p.Flags|wire.FlagCorrelationID, "corr"
		p.Flags, p.ReplyTo = p.Flags|wire.FlagReplyTo, "there"
		p.Flags, p.AppID = p.Flags|wire.FlagAppID, "app"
		if !g.streams {
			p.Flags, p.ClusterID = p.Flags|wire.FlagClusterID, "cluster"
		}
	}
	if g.one(30) {
		p.Flags, p.UserID = p.Flags|wire.FlagUserID, pick(g, "guest", "somebody")
	}
	name := func(n naming) string {
		if x == "" {
			return ""
		}
		return n(x)
	}
	g.add(op{on: on, times: times, body: body,
		form: func(n naming) wire.Method {
			k := key
			if strings.HasPrefix(k, "q") {
				k = n(k)
			}
			return &wire.BasicPublish{Exchange: []byte(name(n)), RoutingKey: []byte(k), Mandatory: mandatory}
		},
		properties: func(n naming) wire.Properties {
			p := p
			for _, h := range headers {
				p.Flags |= wire.FlagHeaders
				p.Headers = append(p.Headers, h(n))
			}
			return p
		},
	})
}

func (g *generator) get(on uint16) {
	q, noAck := pick(g, g.queues...), g.one(4)
	g.add(method(on, func(n naming) wire.Method { return &wire.BasicGet{Queue: n(q), NoAck: noAck} }))
}

func (g *generator) consume(on uint16) {
	q := pick(g, g.queues...)
	if g.one(2) || g.kinds[q] == "stream" {
		count := uint16(1 + g.IntN(3))
		g.add(method(on, func(naming) wire.Method { return &wire.BasicQos{PrefetchCount: count} }))
	}
	g.tags++
	tag := fmt.Sprintf("c%d", g.tags)
	noAck := g.kinds[q] != "stream" && g.one(5)
	if noAck {
		tag += autoAck
	}
	if g.tags > 1 && g.one(30) {
		tag = "c1"
	}
	exclusive := g.one(12)
	var args wire.Table
	if g.one(6) {
		args = append(args, wire.Field{Name: "x-priority", Value: pick[any](g, int32(1), int32(-1), int64(10), "1")})
	}
	if g.kinds[q] == "stream" {
		args = append(args, wire.Field{Name: "x-stream-offset", Value: pick[any](g, "first", "next", int64(1), int32(0), "sometime")})
	}
	g.add(method(on, func(n naming) wire.Method {
		return &wire.BasicConsume{Queue: n(q), ConsumerTag: n(tag), NoAck: noAck, Exclusive: exclusive, Arguments: args}
	}))
}

func (g *generator) cancel(on uint16) {
	tag := fmt.Sprintf("c%d", 1+g.IntN(max(1, g.tags)))
	g.add(method(on, func(n naming) wire.Method { return &wire.BasicCancel{ConsumerTag: n(tag)} }))
}

func (g *generator) settle(on uint16) {
	s := &settling{how: pick(g, "ack", "ack", "nack", "nack", "reject", "reject", "recover"), pick: g.IntN(20), several: g.one(4), requeue: g.one(2), unknown: g.one(40)}
	if s.how == "recover" && (!s.requeue && !g.one(8) || g.one(2)) {
		s.requeue = true
	}
	g.add(op{on: on, settle: s})
}

func (g *generator) transact(on uint16) {
	g.add(method(on, func(naming) wire.Method { return &wire.TxSelect{} }))
	for range 1 + g.IntN(3) {
		if g.one(2) {
			g.publish(on)
		} else {
			g.settle(on)
		}
	}
	if g.one(3) {
		g.add(method(on, func(naming) wire.Method { return &wire.TxRollback{} }))
	} else {
		g.add(method(on, func(naming) wire.Method { return &wire.TxCommit{} }))
	}
}

func (g *generator) policy() {
	p := &policy{name: pick(g, "p1", "p2"), pattern: pick(g, g.queues...), applyTo: "queues"}
	if !g.one(4) {
		key, value := "max-length", any(1+g.IntN(3))
		x := ""
		switch g.IntN(7) {
		case 0:
			key, value = "message-ttl", late
		case 1:
			key, x = "dead-letter-exchange", pick(g, g.exchanges...)
		case 2:
			key, value = "overflow", pick(g, "drop-head", "reject-publish")
		case 3:
			key, value = "delivery-limit", 1+g.IntN(3)
		case 4:
			key, x = "alternate-exchange", pick(g, g.exchanges...)
			p.pattern, p.applyTo = pick(g, g.exchanges...), "exchanges"
		case 5:
			key, value = "dead-letter-routing-key", "k1"
		}
		p.definition = func(n naming) map[string]any {
			if x != "" {
				return map[string]any{key: n(x)}
			}
			return map[string]any{key: value}
		}
	}
	g.add(op{on: 1, policy: p})
}
