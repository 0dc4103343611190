package vhost

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/dormousemq/dormouse/internal/wire"
)

// Declaration is what the queue was declared as. Do not change its arguments.
func (q *Queue) Declaration() QueueDeclare { return q.declared }

// Owner is the connection that has the queue for itself, or nil.
func (q *Queue) Owner() any { return q.owner }

// Published is how many messages clients have published to the queue, by way of
// whatever exchange, since the broker was started.
func (q *Queue) Published() uint64 { return q.published.Load() }

// PublishedIn is how many messages clients have published to the exchange since the
// broker was started.
func (x *Exchange) PublishedIn() uint64 { return x.publishedIn.Load() }

// PublishedOut is how many copies of these went to queues.
func (x *Exchange) PublishedOut() uint64 { return x.publishedOut.Load() }

// Queues are the host's queues by name.
func (h *Host) Queues() []*Queue {
	all := h.allQueues()
	slices.SortFunc(all, func(a, b *Queue) int { return cmp.Compare(a.Name(), b.Name()) })
	return all
}

// Queue is the queue of that name, nil if there is none.
func (h *Host) Queue(name string) *Queue {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.queues[name]
}

// Exchanges are the host's exchanges by name.
func (h *Host) Exchanges() []*Exchange {
	h.mu.RLock()
	all := slices.Collect(maps.Values(h.exchanges))
	h.mu.RUnlock()
	slices.SortFunc(all, func(a, b *Exchange) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Exchange is the exchange of that name, nil if there is none.
func (h *Host) Exchange(name string) *Exchange {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.exchanges[name]
}

// Size is how many exchanges and queues the host has.
func (h *Host) Size() (exchanges, queues int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.exchanges), len(h.queues)
}

// Binding is a binding as people see it.
type Binding struct {
	Bind
	ToExchange bool // the destination is an exchange, not a queue
}

func (b *binding) seen() Binding {
	seen := Binding{Bind: Bind{Source: b.source.Name, Key: b.key, Arguments: b.arguments}}
	if b.to.queue != nil {
		seen.Destination = b.to.queue.Name()
	} else {
		seen.Destination, seen.ToExchange = b.to.exchange.Name, true
	}
	return seen
}

// defaultBinding is the binding that the default exchange has to each queue.
func defaultBinding(queue string) Binding {
	return Binding{Bind: Bind{Destination: queue, Key: queue, Arguments: wire.Table{}}}
}

// Bindings are all bindings of the host, those of the default exchange too, sorted.
func (h *Host) Bindings() []Binding {
	h.mu.RLock()
	var all []Binding
	for name := range h.queues {
		all = append(all, defaultBinding(name))
	}
	for _, x := range h.exchanges {
		all = appendSeen(all, x.bindings.Values())
	}
	h.mu.RUnlock()
	return sorted(all)
}

// BindingsFrom are the bindings that lead from an exchange, sorted; none if there is no
// such exchange.
func (h *Host) BindingsFrom(exchange string) []Binding {
	h.mu.RLock()
	var all []Binding
	switch x := h.exchanges[exchange]; {
	case exchange == "":
		for name := range h.queues {
			all = append(all, defaultBinding(name))
		}
	case x != nil:
		all = appendSeen(all, x.bindings.Values())
	}
	h.mu.RUnlock()
	return sorted(all)
}

// BindingsToExchange are the bindings that lead to an exchange, sorted; none if there is
// no such exchange.
func (h *Host) BindingsToExchange(exchange string) []Binding {
	h.mu.RLock()
	var all []Binding
	if x := h.exchanges[exchange]; x != nil {
		all = appendSeen(all, x.incoming.Keys())
	}
	h.mu.RUnlock()
	return sorted(all)
}

// BindingsToQueue are the bindings that lead to a queue, that of the default exchange
// too, sorted; none if there is no such queue.
func (h *Host) BindingsToQueue(queue string) []Binding {
	h.mu.RLock()
	var all []Binding
	if q := h.queues[queue]; q != nil {
		all = appendSeen([]Binding{defaultBinding(queue)}, q.bindings.Keys())
	}
	h.mu.RUnlock()
	return sorted(all)
}

func appendSeen(all []Binding, bindings iter.Seq[*binding]) []Binding {
	for b := range bindings {
		if !b.source.gone && !b.to.gone() {
			all = append(all, b.seen())
		}
	}
	return all
}

func sorted(all []Binding) []Binding {
	slices.SortFunc(all, func(a, b Binding) int {
		names := cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Key, b.Key))
		if names != 0 {
			return names
		}
		return slices.Compare(a.Arguments.AppendTo(nil), b.Arguments.AppendTo(nil))
	})
	return all
}

// Churn counts what came and went since the broker was started.
type Churn struct{ QueuesDeclared, QueuesCreated, QueuesDeleted uint64 }

// Add adds o to c.
func (c *Churn) Add(o Churn) {
	c.QueuesDeclared += o.QueuesDeclared
	c.QueuesCreated += o.QueuesCreated
	c.QueuesDeleted += o.QueuesDeleted
}

// Churn is how many queues came and went in the host.
func (h *Host) Churn() Churn {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.churn
}

// ExchangeType is a type of exchanges.
type ExchangeType struct{ Name, Description string }

// ExchangeTypes are the types of exchanges that can be declared.
func ExchangeTypes() []ExchangeType {
	return []ExchangeType{
		{"direct", "AMQP direct exchange, as per the AMQP specification"},
		{"fanout", "AMQP fanout exchange, as per the AMQP specification"},
		{"headers", "AMQP headers exchange, as per the AMQP specification"},
		{"topic", "AMQP topic exchange, as per the AMQP specification"},
		{consistentHashType, "Consistent Hashing Exchange"},
		{delayedMessage, "Delayed Message Exchange."},
		{randomType, "Randomly picks a binding (queue) to route via (to)."},
	}
}
