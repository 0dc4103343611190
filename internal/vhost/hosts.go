package vhost

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Default is the virtual host of a new store.
const Default = "/"

// Description is a virtual host as people see it. Source:
// https://www.rabbitmq.com/docs/vhosts.
type Description struct {
	Name             string
	Description      string
	Tags             []string
	Limits           map[string]int // by [MaxConnections] and [MaxQueues]
	DefaultQueueType string         // of queues that are declared without x-queue-type; "" is classic
}

// Options make Hosts. Store, Clock and Logger must be set.
type Options struct {
	Store  *store.Store
	Clock  clock.Clock
	Logger *slog.Logger

	// ConsumerTimeout is how long a message of a quorum queue may be out, unless the queue, a policy or the consumer says
	// otherwise. Zero is [queue.DefaultConsumerTimeout], negative is no limit.
	ConsumerTimeout time.Duration

	// Deleting, if not nil, is called while a host is being deleted, as a part of tx.
	// It must neither block nor call the hosts.
	Deleting func(tx *store.Tx, name string)
}

// Hosts are all virtual hosts of a store. Its methods are safe for concurrent use.
type Hosts struct {
	store    *store.Store
	clock    clock.Clock
	log      *slog.Logger
	deleting func(tx *store.Tx, name string)
	timeout  time.Duration // of consumers
	lastID   atomic.Uint64 // the last number in the store that is taken
	windows  queue.Windows

	changing sync.Mutex // which hosts there are; taken before mu

	mu      sync.RWMutex
	byName  map[string]*Host
	started bool
}

// Open makes the hosts of what the store has of them, and the one named [Default] if it has none. What the store has
// of queues that are no more is dropped. Call Start when the broker is ready to deliver.
func Open(o Options) (*Hosts, error) {
	hs := &Hosts{
		store: o.Store, clock: o.Clock, log: o.Logger, deleting: o.Deleting,
		timeout: cmp.Or(o.ConsumerTimeout, queue.DefaultConsumerTimeout), byName: map[string]*Host{},
	}
	if hs.timeout < 0 {
		hs.timeout = message.MaxTTL // nobody will see the difference
	}
	if err := hs.recover(); err != nil {
		return nil, err
	}
	if len(hs.byName) == 0 {
		if err := hs.Create(context.Background(), Description{Name: Default, Description: "Default virtual host"}); err != nil {
			return nil, err
		}
	}
	for _, h := range hs.byName {
		if err := h.recover(); err != nil {
			return nil, fmt.Errorf("definitions of vhost %q: %w", h.name, err)
		}
	}
	hs.dropOrphans()
	return hs, nil
}

func (hs *Hosts) recover() error {
	definitions, err := hs.store.Definitions(store.DefinitionKey(kindHost, ""))
	if err != nil {
		return err
	}
	for key, value := range definitions {
		t, err := wire.ParseTable(value)
		if err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		d := decodeDescription(t)
		hs.byName[d.Name] = newHost(hs, d)
	}
	return nil
}

// dropOrphans drops what the store has of queues that are no more: a message that was
// published while its queue was being deleted.
func (hs *Hosts) dropOrphans() {
	known := map[store.QueueID]bool{}
	for _, h := range hs.byName {
		for _, id := range h.ids() {
			known[id] = true
		}
	}
	for id := range known {
		hs.taken(id)
	}
	tx := hs.store.Begin()
	defer tx.End()
	for id := range hs.store.Queues() {
		if !known[id] {
			hs.taken(id)
			tx.DropQueue(id)
		}
	}
}

// newID takes n numbers in the store that nobody has had, and returns the first.
func (hs *Hosts) newID(n store.QueueID) store.QueueID {
	return store.QueueID(hs.lastID.Add(uint64(n))) - n + 1
}

// taken says that a number in the store is taken.
func (hs *Hosts) taken(id store.QueueID) { hs.lastID.Store(max(hs.lastID.Load(), uint64(id))) }

// Start begins to expire what is due.
func (hs *Hosts) Start() {
	hs.mu.Lock()
	hs.started = true
	hs.mu.Unlock()
	for _, h := range hs.All() {
		h.start()
	}
}

// Close stops the hosts, and what is stored stays. Close the store first: from then on
// nothing that a timer sets going is kept, whereas a queue that was closed before it would
// be no target any more for what is on its way from another.
func (hs *Hosts) Close() {
	for _, h := range hs.All() {
		h.close()
	}
}

// Host is the host of that name, nil if there is none.
func (hs *Hosts) Host(name string) *Host {
	hs.mu.RLock()
	defer hs.mu.RUnlock()
	return hs.byName[name]
}

// All are the hosts, sorted by name.
func (hs *Hosts) All() []*Host {
	hs.mu.RLock()
	defer hs.mu.RUnlock()
	return slices.SortedFunc(maps.Values(hs.byName), func(a, b *Host) int { return cmp.Compare(a.name, b.name) })
}

// Create makes a host, or changes the description of the one of that name. Without limits it keeps those that it has.
func (hs *Hosts) Create(ctx context.Context, d Description) error {
	d.Tags, d.Limits = slices.Clone(d.Tags), maps.Clone(d.Limits)
	hs.changing.Lock()
	defer hs.changing.Unlock()
	if hs.Host(d.Name) == nil {
		if err := hs.dropBindings(d.Name); err != nil {
			return err
		}
	}
	tx := hs.store.Begin()
	hs.mu.Lock()
	if h := hs.byName[d.Name]; h != nil {
		h.mu.Lock()
		if d.Limits == nil {
			d.Limits = h.description.Limits
		}
		h.description = d
		h.mu.Unlock()
	} else {
		hs.byName[d.Name] = newHost(hs, d)
	}
	tx.SetDefinition(store.DefinitionKey(kindHost, d.Name), encodeDescription(d))
	hs.mu.Unlock()
	return tx.Wait(ctx)
}

// Delete deletes a host with all that is in it, and tells whether there was one.
func (hs *Hosts) Delete(ctx context.Context, name string) (existed bool, err error) {
	hs.changing.Lock()
	defer hs.changing.Unlock()
	tx := hs.store.Begin()
	hs.mu.Lock()
	h := hs.byName[name]
	if h != nil {
		delete(hs.byName, name)
		h.delete(tx)
		tx.DeleteDefinition(store.DefinitionKey(kindHost, name))
		if hs.deleting != nil {
			hs.deleting(tx, name)
		}
	}
	hs.mu.Unlock()
	err = tx.Wait(ctx)
	if h != nil {
		h.unbindAll()
	}
	return h != nil, err
}

// dropBindings drops the bindings that a host of that name has left behind: the broker ended while it was being deleted.
func (hs *Hosts) dropBindings(name string) error {
	definitions, err := hs.store.Definitions(store.DefinitionKey(kindBinding, name, ""))
	if err != nil {
		return err
	}
	var loose []string
	for key := range definitions {
		loose = append(loose, key)
	}
	hs.dropDefinitions(loose)
	return nil
}

// dropDefinitions drops definitions that mean nothing any more.
func (hs *Hosts) dropDefinitions(keys []string) {
	for part := range slices.Chunk(keys, unbound) {
		tx := hs.store.Begin()
		for _, key := range part {
			tx.DeleteDefinition(key)
		}
		tx.End()
	}
}

// delete deletes all that the host has, as a part of tx, but for the bindings.
func (h *Host) delete(tx *store.Tx) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deleted = true
	h.deletePolicies(tx)
	for _, q := range h.queues {
		_, _ = h.deleteQueue(tx, q, nil)
	}
	for _, x := range h.exchanges {
		h.deleteExchange(tx, x)
	}
}

// errGone refuses a declaration in a host that has been deleted.
func (h *Host) errGone() error {
	return wire.Errorf(wire.ConnectionForced, "vhost '%s' is deleted", h.name)
}

func encodeDescription(d Description) []byte {
	tags := make([]any, len(d.Tags))
	for i, tag := range d.Tags {
		tags[i] = tag
	}
	return wire.Table{
		{Name: "name", Value: d.Name}, {Name: "description", Value: d.Description}, {Name: "tags", Value: tags},
		{Name: "default-queue-type", Value: d.DefaultQueueType},
		{Name: "limits", Value: encodeLimits(d.Limits)},
	}.AppendTo(nil)
}

func decodeDescription(t wire.Table) Description {
	d := Description{Name: text(t, "name"), Description: text(t, "description"), DefaultQueueType: text(t, "default-queue-type")}
	limits, _ := t.Get("limits")
	d.Limits = decodeLimits(limits)
	v, _ := t.Get("tags")
	tags, _ := v.([]any)
	for _, tag := range tags {
		if s, ok := tag.(string); ok {
			d.Tags = append(d.Tags, s)
		}
	}
	return d
}
