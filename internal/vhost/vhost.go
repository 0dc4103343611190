// Package vhost is the virtual hosts of a broker: the exchanges, queues and bindings of
// each, the rules by which they are declared and deleted, and the way of a message from
// an exchange to queues, when it is published and when it has died.
//
// What clients do wrong is answered by a *wire.Exception with RabbitMQ's code and
// text. Whatever is durable is durable when a call returns.
//
// The order of locks is: the set of hosts (Hosts.mu), topology (Host.mu), queue. A unit of work of the store is begun
// under neither.
package vhost

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/compact"
	"github.com/dormousemq/dormouse/internal/delayed"
	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Host is a virtual host. Its methods are safe for concurrent use.
type Host struct {
	name  string
	all   *Hosts
	store *store.Store
	clock clock.Clock
	log   *slog.Logger

	mu          sync.RWMutex
	description Description
	deleted     bool // nothing can be declared any more
	exchanges   map[string]*Exchange
	queues      map[string]*Queue
	churn       Churn
	policies    policy.Set
	left        []leaving

	changing sync.Mutex // the policies; taken before mu

	cycles sync.Map // those that have been logged
}

// newHost makes a host with the exchanges that every host has.
func newHost(all *Hosts, d Description) *Host {
	h := &Host{
		name: d.Name, all: all, store: all.store, clock: all.clock, log: all.log.With("vhost", d.Name),
		description: d, exchanges: map[string]*Exchange{}, queues: map[string]*Queue{},
	}
	for name, kind := range map[string]string{
		"": "direct", "amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic",
		"amq.headers": "headers", "amq.match": "headers",
	} {
		h.exchanges[name] = newExchange(ExchangeDeclare{Name: name, Type: kind, Durable: true})
	}
	h.exchanges["amq.rabbitmq.trace"] = newExchange(ExchangeDeclare{
		Name: "amq.rabbitmq.trace", Type: "topic", Durable: true, Internal: true})
	return h
}

// start begins to expire what is due.
func (h *Host) start() {
	for _, q := range h.allQueues() {
		q.Start()
	}
	for _, p := range h.allPending() {
		p.Start()
	}
}

// close stops the host; what is stored stays.
func (h *Host) close() {
	for _, p := range h.allPending() {
		p.Close()
	}
	for _, q := range h.allQueues() {
		q.Close()
	}
}

func (h *Host) allQueues() []*Queue {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.Collect(maps.Values(h.queues))
}

func (h *Host) allPending() (all []*delayed.Pending) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, x := range h.exchanges {
		if x.pending != nil {
			all = append(all, x.pending)
		}
	}
	return all
}

// Name is the host's name.
func (h *Host) Name() string { return h.name }

// Description is what is told of the host, and what it makes when it is not told otherwise.
func (h *Host) Description() Description {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.description
}

func (h *Host) exchangeText(name string) string {
	return fmt.Sprintf("exchange '%s' in vhost '%s'", name, h.name)
}

func (h *Host) queueText(name string) string {
	return fmt.Sprintf("queue '%s' in vhost '%s'", name, h.name)
}

func (h *Host) exchange(name string) (*Exchange, error) {
	if x := h.exchanges[name]; x != nil {
		return x, nil
	}
	return nil, wire.Errorf(wire.NotFound, "no %s", h.exchangeText(name))
}

func (h *Host) queue(name string) (*Queue, error) {
	if q := h.queues[name]; q != nil {
		return q, nil
	}
	return nil, wire.Errorf(wire.NotFound, "no %s", h.queueText(name))
}

// kind is a queue of one type.
type kind interface {
	queue.Target
	Name() string
	ID() store.QueueID
	Levels() store.QueueID // how many numbers of the store it has, from ID on
	Settings() queue.Settings
	Counts() queue.Counts
	// Inspect tells what it looks like, and Consumers who consumes from it.
	Inspect() queue.Info
	Consumers() []*queue.Consumer
	// Start sets the timers of a queue that has been made. Close ends it in memory only.
	Start()
	Close()
	// Declared says that it has been declared again.
	Declared()
	Consume(c *queue.Consumer) error
	// Delete ends it as a part of tx, if check, called locked, allows it.
	Delete(tx *store.Tx, check func(queue.Counts) error) (ready int, err error)
}

// polled is a kind of queue of which messages can be asked for one by one, and emptied
// one whose messages can be dropped. Streams are neither.
type (
	polled interface {
		Get(by *queue.Consumer) (queue.Delivery, bool)
	}
	emptied interface {
		Purge(ctx context.Context) (int, error)
	}
)

// Queue is a queue with what the host knows of it.
type Queue struct {
	kind
	declared  QueueDeclare
	arguments queue.Settings                  // that it was declared with
	applied   policy.Effective                // to it
	owner     any                             // the connection that has it for itself, or nil
	bindings  compact.Map[*binding, struct{}] // that lead to it
	gone      bool                            // it was deleted

	published atomic.Uint64 // see Published
}

// durable tells whether q outlives a restart.
func (q *Queue) durable() bool { return q.Settings().Durable }

// checkOwner refuses the use of a queue that another connection has for itself.
func (h *Host) checkOwner(q *Queue, owner any) error {
	if q.owner == nil || q.owner == owner {
		return nil
	}
	return h.lockedError(q)
}

func (h *Host) lockedError(q *Queue) error {
	return wire.Errorf(wire.ResourceLocked, "cannot obtain exclusive access to locked %s. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.", h.queueText(q.Name()))
}
