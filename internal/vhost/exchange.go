package vhost

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/dormousemq/dormouse/internal/compact"
	"github.com/dormousemq/dormouse/internal/delayed"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/route"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// ExchangeDeclare is what exchange.declare asks for.
type ExchangeDeclare struct {
	Name       string
	Type       string
	Durable    bool
	AutoDelete bool
	Internal   bool
	Arguments  wire.Table
}

// CheckType refuses an exchange type that does not exist.
func (d ExchangeDeclare) CheckType() error {
	switch {
	case newExchange(d).matcher != nil:
		return nil
	case d.Type == delayedMessage:
		return wire.Errorf(wire.PreconditionFailed, "Invalid argument, 'x-delayed-type' must be an existing exchange type")
	}
	return wire.Errorf(wire.PreconditionFailed, "unknown exchange type '%s'", d.Type)
}

// Reserved tells whether a client may not choose the name of the exchange.
func (d ExchangeDeclare) Reserved() bool { return strings.HasPrefix(d.Name, reservedPrefix) }

// Exchange is one exchange.
type Exchange struct {
	ExchangeDeclare
	applied   policy.Effective
	alternate string           // by argument or policy, "" for none
	routes    string           // its type, or that by which an x-delayed-message exchange routes
	pending   *delayed.Pending // of an x-delayed-message exchange
	matcher   route.Matcher[destination]
	bindings  compact.Map[bindingID, *binding] // that lead from it
	incoming  compact.Map[*binding, struct{}]  // that lead to it
	gone      bool                             // it was deleted

	publishedIn, publishedOut atomic.Uint64 // see PublishedIn
}

// destination is where a binding leads: a queue or an exchange.
type destination struct {
	queue    *Queue
	exchange *Exchange
}

// gone tells whether it was deleted, though the binding is not removed yet.
func (d destination) gone() bool {
	return d.queue != nil && d.queue.gone || d.exchange != nil && d.exchange.gone
}

// delayedMessage is the exchange type of the plugin rabbitmq-delayed-message-exchange,
// and delayedType the argument that says how such an exchange routes.
const (
	delayedMessage = "x-delayed-message"
	delayedType    = "x-delayed-type"
)

// newExchange makes an exchange, without a matcher if the type is unknown.
func newExchange(d ExchangeDeclare) *Exchange {
	x := &Exchange{ExchangeDeclare: d}
	if x.routes = d.Type; d.Type == delayedMessage {
		x.routes, _ = stringArgument(d.Arguments, delayedType)
	}
	switch x.routes {
	case "direct":
		x.matcher = route.NewDirect[destination]()
	case "fanout":
		x.matcher = route.NewFanout[destination]()
	case "topic":
		x.matcher = route.NewTopic[destination]()
	case "headers":
		x.matcher = route.NewHeaders[destination]()
	case consistentHashType:
		x.matcher = route.NewConsistentHash[destination]()
	case randomType:
		x.matcher = route.NewRandom[destination]()
	}
	return x
}

func stringArgument(t wire.Table, name string) (string, bool) {
	v, _ := t.Get(name)
	s, ok := v.(string)
	return s, ok
}

const reservedPrefix = "amq."

// DeclareExchange makes an exchange, or checks that the one of that name is the same.
func (h *Host) DeclareExchange(ctx context.Context, d ExchangeDeclare) error {
	d.Name = Stripped(d.Name)
	if d.Name == "" {
		return errDefaultExchange()
	}
	return h.changed(ctx, func(tx *store.Tx) error { return h.declareExchange(tx, d) })
}

func (h *Host) declareExchange(tx *store.Tx, d ExchangeDeclare) error {
	if err := d.CheckType(); err != nil {
		return err
	}
	x := newExchange(d)
	if old := h.exchanges[d.Name]; old != nil {
		return h.exchangeEquivalence(old, d)
	}
	if d.Reserved() {
		return wire.Errorf(wire.AccessRefused, "exchange name '%s' contains reserved prefix 'amq.*'", d.Name)
	}
	if v, has := d.Arguments.Get("alternate-exchange"); has {
		if _, ok := v.(string); !ok {
			return wire.Errorf(wire.PreconditionFailed, "invalid type '%s' for arg 'alternate-exchange' in %s", wire.TypeName(v), h.exchangeText(d.Name))
		}
	}
	if x.routes == consistentHashType {
		if err := d.checkHashing(); err != nil {
			return err
		}
	}
	switch {
	case h.deleted:
		return h.errGone()
	case h.leaves(h.exchangeKey(d.Name)):
		return errLeaving
	}
	h.addExchange(x, nil)
	if d.Durable {
		tx.SetDefinition(h.exchangeKey(d.Name), encodeExchange(d))
	}
	return nil
}

// addExchange adds x. pending is what the store knows of its pending messages.
func (h *Host) addExchange(x *Exchange, pending []byte) {
	h.exchanges[x.Name] = x
	h.applyTo(x)
	if x.Type != delayedMessage {
		return
	}
	x.pending = delayed.Open(delayed.Options{
		Key: h.pendingKey(x.Name), Store: h.store, Clock: h.clock, Transient: !x.Durable, Logger: h.log.With("exchange", x.Name),
		NewID:   func() store.QueueID { return h.all.newID(1) },
		Release: func(tx *store.Tx, m *message.Message) []queue.Target { return h.release(tx, x, m) },
	}, pending)
}

// delays tells whether m is to wait in x.
func (x *Exchange) delays(m *message.Message) bool {
	if x.pending == nil {
		return false
	}
	d, err := m.Delay()
	return err == nil && d > 0
}

// ExchangeType is the type of the exchange of that name, and whether there is one.
func (h *Host) ExchangeType(name string) (string, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	x := h.exchanges[name]
	if x == nil {
		return "", false
	}
	return x.Type, true
}

// CheckExchange is a passive declare.
func (h *Host) CheckExchange(name string) error {
	name = Stripped(name)
	if name == "" {
		return errDefaultExchange()
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, err := h.exchange(name)
	return err
}

// CheckExchangeDeletion refuses to delete what nobody may delete.
func (h *Host) CheckExchangeDeletion(name string) error {
	name = Stripped(name)
	if name == "" {
		return errDefaultExchange()
	}
	if strings.HasPrefix(name, reservedPrefix) {
		return wire.Errorf(wire.AccessRefused, "deletion of system %s not allowed", h.exchangeText(name))
	}
	return nil
}

// DeleteExchange deletes an exchange and its bindings. There need not be one.
func (h *Host) DeleteExchange(ctx context.Context, name string, ifUnused bool) error {
	name = Stripped(name)
	if err := h.CheckExchangeDeletion(name); err != nil {
		return err
	}
	return h.changed(ctx, func(tx *store.Tx) error {
		x := h.exchanges[name]
		switch {
		case x == nil:
		case ifUnused && x.bindings.Len() > 0:
			return wire.Errorf(wire.PreconditionFailed, "%s in use", h.exchangeText(name))
		default:
			h.deleteExchange(tx, x)
		}
		return nil
	})
}

// deleteExchange deletes x as a part of tx, but for its bindings, which leave with [Host.change].
func (h *Host) deleteExchange(tx *store.Tx, x *Exchange) {
	delete(h.exchanges, x.Name)
	x.gone = true
	if x.Durable {
		tx.DeleteDefinition(h.exchangeKey(x.Name))
	}
	if x.pending != nil {
		x.pending.Delete(tx)
	}
	h.leave(h.exchangeKey(x.Name), x.all())
}

// all are the bindings that lead from x and to it.
func (x *Exchange) all() iter.Seq[*binding] {
	return func(yield func(*binding) bool) {
		for b := range x.bindings.Values() {
			if !yield(b) {
				return
			}
		}
		for b := range x.incoming.Keys() {
			if b.source != x && !yield(b) {
				return
			}
		}
	}
}

func errDefaultExchange() error {
	return wire.Errorf(wire.AccessRefused, "operation not permitted on the default exchange")
}

// Stripped is a name without the line breaks that RabbitMQ removes from names.
func Stripped(name string) string {
	if !strings.ContainsAny(name, "\r\n") {
		return name
	}
	return strings.NewReplacer("\r", "", "\n", "").Replace(name)
}
