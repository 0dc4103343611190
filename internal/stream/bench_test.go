package stream

import (
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// T is what tests and rapid have in common.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// bench is a stream in a store that can be started again.
type bench struct {
	T
	*Stream
	fs       vfs.FS
	clock    *clock.Virtual
	settings queue.Settings
	tail     int

	onFailure func(error) // of the store
}

const streamID = 7

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newBench(t T, set func(*queue.Settings)) *bench {
	b := &bench{T: t, fs: vfs.NewMem(), clock: clock.NewVirtual(start), settings: queue.Defaults(queue.Stream, true)}
	if set != nil {
		set(&b.settings)
	}
	b.open()
	return b
}

func (b *bench) open() {
	b.Helper()
	s, err := store.Open("data", store.Options{FS: b.fs, OnFailure: b.onFailure})
	b.must(err)
	b.Stream = New(Options{
		Name: "s", VHost: "/", Settings: b.settings, ID: streamID, Store: s, Clock: b.clock,
		Logger: slog.New(slog.DiscardHandler), tail: b.tail,
	})
	b.Start()
}

func (b *bench) shut() {
	b.Helper()
	b.must(b.store.Close())
	b.Close()
}

func (b *bench) restart() {
	b.Helper()
	b.shut()
	b.open()
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func text(body string, headers ...wire.Field) *message.Message {
	properties := []byte{0, 0}
	if len(headers) > 0 {
		properties = wire.Properties{Flags: wire.FlagHeaders, Headers: headers}.AppendTo(nil)
	}
	return &message.Message{Keys: []string{"s"}, Properties: properties, Body: []byte(body), Expiration: message.NoExpiration, Priority: message.NoPriority}
}

// publish appends messages and waits until they are written.
func (b *bench) publish(all ...*message.Message) {
	b.Helper()
	tx := b.store.Begin()
	for _, m := range all {
		if o := b.Enqueue(tx, m); o != queue.Accepted {
			b.Fatalf("outcome %v", o)
		}
	}
	done := make(written, 1)
	tx.Commit(done, 0)
	b.must(<-done)
}

// fill appends so many messages, whose bodies are their offsets.
func (b *bench) fill(n int) {
	b.Helper()
	first := int(b.next)
	all := make([]*message.Message, n)
	for i := range all {
		all[i] = text(strconv.Itoa(first + i))
	}
	b.publish(all...)
}

type written chan error

func (w written) Committed(_ uint64, err error) { w <- err }

// client consumes.
type client struct {
	queue.Consumer
	mu   sync.Mutex
	cond sync.Cond
	got  []queue.Delivery
	room int // it refuses when it has none
	gone bool
}

func (b *bench) consume(prefetch int, arguments ...wire.Field) *client {
	b.Helper()
	c := &client{room: 1 << 30}
	c.cond.L = &c.mu
	c.Consumer = queue.Consumer{Sink: c, Prefetch: prefetch, Arguments: arguments}
	b.must(b.Consume(&c.Consumer))
	return c
}

func from(v any) wire.Field { return wire.Field{Name: "x-stream-offset", Value: v} }

func (c *client) Deliver(_ *queue.Consumer, d queue.Delivery) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room == 0 {
		return false
	}
	c.room--
	c.got = append(c.got, d)
	c.cond.Broadcast()
	return true
}

func (c *client) TimedOut(*queue.Consumer) {}

func (c *client) QueueGone(*queue.Consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
}

// take waits for n deliveries and takes them.
func (c *client) take(n int) []queue.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.got) < n {
		c.cond.Wait()
	}
	got := c.got[:n:n]
	c.got = c.got[n:]
	return got
}

func (c *client) has() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got)
}

// idle waits until the stream has nothing to do for anybody.
func (b *bench) idle() { b.active.Wait() }

func bodies(list []queue.Delivery) (all []string) {
	for _, d := range list {
		all = append(all, string(d.Message.Body))
	}
	return all
}

func settle(list []queue.Delivery) {
	for _, d := range list {
		d.Queue.Ack(nil, d.Entry)
	}
}

var _ T = (*testing.T)(nil)
