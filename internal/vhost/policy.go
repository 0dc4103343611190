package vhost

import (
	"context"

	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// configurable is a kind of queue whose settings policies can change.
type configurable interface {
	Configure(s queue.Settings)
}

// PutPolicy sets a policy, in the place of one of its kind and name if there is one,
// and applies it. The error of an invalid one is a *policy.ValidationError.
func (h *Host) PutPolicy(ctx context.Context, p policy.Policy) error {
	return h.changePolicies(ctx, func(tx *store.Tx) error {
		if err := h.policies.Put(p); err != nil {
			return err
		}
		tx.SetDefinition(h.policyKey(p.Kind, p.Name), encodePolicy(p))
		return nil
	})
}

// DeletePolicy deletes a policy. If there is none the error is a *wire.Exception, 404.
func (h *Host) DeletePolicy(ctx context.Context, k policy.Kind, name string) error {
	return h.changePolicies(ctx, func(tx *store.Tx) error {
		if !h.policies.Delete(k, name) {
			return wire.Errorf(wire.NotFound, "no policy '%s' in vhost '%s'", name, h.name)
		}
		tx.DeleteDefinition(h.policyKey(k, name))
		return nil
	})
}

// Policies are the policies of a kind by name.
func (h *Host) Policies(k policy.Kind) []policy.Policy {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.policies.List(k)
}

// QueuePolicy is what policies say of a queue; false if there is no such queue.
func (h *Host) QueuePolicy(name string) (policy.Effective, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if q := h.queues[name]; q != nil {
		return q.applied, true
	}
	return policy.Effective{}, false
}

// ExchangePolicy is what policies say of an exchange; false if there is no such exchange.
func (h *Host) ExchangePolicy(name string) (policy.Effective, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if x := h.exchanges[name]; x != nil {
		return x.applied, true
	}
	return policy.Effective{}, false
}

// changePolicies makes one change to the policies at a time, so that of two the later
// one stays in effect, and applies it.
func (h *Host) changePolicies(ctx context.Context, change func(tx *store.Tx) error) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	var changed map[*Queue]queue.Settings
	err := h.changed(ctx, func(tx *store.Tx) error {
		if h.deleted {
			return h.errGone()
		}
		err := change(tx)
		if err == nil {
			changed = h.reapply()
		}
		return err
	})
	for q, s := range changed {
		if c, ok := q.kind.(configurable); ok {
			c.Configure(s)
		}
	}
	return err
}

// reapply finds out anew what policies say of all queues and exchanges, and returns the
// settings of the queues for which that is something else.
func (h *Host) reapply() map[*Queue]queue.Settings {
	for _, x := range h.exchanges {
		h.applyTo(x)
	}
	changed := map[*Queue]queue.Settings{}
	for _, q := range h.queues {
		now := h.policies.For(policy.Target{Name: q.Name(), Type: policy.Type(q.Settings().Type)})
		if !now.Equal(q.applied) {
			q.applied = now
			changed[q] = h.withPolicy(q.declared, q.arguments, now.Definition)
		}
	}
	return changed
}

// applyTo finds out what policies say of x.
func (h *Host) applyTo(x *Exchange) {
	x.applied = h.policies.For(policy.Target{Name: x.Name, Type: policy.Exchange})
	if x.Name == "" {
		return // the default exchange has no alternate one, whatever a policy says
	}
	const key = "alternate-exchange"
	var declared bool
	if x.alternate, declared = stringArgument(x.Arguments, key); !declared {
		x.alternate, _ = x.applied.Definition[key].(string)
	}
}

func (h *Host) policyKey(k policy.Kind, name string) string {
	return store.DefinitionKey(string(k), h.name, name)
}

// deletePolicies deletes all policies, as a part of tx.
func (h *Host) deletePolicies(tx *store.Tx) {
	for _, k := range []policy.Kind{policy.Regular, policy.Operator} {
		for _, p := range h.policies.List(k) {
			tx.DeleteDefinition(h.policyKey(k, p.Name))
		}
	}
	h.policies = policy.Set{}
}

func encodePolicy(p policy.Policy) []byte {
	definition := make(wire.Table, 0, len(p.Definition))
	for key, v := range p.Definition {
		if n, ok := policy.Integer(v); ok {
			v = n
		}
		definition = append(definition, wire.Field{Name: key, Value: v})
	}
	return wire.Table{
		{Name: "name", Value: p.Name}, {Name: "pattern", Value: p.Pattern}, {Name: "apply-to", Value: p.ApplyTo},
		{Name: "priority", Value: int64(p.Priority)}, {Name: "definition", Value: definition},
	}.AppendTo(nil)
}

// recoverPolicy reads a policy from its definition in the store.
func (h *Host) recoverPolicy(k policy.Kind) func(wire.Table) error {
	return func(t wire.Table) error {
		p := policy.Policy{Kind: k, Name: text(t, "name"), Pattern: text(t, "pattern"), ApplyTo: text(t, "apply-to"), Definition: policy.Definition{}}
		v, _ := t.Get("priority")
		n, _ := policy.Integer(v)
		p.Priority = int(n)
		for _, f := range table(t, "definition") {
			p.Definition[f.Name] = f.Value
		}
		return h.policies.Put(p)
	}
}
