package vhost

import (
	"slices"
	"sync"
	"testing"

	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// tap consumes from a stream from its beginning.
type tap struct {
	mu   sync.Mutex
	cond sync.Cond
	got  []string
}

func (k *tap) Deliver(_ *queue.Consumer, d queue.Delivery) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.got = append(k.got, string(d.Message.Body))
	k.cond.Broadcast()
	return true
}

func (k *tap) QueueGone(*queue.Consumer) {}
func (k *tap) TimedOut(*queue.Consumer)  {}

// reads fails the test unless these are the first messages of a stream.
func (b *bench) reads(stream string, want ...string) {
	b.t.Helper()
	k := &tap{}
	k.cond.L = &k.mu
	c := &queue.Consumer{Sink: k, Prefetch: 1000, Arguments: wire.Table{{Name: "x-stream-offset", Value: "first"}}}
	b.must(b.Consume(nil, stream, c))
	k.mu.Lock()
	defer func() {
		k.mu.Unlock()
		b.Cancel(c)
	}()
	for len(k.got) < len(want) {
		k.cond.Wait()
	}
	if got := k.got[:len(want)]; !slices.Equal(got, want) {
		b.t.Fatalf("stream %s begins with %v, want %v", stream, got, want)
	}
}

func (b *bench) declareStream(name string, args ...wire.Field) {
	b.t.Helper()
	b.declareQueue(name, append(args, wire.Field{Name: "x-queue-type", Value: "stream"})...)
}

func TestStreamBesideQueues(t *testing.T) {
	b := newBench(t)
	b.declareStream("s")
	b.declareQueue("q", wire.Field{Name: "x-max-length", Value: int32(1)}, wire.Field{Name: "x-dead-letter-exchange", Value: ""}, wire.Field{Name: "x-dead-letter-routing-key", Value: "s"})
	b.bindQueue("amq.fanout", "", "s")
	b.bindQueue("amq.fanout", "", "q")
	for _, body := range []string{"1", "2"} {
		if o := b.publish(to("amq.fanout", "", body)); o != Routed {
			t.Fatalf("outcome %v", o)
		}
	}
	b.reads("s", "1", "2", "1") // the last is the dead letter
	b.restart()
	b.publish(to("amq.fanout", "", "3"))
	b.reads("s", "1", "2", "1", "3", "2")
	b.holds("q", "3")
	_, err := b.PurgeQueue(t.Context(), nil, "s")
	refused(t, err, wire.NotImplemented, "queue.purge not supported by stream queues queue 's' in vhost '/'")
	_, _, err = b.Get(nil, "s", &queue.Consumer{NoAck: true})
	refused(t, err, wire.NotImplemented, "basic.get not supported by stream queues queue 's' in vhost '/'")
	id := b.queues["s"].ID()
	n, err := b.DeleteQueue(t.Context(), nil, QueueDelete{Name: "s", IfEmpty: true, IfUnused: true})
	b.must(err)
	if _, left := b.store.Queues()[id]; n != 0 || left {
		t.Fatalf("deleted with %d, left in the store %v", n, left)
	}
	b.restart()
	_, err = b.CheckQueue(nil, "s")
	refused(t, err, wire.NotFound, "no queue 's' in vhost '/'")
}

func TestPolicyLimitsAStream(t *testing.T) {
	b := newBench(t)
	b.declareStream("s", wire.Field{Name: "x-max-length-bytes", Value: int32(1 << 30)})
	b.put("small", "^s$", 0, policy.Definition{"stream-max-segment-size-bytes": int64(500)})
	for range 200 {
		b.publish(to("", "s", "0123456789"))
	}
	count := func() int {
		c, err := b.CheckQueue(nil, "s")
		b.must(err)
		return c.Messages
	}
	if n := count(); n != 200 {
		t.Fatalf("%d messages before there is a limit", n)
	}
	b.put("small", "^s$", 0, policy.Definition{"stream-max-segment-size-bytes": int64(500), "max-length-bytes": int64(2000)})
	small := count()
	if small >= 200 || small < 20 {
		t.Fatalf("%d messages with a limit of 2000 bytes", small)
	}
	b.restart()
	if n := count(); n != small {
		t.Fatalf("%d messages after the restart, before %d", n, small)
	}
	if s := b.settings("s"); s.MaxBytes != 2000 || s.SegmentBytes != 500 {
		t.Fatalf("settings %+v", s)
	}
}
