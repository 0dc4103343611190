package vhost

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// halfDeleted is a host with a queue that was deleted a moment ago: most of its bindings are still to be removed.
func halfDeleted(t *testing.T) *bench {
	b := newBench(t)
	b.declareExchange("rest", "fanout")
	b.declareQueue("rest")
	b.must(b.BindQueue(t.Context(), nil, Bind{Source: "rest", Destination: "rest"}))
	b.declareQueue("q")
	for name, kind := range map[string]string{"x": "topic", "hash": consistentHashType, "random": randomType} {
		b.declareExchange(name, kind, wire.Field{Name: "alternate-exchange", Value: "rest"})
		for i := range 2 * unbound {
			b.must(b.bindNow(Bind{Source: name, Destination: "q", Key: fmt.Sprint(i + 1)}))
		}
	}
	tx := b.store.Begin()
	b.mu.Lock()
	_, err := b.deleteQueue(tx, b.queues["q"], nil)
	b.unbindSome(tx)
	b.mu.Unlock()
	b.must(err)
	b.must(tx.Wait(t.Context()))
	if n := b.definedBindings(); n != 5*unbound+1 {
		t.Fatalf("%d bindings are left in the store, so this tests nothing", n)
	}
	return b
}

// bindNow binds a queue and does not wait until that is durable.
func (b *bench) bindNow(bind Bind) error {
	_, err := b.change(func(tx *store.Tx) error {
		found, err := b.resolve(bind, b.anyQueueEnd)
		if err != nil {
			return err
		}
		return b.addBinding(tx, found)
	})
	return err
}

func (b *bench) definedBindings() int {
	b.t.Helper()
	b.must(b.store.Begin().Wait(b.t.Context())) // until then what ended before is not written
	definitions, err := b.store.Definitions(store.DefinitionKey(kindBinding, ""))
	b.must(err)
	n := 0
	for range definitions {
		n++
	}
	return n
}

func (b *bench) wantBindingsOf(queue string, want ...string) {
	b.t.Helper()
	var keys []string
	for _, bound := range b.BindingsToQueue(queue) {
		keys = append(keys, bound.Key)
	}
	if !slices.Equal(keys, want) {
		b.t.Errorf("bindings of %q: %d, %.100q; want %q", queue, len(keys), keys, want)
	}
}

func TestHalfDeletedQueueDoesNotComeBack(t *testing.T) {
	b := halfDeleted(t)
	b.restart()
	if b.HasQueue("q") {
		t.Error("the queue is back")
	}
	if n := b.definedBindings(); n != 1 {
		t.Errorf("%d bindings in the store, want 1", n)
	}
	b.declareQueue("q")
	b.restart()
	b.wantBindingsOf("q", "q")
}

func TestQueueOfTheNameOfAHalfDeletedOne(t *testing.T) {
	b := halfDeleted(t)
	b.declareQueue("q")
	b.wantBindingsOf("q", "q")
	b.must(b.BindQueue(t.Context(), nil, Bind{Source: "x", Destination: "q", Key: "1"}))
	b.restart()
	b.wantBindingsOf("q", "q", "1")
	if n := b.definedBindings(); n != 2 {
		t.Errorf("%d bindings in the store, want 2", n)
	}
}

func TestHalfDeletedQueueTakesNothing(t *testing.T) {
	b := halfDeleted(t)
	for i, exchange := range []string{"x", "hash", "random"} {
		m := to(exchange, fmt.Sprint(2*unbound), "m")
		if outcome, err := b.Publish(m, nil, 0); outcome != Routed || err != nil {
			t.Errorf("%s: %v, %v", exchange, outcome, err)
		}
		if n := b.Queue("rest").Counts().Ready; n != i+1 {
			t.Errorf("%s: the alternate exchange has given the queue %d messages, want %d", exchange, n, i+1)
		}
	}
	for _, bound := range b.Bindings() {
		if bound.Destination == "q" {
			t.Fatalf("still listed: %v", bound)
		}
	}
}

func TestHostOfTheNameOfAHalfDeletedOne(t *testing.T) {
	b := halfDeleted(t)
	tx := b.store.Begin()
	tx.DeleteDefinition(store.DefinitionKey(kindHost, Default))
	for _, name := range []string{"x", "hash", "random", "rest"} {
		tx.DeleteDefinition(b.exchangeKey(name))
	}
	tx.DeleteDefinition(b.queueKey("rest"))
	b.must(tx.Wait(t.Context()))
	b.restart() // which makes the default host anew
	if n := b.definedBindings(); n != 0 {
		t.Errorf("%d bindings in the store, want none", n)
	}
}

// An exchange with bindings on both sides, one of them to itself, takes them all along, and with it an exchange that is
// deleted with its last binding.
func TestDeletedExchangeTakesItsBindingsAlong(t *testing.T) {
	b := newBench(t)
	b.declareExchange("x", "topic")
	b.must(b.DeclareExchange(t.Context(), ExchangeDeclare{Name: "auto", Type: "fanout", Durable: true, AutoDelete: true}))
	b.declareQueue("q")
	for i := range unbound + 1 {
		b.must(b.bindNow(Bind{Source: "x", Destination: "q", Key: fmt.Sprint(i)}))
	}
	for _, source := range []string{"x", "auto", "amq.direct"} {
		b.must(b.BindExchange(t.Context(), Bind{Source: source, Destination: "x"}))
	}
	b.must(b.DeleteExchange(t.Context(), "x", false))
	b.wantBindingsOf("q", "q")
	if b.Exchange("auto") != nil {
		t.Error("an exchange without bindings stays that is to be deleted with its last one")
	}
	if n := b.definedBindings(); n != 0 {
		t.Errorf("%d bindings in the store, want none", n)
	}
}

// What a client has bound takes no memory once its queue is gone, though the exchange stays.
func TestManyBindingsGiveMemoryBack(t *testing.T) {
	b := newBench(t)
	for _, exchange := range []string{"amq.direct", "amq.fanout", "amq.topic", "amq.headers"} {
		_, err := b.DeclareQueue(t.Context(), b, QueueDeclare{Name: "q", Exclusive: true})
		b.must(err)
		before := heap()
		for i := range 50_000 {
			b.must(b.bindNow(Bind{Source: exchange, Destination: "q", Key: fmt.Sprintf("*.%d.#", i)}))
		}
		full := heap() - before
		b.Disconnected(b)
		left := heap() - before
		t.Logf("%s: %d KiB, %d KiB once they are gone", exchange, full>>10, left>>10)
		if left > full/10 {
			t.Errorf("%s: %d KiB are left of %d", exchange, left>>10, full>>10)
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // for what was pooled
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
