package vhost

import (
	"context"
	"maps"

	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// The limits of a virtual host. Below 0 is no limit. Source: https://www.rabbitmq.com/docs/vhosts#limits.
const (
	MaxConnections = "max-connections"
	MaxQueues      = "max-queues"
)

// ChangeLimits gives change a copy of the limits of a host to change, and tells whether there is such a host.
func (hs *Hosts) ChangeLimits(ctx context.Context, name string, change func(limits map[string]int)) (existed bool, err error) {
	hs.changing.Lock()
	defer hs.changing.Unlock()
	tx := hs.store.Begin()
	hs.mu.Lock()
	h := hs.byName[name]
	if h != nil {
		h.mu.Lock()
		limits := maps.Clone(h.description.Limits)
		if limits == nil {
			limits = map[string]int{}
		}
		change(limits)
		h.description.Limits = limits
		tx.SetDefinition(store.DefinitionKey(kindHost, name), encodeDescription(h.description))
		h.mu.Unlock()
	}
	hs.mu.Unlock()
	return h != nil, tx.Wait(ctx)
}

func encodeLimits(limits map[string]int) wire.Table {
	t := make(wire.Table, 0, len(limits))
	for name, limit := range limits {
		t = append(t, wire.Field{Name: name, Value: int64(limit)})
	}
	return t
}

func decodeLimits(v any) map[string]int {
	limits := map[string]int{}
	t, _ := v.(wire.Table)
	for _, f := range t {
		if n, ok := f.Value.(int64); ok {
			limits[f.Name] = int(n)
		}
	}
	return limits
}
