package management

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dormousemq/dormouse/internal/definitions"
	"github.com/dormousemq/dormouse/internal/store"
)

// Globals are the global parameters of a store: JSON by name.
type Globals struct {
	store *store.Store
	mu    sync.Mutex // makes one change at a time
}

// NewGlobals returns those of a store.
func NewGlobals(s *store.Store) *Globals { return &Globals{store: s} }

// All are the parameters, sorted by name.
func (g *Globals) All() ([]definitions.GlobalParameter, error) {
	found, err := g.store.Definitions(parameterKey)
	if err != nil {
		return nil, err
	}
	texts := maps.Collect(found)
	all := make([]definitions.GlobalParameter, 0, len(texts))
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		all = append(all, definitions.GlobalParameter{Name: strings.TrimPrefix(key, parameterKey), Value: texts[key]})
	}
	return all, nil
}

// Put sets a parameter.
func (g *Globals) Put(ctx context.Context, p definitions.GlobalParameter) error {
	_, err := g.set(ctx, p)
	return err
}

// set is Put, and tells whether there was one of that name.
func (g *Globals) set(ctx context.Context, p definitions.GlobalParameter) (existed bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if existed, err = g.has(p.Name); err != nil {
		return false, err
	}
	tx := g.store.Begin()
	tx.SetDefinition(parameterKey+p.Name, p.Value)
	return existed, tx.Wait(ctx)
}

// remove removes a parameter, and tells whether there was one.
func (g *Globals) remove(ctx context.Context, name string) (existed bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if existed, err = g.has(name); err != nil || !existed {
		return false, err
	}
	tx := g.store.Begin()
	tx.DeleteDefinition(parameterKey + name)
	return true, tx.Wait(ctx)
}

func (g *Globals) has(name string) (bool, error) {
	all, err := g.All()
	return slices.ContainsFunc(all, func(p definitions.GlobalParameter) bool { return p.Name == name }), err
}

// values are the parameters as encoding/json decodes them, by name.
func (g *Globals) values() (map[string]any, error) {
	all, err := g.All()
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	for _, p := range all {
		decoder := json.NewDecoder(bytes.NewReader(p.Value))
		decoder.UseNumber()
		var v any
		if err := decoder.Decode(&v); err != nil {
			return nil, err
		}
		values[p.Name] = v
	}
	return values, nil
}
