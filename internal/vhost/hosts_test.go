package vhost

import (
	"context"
	"slices"
	"testing"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

func (b *bench) create(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.must(b.hosts.Create(b.t.Context(), Description{Name: name}))
	}
}

// in makes a bench of another host of the same store.
func (b *bench) in(name string) *bench {
	b.t.Helper()
	other := *b
	if other.Host = b.hosts.Host(name); other.Host == nil {
		b.t.Fatalf("there is no vhost %q", name)
	}
	return &other
}

func (b *bench) hostNames() (names []string) {
	for _, h := range b.hosts.All() {
		names = append(names, h.Name())
	}
	return names
}

// Names that would run into each other if keys were not unambiguous.
var awkward = []string{"", "/", "a", "a\x00b", "a\x01b", "a\x01\x01b", "ü/%2F ", "queue"}

func TestHostsAreApartWhateverTheirNames(t *testing.T) {
	b := newBench(t)
	b.create(awkward...)
	for _, name := range awkward {
		h := b.in(name)
		h.declareExchange("x", "direct")
		h.declareQueue("b")
		h.declareQueue("q")
		h.bindQueue("x", "k", "q")
		h.publish(to("x", "k", "in "+name))
	}
	b.restart()
	if got := b.hostNames(); !slices.Equal(got, slices.Sorted(slices.Values(awkward))) {
		t.Fatalf("after a restart the hosts are %q", got)
	}
	for _, name := range awkward {
		h := b.in(name)
		if len(h.queues) != 2 || len(h.exchanges) != 8 {
			t.Errorf("vhost %q has %d queues and %d exchanges", name, len(h.queues), len(h.exchanges))
		}
		h.publish(to("x", "k", "again"))
		if got := h.drain("q"); !slices.Equal(got, []string{"in " + name, "again"}) {
			t.Errorf("vhost %q has the messages %q", name, got)
		}
	}
}

func TestHostsShareTheNumbersOfTheStore(t *testing.T) {
	b := newBench(t)
	b.create("other")
	seen := map[store.QueueID]string{}
	check := func() {
		for _, h := range b.hosts.All() {
			for _, id := range h.ids() {
				if had, taken := seen[id]; taken && had != h.name {
					t.Fatalf("number %d is used in %q and %q", id, had, h.name)
				}
				seen[id] = h.name
			}
		}
	}
	for _, name := range []string{"other", "/"} {
		b.in(name).declareQueue("q")
		b.in(name).declareExchange("x", delayedMessage, wire.Field{Name: delayedType, Value: "direct"})
		b.in(name).publish(delayedBy("x", "", "m", int32(1000)))
	}
	check()
	b.restart()
	for _, name := range []string{"/", "other"} {
		b.in(name).declareQueue("q2")
	}
	check()
	if len(seen) != 6 {
		t.Errorf("%d numbers are in use, want 6", len(seen))
	}
}

func TestDeleteHost(t *testing.T) {
	b := newBench(t)
	b.create("gone", "stays")
	gone, stays := b.in("gone"), b.in("stays")
	for _, h := range []*bench{gone, stays} {
		h.declareExchange("x", "fanout")
		h.declareExchange("later", delayedMessage, wire.Field{Name: delayedType, Value: "fanout"})
		h.declareQueue("q")
		h.bindQueue("x", "", "q")
		h.publish(to("x", "", "m"))
		h.publish(delayedBy("later", "", "m", int32(1000)))
	}
	ids := gone.ids()
	existed, err := b.hosts.Delete(t.Context(), "gone")
	if err != nil || !existed {
		t.Fatal(existed, err)
	}
	if existed, _ := b.hosts.Delete(t.Context(), "gone"); existed {
		t.Error("it was deleted twice")
	}
	if _, err := gone.DeclareQueue(t.Context(), nil, QueueDeclare{Name: "late", Durable: true}); err == nil || err.Error() != "320 CONNECTION_FORCED - vhost 'gone' is deleted" {
		t.Errorf("a queue was declared in a deleted vhost: %v", err)
	}
	if err := gone.DeclareExchange(t.Context(), ExchangeDeclare{Name: "late", Type: "direct", Durable: true}); err == nil {
		t.Error("an exchange was declared in a deleted vhost")
	}
	if o, _ := gone.Publish(to("", "q", "late"), nil, 0); o != Unroutable {
		t.Errorf("a message to a deleted vhost is %v", o)
	}
	for id := range b.store.Queues() {
		if slices.Contains(ids, id) {
			t.Errorf("the store still has number %d", id)
		}
	}
	b.create("gone")
	b.restart()
	if got := b.in("gone"); len(got.queues) != 0 || len(got.exchanges) != 7 {
		t.Errorf("a vhost made anew has %d queues and %d exchanges", len(got.queues), len(got.exchanges))
	}
	if got := b.in("stays").drain("q"); !slices.Equal(got, []string{"m"}) {
		t.Errorf("the other vhost has %q", got)
	}
}

func TestDeletedHostsDoNotComeBack(t *testing.T) {
	b := newBench(t)
	b.create("other")
	if _, err := b.hosts.Delete(t.Context(), Default); err != nil {
		t.Fatal(err)
	}
	b.restart()
	if got := b.hostNames(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("the hosts are %q", got)
	}
}

func TestDeletingIsPartOfTheUnitOfWork(t *testing.T) {
	b := newBench(t)
	b.create("gone")
	b.hosts.deleting = func(tx *store.Tx, name string) { tx.SetDefinition("deleted", []byte(name)) }
	if _, err := b.hosts.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	definitions, err := b.store.Definitions("deleted")
	b.must(err)
	for _, value := range definitions {
		if string(value) == "gone" {
			return
		}
	}
	t.Error("what was added while deleting is not in the store")
}

func TestDescriptions(t *testing.T) {
	b := newBench(t)
	d := Description{Name: "v", Description: "of a team", Tags: []string{"a", "b"}, DefaultQueueType: "quorum"}
	b.must(b.hosts.Create(t.Context(), Description{Name: "v"}))
	b.in("v").declareQueue("q")
	b.must(b.hosts.Create(t.Context(), d))
	b.restart()
	if got := b.in("v").Description(); got.Description != d.Description || !slices.Equal(got.Tags, d.Tags) || got.DefaultQueueType != d.DefaultQueueType {
		t.Errorf("got %+v", got)
	}
	if _, there := b.in("v").queues["q"]; !there {
		t.Error("a new description has emptied the vhost")
	}
	if b.Host.Description().Description != "Default virtual host" {
		t.Errorf("the default vhost is described as %+v", b.Host.Description())
	}
}

func TestCancelledCreationStillHappens(t *testing.T) {
	b := newBench(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	_ = b.hosts.Create(gone, Description{Name: "v"})
	b.restart()
	b.in("v")
}

func TestDefaultQueueType(t *testing.T) {
	b := newBench(t)
	b.must(b.hosts.Create(t.Context(), Description{Name: "v", DefaultQueueType: "quorum"}))
	v := b.in("v")
	for _, d := range []struct {
		QueueDeclare
		want queue.Type
	}{
		{QueueDeclare{Name: "durable", Durable: true}, queue.Quorum},
		{QueueDeclare{Name: "durable", Durable: true}, queue.Quorum}, // equivalent to itself
		{QueueDeclare{Name: "said", Durable: true, Arguments: wire.Table{{Name: queueType, Value: "classic"}}}, queue.Classic},
		{QueueDeclare{Name: "transient"}, queue.Classic},
		{QueueDeclare{Name: "exclusive", Durable: true, Exclusive: true}, queue.Classic},
		{QueueDeclare{Name: "auto-delete", Durable: true, AutoDelete: true}, queue.Classic},
	} {
		_, err := v.DeclareQueue(t.Context(), t, d.QueueDeclare)
		b.must(err)
		if got := v.queues[d.Name].Settings().Type; got != d.want {
			t.Errorf("%s is a %s queue, want %s", d.Name, got, d.want)
		}
	}
	b.restart()
	if got := b.in("v").queues["durable"].Settings().Type; got != queue.Quorum {
		t.Errorf("after a restart it is a %s queue", got)
	}
}
