package vhost

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// bench is a host on a virtual clock and a store in memory.
type bench struct {
	*Host
	hosts *Hosts
	t     *testing.T
	clock *clock.Virtual
	fs    vfs.FS
	store *store.Store
}

func newBench(t *testing.T) *bench { return newBenchOn(t, vfs.NewMem()) }

func newBenchOn(t *testing.T, fs vfs.FS) *bench {
	b := &bench{t: t, clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), fs: fs}
	b.open()
	t.Cleanup(func() {
		if err := b.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) open() {
	b.t.Helper()
	var err error
	if b.store, err = store.Open("data", store.Options{FS: b.fs}); err != nil {
		b.t.Fatal(err)
	}
	if b.hosts, err = Open(Options{Store: b.store, Clock: b.clock, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		b.t.Fatal(err)
	}
	b.Host = b.hosts.Host(Default)
	b.hosts.Start()
}

func (b *bench) restart() {
	b.t.Helper()
	b.hosts.Close()
	if err := b.store.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) declareExchange(name, kind string, args ...wire.Field) {
	b.t.Helper()
	b.must(b.DeclareExchange(b.t.Context(), ExchangeDeclare{Name: name, Type: kind, Durable: true, Arguments: args}))
}

func (b *bench) declareQueue(name string, args ...wire.Field) {
	b.t.Helper()
	_, err := b.DeclareQueue(b.t.Context(), nil, QueueDeclare{Name: name, Durable: true, Arguments: args})
	b.must(err)
}

func (b *bench) bindQueue(source, key, queue string) {
	b.t.Helper()
	b.must(b.BindQueue(b.t.Context(), nil, Bind{Source: source, Destination: queue, Key: key}))
}

func (b *bench) publish(m *message.Message) Outcome {
	b.t.Helper()
	o, err := b.Publish(m, nil, 0)
	b.must(err)
	return o
}

func to(exchange, key, body string) *message.Message {
	return &message.Message{Exchange: exchange, Keys: []string{key}, Properties: []byte{0, 0}, Body: []byte(body), Persistent: true, Expiration: message.NoExpiration, Priority: message.NoPriority}
}

func (b *bench) drain(name string) []string {
	b.t.Helper()
	var got []string
	for {
		d, ok, err := b.Get(nil, name, &queue.Consumer{NoAck: true})
		b.must(err)
		if !ok {
			return got
		}
		got = append(got, string(d.Message.Body))
	}
}

func (b *bench) holds(name string, want ...string) {
	b.t.Helper()
	if got := b.drain(name); !slices.Equal(got, want) {
		b.t.Fatalf("queue %s holds %q, want %q", name, got, want)
	}
}

func refused(t *testing.T, err error, code uint16, text string) {
	t.Helper()
	var x *wire.Exception
	if !errors.As(err, &x) || x.Code != code || x.Text != text {
		t.Fatalf("got %v, want %d %s", err, code, text)
	}
}

func TestDefinitionsSurviveARestart(t *testing.T) {
	b := newBench(t)
	b.declareExchange("lost", "fanout")
	b.declareExchange("orders", "topic", wire.Field{Name: "alternate-exchange", Value: "lost"})
	b.declareExchange("inner", "headers")
	b.declareQueue("work", wire.Field{Name: "x-queue-type", Value: "quorum"}, wire.Field{Name: "x-message-ttl", Value: int64(60_000)})
	b.declareQueue("unrouted")
	b.declareQueue("matched")
	b.bindQueue("orders", "eu.#", "work")
	b.bindQueue("lost", "", "unrouted")
	b.must(b.BindExchange(t.Context(), Bind{Source: "orders", Destination: "inner", Key: "us.#"}))
	b.must(b.BindQueue(t.Context(), nil, Bind{Source: "inner", Destination: "matched", Arguments: wire.Table{{Name: "x-match", Value: "any"}, {Name: "kind", Value: "order"}}}))
	if _, err := b.DeclareQueue(t.Context(), nil, QueueDeclare{Name: "passing"}); err != nil {
		t.Fatal(err)
	}
	b.bindQueue("orders", "#", "passing")
	b.restart()

	ours := to("orders", "us.1", "us")
	ours.Properties = wire.Properties{Flags: wire.FlagHeaders, Headers: wire.Table{{Name: "kind", Value: "order"}}}.AppendTo(nil)
	b.publish(ours)
	b.publish(to("orders", "eu.1", "eu"))
	b.publish(to("orders", "asia.1", "asia"))
	b.holds("work", "eu")
	b.holds("matched", "us")
	b.holds("unrouted", "asia")
	_, err := b.CheckQueue(nil, "passing")
	refused(t, err, wire.NotFound, "no queue 'passing' in vhost '/'")
	_, err = b.DeclareQueue(t.Context(), nil, QueueDeclare{Name: "work", Durable: true, Arguments: wire.Table{{Name: "x-queue-type", Value: "quorum"}, {Name: "x-message-ttl", Value: int32(5)}}})
	refused(t, err, wire.PreconditionFailed, "inequivalent arg 'x-message-ttl' for queue 'work' in vhost '/': received '5' but current is '60000'")
}

func TestDeletedStaysDeleted(t *testing.T) {
	b := newBench(t)
	b.declareExchange("x", "direct")
	b.declareQueue("q")
	b.declareQueue("kept")
	b.bindQueue("x", "k", "q")
	b.bindQueue("x", "k", "kept")
	b.must(b.UnbindQueue(t.Context(), nil, Bind{Source: "x", Destination: "kept", Key: "k"}))
	b.publish(to("", "q", "m"))
	if n, err := b.DeleteQueue(t.Context(), nil, QueueDelete{Name: "q"}); n != 1 || err != nil {
		t.Fatalf("deleted with %d messages, %v", n, err)
	}
	b.restart()
	if o := b.publish(to("x", "k", "m")); o != Unroutable {
		t.Fatalf("outcome %v", o)
	}
	b.declareQueue("q")
	b.holds("q")
	b.must(b.DeleteExchange(t.Context(), "x", false))
	b.restart()
	refused(t, b.CheckExchange("x"), wire.NotFound, "no exchange 'x' in vhost '/'")
}

func TestAutoDelete(t *testing.T) {
	b := newBench(t)
	b.must(b.DeclareExchange(t.Context(), ExchangeDeclare{Name: "x", Type: "fanout", AutoDelete: true, Durable: true}))
	if _, err := b.DeclareQueue(t.Context(), nil, QueueDeclare{Name: "q", AutoDelete: true, Durable: true}); err != nil {
		t.Fatal(err)
	}
	b.bindQueue("x", "", "q")
	one, two := &queue.Consumer{Sink: nothing{}}, &queue.Consumer{Sink: nothing{}}
	b.must(b.Consume(nil, "q", one))
	b.must(b.Consume(nil, "q", two))
	b.Cancel(one)
	if _, err := b.CheckQueue(nil, "q"); err != nil {
		t.Fatal(err)
	}
	b.Cancel(two)
	_, err := b.CheckQueue(nil, "q")
	refused(t, err, wire.NotFound, "no queue 'q' in vhost '/'")
	refused(t, b.CheckExchange("x"), wire.NotFound, "no exchange 'x' in vhost '/'")
	b.restart()
	refused(t, b.CheckExchange("x"), wire.NotFound, "no exchange 'x' in vhost '/'")
}

type nothing struct{}

func (nothing) Deliver(*queue.Consumer, queue.Delivery) bool { return false }
func (nothing) QueueGone(*queue.Consumer)                    {}
func (nothing) TimedOut(*queue.Consumer)                     {}

func TestExclusiveQueueBelongsToItsConnection(t *testing.T) {
	b := newBench(t)
	mine, other := new(int), new(int)
	d := QueueDeclare{Name: "q", Exclusive: true, Durable: true}
	if _, err := b.DeclareQueue(t.Context(), mine, d); err != nil {
		t.Fatal(err)
	}
	if _, err := b.DeclareQueue(t.Context(), mine, d); err != nil {
		t.Fatalf("declared again: %v", err)
	}
	text := "cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration."
	_, err := b.DeclareQueue(t.Context(), other, d)
	refused(t, err, wire.ResourceLocked, text)
	_, _, err = b.Get(other, "q", &queue.Consumer{NoAck: true})
	refused(t, err, wire.ResourceLocked, text)
	b.publish(to("", "q", "anybody may publish"))
	b.Disconnected(other)
	if ok, err := b.CheckQueue(mine, "q"); err != nil || ok.Messages != 1 {
		t.Fatalf("%+v, %v", ok, err)
	}
	b.Disconnected(mine)
	_, err = b.CheckQueue(mine, "q")
	refused(t, err, wire.NotFound, "no queue 'q' in vhost '/'")
}

func TestRetryLoop(t *testing.T) {
	b := newBench(t)
	b.declareExchange("retry", "direct")
	b.declareQueue("work", wire.Field{Name: "x-dead-letter-exchange", Value: "retry"})
	b.declareQueue("wait", wire.Field{Name: "x-message-ttl", Value: int32(1000)},
		wire.Field{Name: "x-dead-letter-exchange", Value: ""}, wire.Field{Name: "x-dead-letter-routing-key", Value: "work"})
	b.bindQueue("retry", "work", "wait")
	b.publish(to("", "work", "m"))
	for round := range 5 {
		d, ok, err := b.Get(nil, "work", &queue.Consumer{})
		if !ok || err != nil {
			t.Fatalf("round %d: found %v, %v", round, ok, err)
		}
		if round > 0 {
			if n := d.Message.Deaths.Deaths.Count("work", "rejected"); n != int64(round) {
				t.Fatalf("round %d: rejected %d times", round, n)
			}
		}
		tx := b.Begin()
		d.Queue.Reject(tx, true, d.Entry)
		tx.End()
		d.Queue.Settle()
		b.clock.Advance(999 * time.Millisecond)
		if c, _ := b.CheckQueue(nil, "work"); c.Messages != 0 {
			t.Fatalf("round %d: it is back early", round)
		}
		b.clock.Advance(time.Millisecond)
	}
}

func TestAutomaticCycleIsDropped(t *testing.T) {
	b := newBench(t)
	for from, to := range map[string]string{"a": "b", "b": "a"} {
		b.declareQueue(from, wire.Field{Name: "x-message-ttl", Value: int32(10)},
			wire.Field{Name: "x-dead-letter-exchange", Value: ""}, wire.Field{Name: "x-dead-letter-routing-key", Value: to})
	}
	b.publish(to("", "a", "m"))
	b.clock.Advance(15 * time.Millisecond)
	if c, _ := b.CheckQueue(nil, "b"); c.Messages != 1 {
		t.Fatal("it has not reached b")
	}
	b.clock.Advance(time.Second)
	b.holds("a")
	b.holds("b")
}

func TestDeadLetterKeepsTheKeysOfCCAndBCC(t *testing.T) {
	b := newBench(t)
	b.declareExchange("dlx", "direct")
	b.declareQueue("work", wire.Field{Name: "x-message-ttl", Value: int32(10)}, wire.Field{Name: "x-dead-letter-exchange", Value: "dlx"})
	for _, key := range []string{"work", "copy", "blind"} {
		b.declareQueue("by-" + key)
		b.bindQueue("dlx", key, "by-"+key)
	}
	m := to("", "work", "m")
	m.Keys, m.BCC = append(m.Keys, "copy"), []string{"blind"}
	b.publish(m)
	b.clock.Advance(10 * time.Millisecond)
	for _, key := range []string{"work", "copy", "blind"} {
		b.holds("by-"+key, "m")
	}
}

func TestRoutedOnceToEachQueue(t *testing.T) {
	b := newBench(t)
	b.declareExchange("x", "topic")
	b.declareExchange("y", "fanout")
	b.declareQueue("q")
	b.bindQueue("x", "#", "q")
	b.bindQueue("x", "a.*", "q")
	b.bindQueue("y", "", "q")
	b.must(b.BindExchange(t.Context(), Bind{Source: "x", Destination: "y", Key: "a.b"}))
	b.must(b.BindExchange(t.Context(), Bind{Source: "y", Destination: "x"}))
	b.publish(to("x", "a.b", "m"))
	b.holds("q", "m")
}

func TestPublishToFullQueueIsRefused(t *testing.T) {
	b := newBench(t)
	b.declareQueue("q", wire.Field{Name: "x-max-length", Value: int32(1)}, wire.Field{Name: "x-overflow", Value: "reject-publish"})
	b.declareQueue("open")
	for _, q := range []string{"q", "open"} {
		b.bindQueue("amq.fanout", "", q)
	}
	if o := b.publish(to("amq.fanout", "", "1")); o != Routed {
		t.Fatalf("first: %v", o)
	}
	if o := b.publish(to("amq.fanout", "", "2")); o != Refused {
		t.Fatalf("second: %v", o)
	}
	b.holds("open", "1", "2")
	b.holds("q", "1")
}

func TestNamesOfTheServer(t *testing.T) {
	b := newBench(t)
	one, err := b.DeclareQueue(t.Context(), nil, QueueDeclare{})
	b.must(err)
	two, err := b.DeclareQueue(t.Context(), nil, QueueDeclare{})
	b.must(err)
	if one.Name == two.Name || len(one.Name) != len("amq.gen-")+22 {
		t.Fatalf("names %q and %q", one.Name, two.Name)
	}
}

func TestManyQueuesAfterRestartKeepTheirMessages(t *testing.T) {
	b := newBench(t)
	for i := range 50 {
		name := "q" + strconv.Itoa(i)
		b.declareQueue(name, wire.Field{Name: "x-max-priority", Value: int32(3)})
		b.publish(to("", name, name))
	}
	for i := 0; i < 50; i += 2 {
		_, err := b.DeleteQueue(t.Context(), nil, QueueDelete{Name: "q" + strconv.Itoa(i)})
		b.must(err)
	}
	b.restart()
	b.declareQueue("new")
	b.publish(to("", "new", "new"))
	b.restart()
	for i := 1; i < 50; i += 2 {
		b.holds("q"+strconv.Itoa(i), "q"+strconv.Itoa(i))
	}
	b.holds("new", "new")
}

func delayedBy(exchange, key, body string, ms any) *message.Message {
	m := to(exchange, key, body)
	m.Properties = wire.Properties{Flags: wire.FlagHeaders, Headers: wire.Table{{Name: "a", Value: "1"}, {Name: "x-delay", Value: ms}}}.AppendTo(nil)
	return m
}

func TestDelayedMessageExchange(t *testing.T) {
	b := newBench(t)
	b.declareExchange("later", "x-delayed-message", wire.Field{Name: "x-delayed-type", Value: "topic"})
	b.declareExchange("before", "fanout")
	b.declareQueue("q")
	b.bindQueue("later", "a.*", "q")
	b.must(b.BindExchange(t.Context(), Bind{Source: "before", Destination: "later"}))
	for body, ms := range map[string]any{"int": int32(3000), "long": int64(2000), "text": "1000", "float": 4000.7} {
		if o := b.publish(delayedBy("later", "a.b", body, ms)); o != Routed {
			t.Fatalf("%s: outcome %v", body, o)
		}
	}
	b.publish(delayedBy("before", "a.b", "by a binding", int32(5000)))
	b.publish(delayedBy("later", "other", "nobody's", int32(10)))
	b.publish(delayedBy("later", "a.b", "negative", int32(-5)))
	b.publish(to("later", "a.b", "none"))
	d, _, _ := b.Get(nil, "q", &queue.Consumer{NoAck: true})
	if got := string(d.Message.Body); got != "negative" {
		t.Fatalf("first came %q", got)
	}
	b.holds("q", "none")
	b.clock.Advance(time.Second - 1)
	b.holds("q")
	b.restart()
	b.clock.Advance(1)
	d, ok, _ := b.Get(nil, "q", &queue.Consumer{NoAck: true})
	if !ok || string(d.Message.Body) != "text" {
		t.Fatalf("after a second: %v", d.Message)
	}
	want := wire.Table{{Name: "a", Value: "1"}, {Name: "x-delay", Value: int32(-1000)}}
	if got := d.Message.Headers(); !slices.Equal(got, want) {
		t.Fatalf("headers %v, want %v", got, want)
	}
	b.clock.Advance(time.Minute)
	b.holds("q", "long", "int", "float", "by a binding")

	_, err := b.Publish(delayedBy("later", "a.b", "too long", int64(315_360_000_001)), nil, 0)
	refused(t, err, wire.PreconditionFailed, "header 'x-delay' is 315360000001, more than the longest delay of 315360000000 ms (ten years)")
	b.publish(delayedBy("later", "a.b", "ten years", int64(315_360_000_000)))
	b.must(b.DeleteExchange(t.Context(), "later", false))
	b.restart()
	b.clock.Advance(11 * 365 * 24 * time.Hour)
	b.holds("q")
}

func TestDelayedMessageExchangeNeedsAType(t *testing.T) {
	b := newBench(t)
	for _, args := range []wire.Table{nil, {{Name: "x-delayed-type", Value: "round"}}, {{Name: "x-delayed-type", Value: "x-delayed-message"}}} {
		err := b.DeclareExchange(t.Context(), ExchangeDeclare{Name: "later", Type: "x-delayed-message", Arguments: args})
		refused(t, err, wire.PreconditionFailed, "Invalid argument, 'x-delayed-type' must be an existing exchange type")
	}
}

// The store is closed before the host. What timers move meanwhile, and even what they
// move into queues that are closed already, is where it was after the next start.
func TestWhatMovesWhileStoppingIsKeptAsItWas(t *testing.T) {
	b := newBench(t)
	b.declareExchange("later", "x-delayed-message", wire.Field{Name: "x-delayed-type", Value: "fanout"})
	b.declareQueue("done")
	b.bindQueue("later", "", "done")
	b.declareQueue("wait", wire.Field{Name: "x-message-ttl", Value: int32(1000)},
		wire.Field{Name: "x-dead-letter-exchange", Value: ""}, wire.Field{Name: "x-dead-letter-routing-key", Value: "done"})
	for i := range 1000 {
		b.publish(to("", "wait", strconv.Itoa(i)))
		b.publish(delayedBy("later", "", "delayed "+strconv.Itoa(i), int32(1000)))
	}
	b.must(b.store.Close())
	b.queues["done"].Close()
	b.clock.Advance(time.Second)
	b.hosts.Close()
	b.open()
	b.clock.Advance(0)
	got := b.drain("done")
	slices.Sort(got)
	if n := len(slices.Compact(slices.Clone(got))); n != 2000 || len(got) != 2000 {
		t.Fatalf("%d messages came, %d different ones, want 2000", len(got), n)
	}
}

func TestQueueExpiresThoughItsMakerIsGone(t *testing.T) {
	b := newBench(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, _ = b.DeclareQueue(gone, nil, QueueDeclare{Name: "q", Durable: true, Arguments: wire.Table{{Name: "x-expires", Value: int32(1000)}}})
	b.clock.Advance(time.Second)
	_, err := b.CheckQueue(nil, "q")
	refused(t, err, wire.NotFound, "no queue 'q' in vhost '/'")
}
