// Package vhost is one virtual host: its exchanges, queues and bindings, the rules by
// which they are declared and deleted, and the way of a message from an exchange to
// queues, when it is published and when it has died.
//
// What clients do wrong is answered by a *wire.Exception with RabbitMQ's code and
// text. Whatever is durable is durable when a call returns.
//
// The order of locks is: topology (Host.mu), queue. A unit of work of the store is begun
// under neither.
package vhost

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/delayed"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Options make a Host. All fields must be set.
type Options struct {
	Name   string
	Store  *store.Store
	Clock  clock.Clock
	Logger *slog.Logger
}

// Host is a virtual host. Its methods are safe for concurrent use.
type Host struct {
	name  string
	store *store.Store
	clock clock.Clock
	log   *slog.Logger

	mu        sync.RWMutex
	exchanges map[string]*Exchange
	queues    map[string]*Queue
	lastID    atomic.Uint64 // the last number in the store that is taken

	cycles sync.Map // those that have been logged
}

// Open makes the host of what the store has of it, with the exchanges that every host
// has. Call Start when the broker is ready to deliver.
func Open(o Options) (*Host, error) {
	h := &Host{
		name: o.Name, store: o.Store, clock: o.Clock, log: o.Logger.With("vhost", o.Name),
		exchanges: map[string]*Exchange{}, queues: map[string]*Queue{},
	}
	for name, kind := range map[string]string{
		"": "direct", "amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic",
		"amq.headers": "headers", "amq.match": "headers",
	} {
		h.exchanges[name] = newExchange(ExchangeDeclare{Name: name, Type: kind, Durable: true})
	}
	h.exchanges["amq.rabbitmq.trace"] = newExchange(ExchangeDeclare{
		Name: "amq.rabbitmq.trace", Type: "topic", Durable: true, Internal: true})
	if err := h.recover(); err != nil {
		return nil, fmt.Errorf("definitions of vhost %q: %w", o.Name, err)
	}
	return h, nil
}

// Start begins to expire what is due.
func (h *Host) Start() {
	for _, q := range h.allQueues() {
		q.Start()
	}
	for _, p := range h.allPending() {
		p.Start()
	}
}

// Close stops the host, and what is stored stays. Close the store first: from then on
// nothing that a timer sets going is kept, whereas a queue that was closed before it would
// be no target any more for what is on its way from another.
func (h *Host) Close() {
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

// newID takes n numbers in the store that nobody has had, and returns the first.
func (h *Host) newID(n store.QueueID) store.QueueID {
	return store.QueueID(h.lastID.Add(uint64(n))) - n + 1
}

// taken says that a number in the store is taken.
func (h *Host) taken(id store.QueueID) { h.lastID.Store(max(h.lastID.Load(), uint64(id))) }

// Name is the host's name.
func (h *Host) Name() string { return h.name }

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

// Queue is a queue with what the host knows of it.
type Queue struct {
	*queue.Queue
	declared QueueDeclare
	owner    any                   // the connection that has it for itself, or nil
	bindings map[*binding]struct{} // that lead to it
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
