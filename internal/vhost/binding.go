package vhost

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dormousemq/dormouse/internal/compact"
	"github.com/dormousemq/dormouse/internal/route"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Bind is what queue.bind, exchange.bind and their opposites ask for.
type Bind struct {
	Source      string
	Destination string // a queue or an exchange, by the method
	Key         string
	Arguments   wire.Table
}

type binding struct {
	source    *Exchange
	to        destination
	key       string
	arguments wire.Table // sorted by name
}

func (b *binding) durable() bool {
	if b.to.queue != nil {
		return b.source.Durable && b.to.queue.durable()
	}
	return b.source.Durable && b.to.exchange.Durable
}

// bindingID is what tells a binding from others of its source.
type bindingID struct {
	to        destination
	key       string
	arguments string // as on the wire, sorted by name
}

func (b *binding) id() bindingID { return bindingID{b.to, b.key, string(b.arguments.AppendTo(nil))} }

func (b *binding) routeArguments() route.Arguments {
	args := make(route.Arguments, len(b.arguments))
	for i, f := range b.arguments {
		args[i] = route.Argument(f)
	}
	return args
}

// reached is the set of the bindings that lead to where b leads.
func (b *binding) reached() *compact.Map[*binding, struct{}] {
	if b.to.queue != nil {
		return &b.to.queue.bindings
	}
	return &b.to.exchange.incoming
}

// BindQueue binds a queue to an exchange. owner is the connection.
func (h *Host) BindQueue(ctx context.Context, owner any, b Bind) error {
	return h.changeBinding(ctx, b, h.queueEnd(owner), h.addBinding)
}

// UnbindQueue removes the binding. There need not be one, nor its ends, but if there is,
// the queue may not be the exclusive one of another connection than owner.
func (h *Host) UnbindQueue(ctx context.Context, owner any, b Bind) error {
	return h.unbind(ctx, b, h.anyQueueEnd, func(found *binding) error { return h.checkOwner(found.to.queue, owner) })
}

// BindExchange binds the destination exchange to the source.
func (h *Host) BindExchange(ctx context.Context, b Bind) error {
	return h.changeBinding(ctx, b, h.exchangeEnd, h.addBinding)
}

// UnbindExchange removes the binding. There need not be one, nor its ends.
func (h *Host) UnbindExchange(ctx context.Context, b Bind) error {
	return h.unbind(ctx, b, h.exchangeEnd, func(*binding) error { return nil })
}

// unbind removes a binding that may be removed.
func (h *Host) unbind(ctx context.Context, b Bind, end func(string) (destination, error), may func(*binding) error) error {
	err := h.changeBinding(ctx, b, end, func(tx *store.Tx, named *binding) error {
		found := named.existing()
		if found == nil {
			return nil
		}
		if err := may(found); err != nil {
			return err
		}
		h.removeBinding(tx, found)
		return nil
	})
	if e := new(wire.Exception); errors.As(err, &e) && e.Code == wire.NotFound {
		return nil
	}
	return err
}

func (h *Host) queueEnd(owner any) func(string) (destination, error) {
	return func(name string) (destination, error) {
		to, err := h.anyQueueEnd(name)
		if err == nil {
			err = h.checkOwner(to.queue, owner)
		}
		return to, err
	}
}

func (h *Host) anyQueueEnd(name string) (destination, error) {
	q, err := h.queue(name)
	return destination{queue: q}, err
}

func (h *Host) exchangeEnd(name string) (destination, error) {
	if name == "" {
		return destination{}, errDefaultExchange()
	}
	x, err := h.exchange(name)
	return destination{exchange: x}, err
}

func (h *Host) changeBinding(ctx context.Context, b Bind, end func(string) (destination, error), change func(*store.Tx, *binding) error) error {
	return h.changed(ctx, func(tx *store.Tx) error {
		found, err := h.resolve(b, end)
		if err != nil {
			return err
		}
		return change(tx, found)
	})
}

func (h *Host) resolve(b Bind, end func(string) (destination, error)) (*binding, error) {
	b.Source, b.Destination = Stripped(b.Source), Stripped(b.Destination)
	if b.Source == "" {
		return nil, errDefaultExchange()
	}
	x, err := h.exchange(b.Source)
	if err != nil {
		return nil, err
	}
	to, err := end(b.Destination)
	if err != nil {
		return nil, err
	}
	arguments := slices.Clone(b.Arguments)
	slices.SortStableFunc(arguments, func(a, b wire.Field) int { return strings.Compare(a.Name, b.Name) })
	return &binding{source: x, to: to, key: b.Key, arguments: arguments}, nil
}

// check tells whether there can be such a binding. Who unbinds is not asked.
func (b *binding) check() (err error) {
	switch b.source.routes {
	case "headers":
		err = route.CheckHeadersBinding(b.routeArguments())
	case "topic":
		err = route.CheckTopicBinding(b.key)
	case consistentHashType:
		err = route.CheckHashBinding(b.key)
	}
	if err != nil {
		return wire.Errorf(wire.PreconditionFailed, "%v", err)
	}
	return nil
}

func (h *Host) addBinding(tx *store.Tx, b *binding) error {
	if err := b.check(); err != nil {
		return err
	}
	if b.connect() && b.durable() {
		tx.SetDefinition(h.bindingKey(b), encodeBinding(b))
	}
	return nil
}

// connect puts b between its ends, and tells whether it is new.
func (b *binding) connect() bool {
	if !b.source.matcher.Bind(b.key, b.routeArguments(), b.to) {
		return false
	}
	b.source.bindings.Set(b.id(), b)
	b.reached().Set(b, struct{}{})
	return true
}

// existing is the binding that b names, nil if there is none.
func (b *binding) existing() *binding {
	old, _ := b.source.bindings.Get(b.id())
	return old
}

// removeBinding removes b, and its source if that is to be deleted with its last one.
func (h *Host) removeBinding(tx *store.Tx, b *binding) {
	x := b.source
	x.matcher.Unbind(b.key, b.routeArguments(), b.to)
	x.bindings.Delete(b.id())
	b.reached().Delete(b)
	if b.durable() {
		tx.DeleteDefinition(h.bindingKey(b))
	}
	if x.AutoDelete && x.bindings.Len() == 0 && h.exchanges[x.Name] == x {
		h.deleteExchange(tx, x)
	}
}
