package vhost

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Definitions are kept in the store as AMQP field tables, under the kind, the vhost and
// the names.
const (
	kindHost     = "vhost"
	kindExchange = "exchange"
	kindQueue    = "queue"
	kindBinding  = "binding"
	kindPending  = "pending" // what the messages of an x-delayed-message exchange are kept under
)

func (h *Host) exchangeKey(name string) string {
	return store.DefinitionKey(kindExchange, h.name, name)
}
func (h *Host) queueKey(name string) string { return store.DefinitionKey(kindQueue, h.name, name) }

func (h *Host) pendingKey(exchange string) string {
	return store.DefinitionKey(kindPending, h.name, exchange)
}

func (h *Host) bindingKey(b *binding) string {
	to, name := kindExchange, ""
	if b.to.queue != nil {
		to, name = kindQueue, b.to.queue.Name()
	} else {
		name = b.to.exchange.Name
	}
	return store.DefinitionKey(kindBinding, h.name, b.source.Name, to, name, b.key) + "\x00" + string(b.arguments.AppendTo(nil))
}

func encodeExchange(d ExchangeDeclare) []byte {
	return wire.Table{
		{Name: "name", Value: d.Name}, {Name: "type", Value: d.Type},
		{Name: "auto-delete", Value: d.AutoDelete}, {Name: "internal", Value: d.Internal},
		{Name: "arguments", Value: d.Arguments},
	}.AppendTo(nil)
}

func encodeQueue(q *Queue, id store.QueueID) []byte {
	return wire.Table{
		{Name: "name", Value: q.Name()}, {Name: "id", Value: int64(id)},
		{Name: "auto-delete", Value: q.declared.AutoDelete}, {Name: "arguments", Value: q.declared.Arguments},
	}.AppendTo(nil)
}

func encodeBinding(b *binding) []byte {
	t := wire.Table{{Name: "source", Value: b.source.Name}, {Name: "key", Value: b.key}, {Name: "arguments", Value: b.arguments}}
	if b.to.queue != nil {
		t = append(t, wire.Field{Name: "queue", Value: b.to.queue.Name()})
	} else {
		t = append(t, wire.Field{Name: "exchange", Value: b.to.exchange.Name})
	}
	return t.AppendTo(nil)
}

// recover reads the host's definitions from the store.
func (h *Host) recover() error {
	for _, step := range []struct {
		kind string
		add  func(wire.Table) error
	}{
		{string(policy.Regular), h.recoverPolicy(policy.Regular)}, {string(policy.Operator), h.recoverPolicy(policy.Operator)},
		{kindExchange, h.recoverExchange}, {kindQueue, h.recoverQueue},
	} {
		definitions, err := h.store.Definitions(store.DefinitionKey(step.kind, h.name, ""))
		if err != nil {
			return err
		}
		for key, value := range definitions {
			t, err := wire.ParseTable(value)
			if err == nil {
				err = step.add(t)
			}
			if err != nil {
				return fmt.Errorf("%q: %w", key, err)
			}
		}
	}
	if err := h.recoverBindings(); err != nil {
		return err
	}
	h.reapply() // for the exchanges that every host has
	return nil
}

// recoverBindings makes the bindings of the store, and drops from it those with an end that is no more: the broker ended
// between deleting that end and them.
func (h *Host) recoverBindings() error {
	definitions, err := h.store.Definitions(store.DefinitionKey(kindBinding, h.name, ""))
	if err != nil {
		return err
	}
	var loose []string
	for key, value := range definitions {
		t, err := wire.ParseTable(value)
		if err == nil {
			err = h.recoverBinding(t)
		}
		if e := new(wire.Exception); errors.As(err, &e) && e.Code == wire.NotFound {
			loose = append(loose, key)
		} else if err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	h.all.dropDefinitions(loose)
	return nil
}

// ids are the numbers that the host has in the store.
func (h *Host) ids() (ids []store.QueueID) {
	for _, q := range h.queues {
		for i := range q.Levels() {
			ids = append(ids, q.ID()+i)
		}
	}
	for _, p := range h.allPending() {
		ids = append(ids, p.IDs()...)
	}
	return ids
}

func (h *Host) recoverExchange(t wire.Table) error {
	x := newExchange(ExchangeDeclare{
		Name: text(t, "name"), Type: text(t, "type"), Durable: true,
		AutoDelete: flag(t, "auto-delete"), Internal: flag(t, "internal"), Arguments: table(t, "arguments"),
	})
	if x.matcher == nil {
		return fmt.Errorf("unknown exchange type %q", x.Type)
	}
	pending, err := h.store.Definitions(h.pendingKey(x.Name))
	if err != nil {
		return err
	}
	var ids []byte
	for key, value := range pending {
		if key == h.pendingKey(x.Name) {
			ids = slices.Clone(value)
		}
	}
	h.addExchange(x, ids)
	return nil
}

func (h *Host) recoverQueue(t wire.Table) error {
	v, _ := t.Get("id")
	id, ok := v.(int64)
	if !ok {
		return errors.New("no id")
	}
	d := QueueDeclare{Name: text(t, "name"), Durable: true, AutoDelete: flag(t, "auto-delete"), Arguments: table(t, "arguments")}
	settings, err := h.settings(d)
	if err != nil {
		return err
	}
	h.addQueue(d, settings, store.QueueID(id), nil)
	return nil
}

func (h *Host) recoverBinding(t wire.Table) error {
	b := Bind{Source: text(t, "source"), Key: text(t, "key"), Arguments: table(t, "arguments"), Destination: text(t, "queue")}
	end := h.queueEnd(nil)
	if _, toExchange := t.Get("exchange"); toExchange {
		b.Destination, end = text(t, "exchange"), h.exchangeEnd
	}
	found, err := h.resolve(b, end)
	if err != nil {
		return err
	}
	found.connect()
	return nil
}

func text(t wire.Table, name string) string {
	s, _ := stringArgument(t, name)
	return s
}

func flag(t wire.Table, name string) bool {
	v, _ := t.Get(name)
	b, _ := v.(bool)
	return b
}

func table(t wire.Table, name string) wire.Table {
	v, _ := t.Get(name)
	args, _ := v.(wire.Table)
	return args
}
