package vhost

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// A crash while a transaction is committed leaves all of it or nothing.
func TestCommitIsAtomic(t *testing.T) {
	whole := map[int]int{}
	for trial := range 40 {
		memory := vfs.NewCrashableMem()
		b := newBenchOn(t, memory)
		queues := []string{"in", "a", "b", "c"}
		for _, name := range queues {
			b.declareQueue(name)
		}
		persistent := wire.Properties{Flags: wire.FlagDeliveryMode, DeliveryMode: wire.Persistent}.AppendTo(nil)
		b.publishDurably("in", persistent)
		d, ok, err := b.Get(nil, "in", &queue.Consumer{})
		if !ok || err != nil {
			t.Fatalf("get: %v, %v", ok, err)
		}

		crashed := make(chan *vfs.MemFS)
		go func() {
			for range rand.IntN(2000) { // any moment will do
				runtime.Gosched()
			}
			crashed <- memory.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(uint64(trial), 1))})
		}()
		tx := b.Begin()
		var touched []queue.Target
		for _, name := range queues[1:] {
			m, err := message.New("", name, persistent, nil)
			b.must(err)
			p, err := b.Route(m)
			b.must(err)
			outcome, reached := b.PublishIn(tx, p)
			if outcome != Routed {
				t.Fatalf("%s: outcome %d", name, outcome)
			}
			touched = append(touched, reached...)
		}
		d.Queue.Ack(tx, d.Entry)
		b.must(tx.Wait(t.Context()))
		for _, q := range touched {
			q.Settle()
		}

		after := newBenchOn(t, <-crashed)
		count := 0
		for _, name := range queues[1:] {
			q, err := after.CheckQueue(nil, name)
			b.must(err)
			count += q.Messages
		}
		in, err := after.CheckQueue(nil, "in")
		b.must(err)
		if !(count == 0 && in.Messages == 1 || count == 3 && in.Messages == 0) {
			t.Fatalf("trial %d: %d of 3 messages were published, and %d is left to be acked", trial, count, in.Messages)
		}
		whole[count]++
	}
	t.Logf("nothing was left %d times, all of it %d times", whole[0], whole[3])
}

// publishDurably publishes to a queue and waits until that is on disk.
func (b *bench) publishDurably(name string, properties []byte) {
	b.t.Helper()
	m, err := message.New("", name, properties, nil)
	b.must(err)
	p, err := b.Route(m)
	b.must(err)
	tx := b.Begin()
	b.PublishIn(tx, p)
	b.must(tx.Wait(b.t.Context()))
}
