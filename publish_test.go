package dormouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// publishError checks why a publish failed.
func publishError(t *testing.T, err, reason error, mayBeStored bool) PublishError {
	t.Helper()
	e, ok := errors.AsType[*PublishError](err)
	if !ok {
		t.Fatalf("error is %v (%T), want a *PublishError for %v", err, err, reason)
	}
	if !errors.Is(err, reason) || e.MayBeStored() != mayBeStored {
		t.Fatalf("error is %v (may be stored: %v), want %v (%v)", err, e.MayBeStored(), reason, mayBeStored)
	}
	return *e
}

func TestPublishNow(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		x, q := b.name("x"), b.name("q")
		b.declare(c, Topology{Exchanges: []Exchange{{Name: x}}, Queues: []Queue{{Name: q, Bindings: []Binding{{Exchange: x, RoutingKey: "eu.#"}}}}})
		got := b.consumeRaw(q)
		sent := Message{
			Exchange: x, RoutingKey: "eu.new", Body: []byte("hello"), ContentType: "text/plain", ContentEncoding: "identity",
			Headers:   map[string]any{"big": 5_000_000_000, "nested": map[string]any{"a": []any{"b", true}}, "none": nil},
			MessageID: "id-1", CorrelationID: "c", ReplyTo: "r", Type: "t", AppID: "app", Timestamp: time.Unix(1_700_000_000, 0),
		}
		if err := c.Publish(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		d := receive(t, "message", got)
		if string(d.Body) != "hello" || d.MessageId != "id-1" || d.ContentType != "text/plain" || d.CorrelationId != "c" || d.ReplyTo != "r" ||
			d.Type != "t" || d.AppId != "app" || !d.Timestamp.Equal(sent.Timestamp) || d.RoutingKey != "eu.new" || d.Exchange != x || d.DeliveryMode != amqp.Persistent {
			t.Errorf("delivered %+v", d)
		}
		if d.Headers["big"] != int64(5_000_000_000) {
			t.Errorf("header big is %v", d.Headers["big"])
		}
		if n, _ := d.Headers["nested"].(amqp.Table)["a"].([]any); len(n) != 2 {
			t.Errorf("header nested is %v", d.Headers["nested"])
		}

		for what, m := range map[string]Message{
			"At in the past":   {RoutingKey: q, At: time.Now().Add(-time.Hour)},
			"negative After":   {RoutingKey: q, After: -time.Hour},
			"transient, TTL":   {RoutingKey: q, Transient: true, TTL: time.Hour},
			"straight to dm.*": {RoutingKey: q},
		} {
			if err := c.Publish(t.Context(), m); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			d := receive(t, what, got)
			if len(d.MessageId) != 32 {
				t.Errorf("%s: generated id %q", what, d.MessageId)
			}
			if m.Transient && (d.DeliveryMode != amqp.Transient || d.Expiration != "3600000") {
				t.Errorf("%s: mode %d, expiration %s", what, d.DeliveryMode, d.Expiration)
			}
		}
	})
}

func TestDelaysToExchangesAndQueues(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		topic, direct, fanout, q := b.name("topic"), b.name("direct"), b.name("fanout"), b.name("q")
		b.declare(c, Topology{
			Exchanges: []Exchange{{Name: topic}, {Name: direct, Kind: "direct"}, {Name: fanout, Kind: "fanout"}},
			Queues: []Queue{{Name: q, Bindings: []Binding{
				{Exchange: topic, RoutingKey: "eu.*"}, {Exchange: direct, RoutingKey: "exactly"}, {Exchange: fanout},
			}}},
		})
		got := b.consumeRaw(q)
		type want struct {
			message Message
			due     time.Time
		}
		sent := map[string]want{}
		send := func(id string, m Message) {
			m.MessageID = id
			before := time.Now()
			if err := c.Publish(t.Context(), m); err != nil {
				t.Fatal(id, err)
			}
			sent[id] = want{message: m, due: m.due(before)}
		}
		send("topic", Message{Exchange: topic, RoutingKey: "eu.new", After: 1200 * time.Millisecond})
		send("direct", Message{Exchange: direct, RoutingKey: "exactly", After: time.Second})
		send("fanout", Message{Exchange: fanout, RoutingKey: "whatever", After: 50 * time.Millisecond})
		send("queue", Message{RoutingKey: q, At: time.Now().Add(1700 * time.Millisecond), Transient: true})
		send("cc", Message{Exchange: direct, RoutingKey: "nothing", After: 300 * time.Millisecond, Headers: map[string]any{"CC": []any{"exactly"}}})
		send("bcc", Message{Exchange: direct, RoutingKey: "nothing", After: 300 * time.Millisecond, Headers: map[string]any{"BCC": []any{"exactly"}}})
		// A message that was delayed before brings its x-death along. RabbitMQ 3 would take it for a cycle.
		send("stale x-death", Message{RoutingKey: q, After: 1100 * time.Millisecond, Headers: map[string]any{
			"x-death": []any{
				map[string]any{"queue": testPrefix + ".delay.100ms", "reason": "expired", "count": int64(1), "exchange": testPrefix + ".delay.100ms", "routing-keys": []any{q}},
				map[string]any{"queue": testPrefix + ".delay.1s", "reason": "expired", "count": int64(1), "exchange": testPrefix + ".delay", "routing-keys": []any{q}},
			},
		}})
		for range sent {
			d := receive(t, "delayed message", got)
			w, ok := sent[d.MessageId]
			if !ok {
				t.Fatalf("unexpected message %q", d.MessageId)
			}
			late := time.Since(w.due)
			if late < 0 || late > 2*time.Second {
				t.Errorf("%s: %v late", d.MessageId, late)
			}
			if d.RoutingKey != w.message.RoutingKey || d.DeliveryMode != amqp.Persistent {
				t.Errorf("%s: key %q, mode %d", d.MessageId, d.RoutingKey, d.DeliveryMode)
			}
			if _, visible := d.Headers["BCC"]; visible {
				t.Errorf("%s: the ladder key is visible: %v", d.MessageId, d.Headers)
			}
			if due, _ := d.Headers["due-time"].(int64); due < w.due.UnixMilli() || due > w.due.Add(time.Second).UnixMilli() {
				t.Errorf("%s: due-time %v, want %v", d.MessageId, d.Headers["due-time"], w.due.UnixMilli())
			}
			delete(sent, d.MessageId)
		}
	})
}

func TestWhatPublishRefuses(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.workQueue(c, Quorum)
		for what, m := range map[string]Message{
			"both After and At":   {RoutingKey: q, After: time.Hour, At: time.Now().Add(time.Hour)},
			"TTL together with":   {RoutingKey: q, After: time.Hour, TTL: time.Minute},
			"dm.":                 {Exchange: "amq.topic", RoutingKey: "dm.5", After: time.Hour},
			`"dm.1"`:              {RoutingKey: q, After: time.Hour, Headers: map[string]any{"CC": []any{"dm.1"}}},
			`"dm.2"`:              {RoutingKey: q, After: time.Hour, Headers: map[string]any{"BCC": []any{"dm.2"}}},
			"header CC is string": {RoutingKey: q, After: time.Hour, Headers: map[string]any{"CC": "a"}},
			"longer than the":     {RoutingKey: q, After: 400 * 24 * time.Hour},
			"neither Exchange":    {Body: []byte("x")},
			"RoutingKey is":       {RoutingKey: strings.Repeat("k", 256)},
			`header "bad"`:        {RoutingKey: q, Headers: map[string]any{"bad": struct{}{}}},
			"negative TTL":        {RoutingKey: q, TTL: -1},
			"one frame":           {RoutingKey: q, Headers: map[string]any{"big": strings.Repeat("x", 200_000)}},
		} {
			e := publishError(t, c.Publish(t.Context(), m), ErrNotSent, false)
			if !strings.Contains(e.Error(), what) {
				t.Errorf("error %q does not say %q", e.Error(), what)
			}
		}
		e := publishError(t, c.Publish(t.Context(), Message{Exchange: "dmroot.nowhere", RoutingKey: "k"}), ErrRefused, false)
		if !strings.Contains(e.Error(), "no exchange 'dmroot.nowhere'") {
			t.Error(e.Error())
		}
		publishError(t, c.Publish(t.Context(), Message{Exchange: "dmroot.nowhere", RoutingKey: "k", After: time.Second}), ErrRefused, false)
		publishError(t, c.Publish(t.Context(), Message{RoutingKey: "dmroot.nowhere", After: time.Second}), ErrRefused, false)
		publishError(t, c.Publish(t.Context(), Message{RoutingKey: "dmroot.nowhere"}), ErrUnroutable, false)
		other := b.connect(func(o *Options) { o.Prefix = "dmroot.never" })
		e = publishError(t, other.Publish(t.Context(), Message{RoutingKey: q, After: time.Second}), ErrRefused, false)
		if !strings.Contains(e.Error(), `ladder "dmroot.never" is not declared`) {
			t.Error(e.Error())
		}
		// And the client is none the worse.
		if err := c.Publish(t.Context(), Message{RoutingKey: q}); err != nil {
			t.Error(err)
		}
	})
}

func TestReturnsAndNacksFindTheirMessage(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q, full := b.name("q"), b.name("full")
		b.declare(c, Topology{Queues: []Queue{
			{Name: q},
			{Name: full, Type: Classic, Args: map[string]any{"x-max-length": 1, "x-overflow": "reject-publish"}},
		}})
		if err := c.Publish(t.Context(), Message{RoutingKey: full}); err != nil {
			t.Fatal(err)
		}
		const each = 300
		handles := map[string][]*Confirmation{}
		for i := range each {
			for _, key := range []string{q, full, "dmroot.nowhere"} {
				m := Message{RoutingKey: key, Body: fmt.Appendf(nil, "%d", i)}
				if i%2 == 0 {
					m.MessageID = "the same"
				}
				handles[key] = append(handles[key], c.PublishAsync(t.Context(), m))
			}
		}
		for _, h := range handles[q] {
			if err := h.Wait(t.Context()); err != nil {
				t.Fatal("to an existing queue:", err)
			}
		}
		for _, h := range handles[full] {
			publishError(t, h.Wait(t.Context()), ErrNacked, true)
		}
		for _, h := range handles["dmroot.nowhere"] {
			publishError(t, h.Wait(t.Context()), ErrUnroutable, false)
		}
		if n := b.ready(q); n != each {
			t.Errorf("%d messages stored, want %d", n, each)
		}
	})
}

func TestBrokerRefusesOneMessage(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.workQueue(c, Quorum)
		// A user id that is not the connection's makes the broker close the channel.
		e := publishError(t, c.Publish(t.Context(), Message{RoutingKey: q, UserID: "somebody-else"}), ErrRefused, false)
		if !isCode(e.Err, amqp.PreconditionFailed) {
			t.Errorf("cause is %v", e.Err)
		}
		if err := c.Publish(t.Context(), Message{RoutingKey: q, UserID: "guest"}); err != nil {
			t.Error("after the refusal:", err)
		}
	})
}

func TestPublishThroughReconnect(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		p := newProxy(t, b.url)
		back := make(chan ReconnectEvent, 100)
		c := b.connectTo(p.url(b.url), func(o *Options) {
			o.Hooks.Reconnect = func(e ReconnectEvent) {
				if e.Connection == "publish" {
					back <- e
				}
			}
		})
		q := b.workQueue(c, Quorum)
		if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte("before")}); err != nil {
			t.Fatal(err)
		}

		// The confirm is on its way when the connection is cut: nobody can know.
		release := p.holdReplies()
		h := c.PublishAsync(t.Context(), Message{RoutingKey: q, Body: []byte("in doubt")})
		until(t, "the message to be stored", func() bool { return b.ready(q) == 2 })
		p.refuse(true)
		p.cut()
		release()
		publishError(t, h.Wait(t.Context()), ErrUnknown, true)
		if e := receive(t, "loss", back); e.Connected || e.Try != 0 || e.Err == nil {
			t.Errorf("first event %+v", e)
		}
		if e := receive(t, "failed try", back); e.Connected || e.Try != 1 || e.Err == nil {
			t.Errorf("second event %+v", e)
		}
		// While it is down a publish waits for the connection, but not longer than its context.
		publishError(t, c.Publish(within(t, 50*time.Millisecond), Message{RoutingKey: q}), ErrNotSent, false)
		waiting := make(chan error, 1)
		go func() {
			waiting <- c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte("later"), After: 100 * time.Millisecond})
		}()
		p.refuse(false)
		for e := receive(t, "reconnect", back); !e.Connected; {
			e = receive(t, "reconnect", back)
		}
		if err := receive(t, "publish", waiting); err != nil {
			t.Error(err)
		}
		got := b.consumeRaw(q)
		for _, want := range []string{"before", "in doubt", "later"} {
			if d := receive(t, want, got); string(d.Body) != want {
				t.Errorf("got %q, want %q", d.Body, want)
			}
		}
	})
}

func TestConnectTriesEachURL(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		dead := newProxy(t, b.url)
		dead.refuse(true)
		c := b.connectTo(dead.url(b.url) + "," + b.url)
		if err := c.Publish(t.Context(), Message{RoutingKey: b.workQueue(c, Quorum)}); err != nil {
			t.Error(err)
		}
		_, err := Connect(t.Context(), dead.url(b.url), Options{})
		if err == nil || strings.Contains(err.Error(), "guest:guest") {
			t.Errorf("error %v must be there and hide the password", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Connect(ctx, b.url, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

func TestShutdownWaitsForConfirms(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect(func(o *Options) { o.MaxInFlight = 50 })
		q := b.workQueue(c, Quorum)
		var handles []*Confirmation
		for range 200 {
			handles = append(handles, c.PublishAsync(t.Context(), Message{RoutingKey: q}))
		}
		if err := c.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, h := range handles {
			select {
			case <-h.Done():
				if err := h.Wait(t.Context()); err != nil {
					t.Fatal(i, err)
				}
			default:
				t.Fatalf("message %d has no confirm yet", i)
			}
		}
		if n := b.ready(q); n != 200 {
			t.Errorf("%d messages stored", n)
		}
		publishError(t, c.Publish(t.Context(), Message{RoutingKey: q}), ErrClosed, false)
		if err := c.Declare(t.Context(), Topology{}); !errors.Is(err, ErrClosed) {
			t.Errorf("declare after shutdown: %v", err)
		}
		if err := c.Shutdown(t.Context()); err != nil {
			t.Errorf("second shutdown: %v", err)
		}
	})
}
