// Package compact has a map that gives memory back. A map of Go keeps the room of the most entries that it ever had;
// where a client decides how many these are, that is memory which one client can take from all for good.
package compact

import (
	"iter"
	"maps"
)

// A map that had at least worth entries moves to a smaller one when of these only one in sparse is left. Moving then is
// cheap: it has been paid for by what was deleted.
const (
	worth  = 1024
	sparse = 16
)

// Map is a map. Its zero value is empty and ready to use. It is as safe for concurrent use as a Go map.
type Map[K comparable, V any] struct {
	m    map[K]V
	most int // entries that m has had
}

// Get returns the value of key, and whether there is one.
func (m *Map[K, V]) Get(key K) (V, bool) {
	v, ok := m.m[key]
	return v, ok
}

// Set sets the value of key.
func (m *Map[K, V]) Set(key K, v V) {
	if m.m == nil {
		m.m = map[K]V{}
	}
	m.m[key] = v
	m.most = max(m.most, len(m.m))
}

// Delete removes key, if it is there.
func (m *Map[K, V]) Delete(key K) {
	delete(m.m, key)
	if m.most < worth || len(m.m) > m.most/sparse {
		return
	}
	left := make(map[K]V, len(m.m))
	maps.Copy(left, m.m)
	m.m, m.most = left, len(left)
}

// Len is how many entries there are.
func (m *Map[K, V]) Len() int { return len(m.m) }

// All are the entries, in no order. While one ranges over them the map must not be changed.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { maps.All(m.m)(yield) }
}

// Keys are the keys, in no order. While one ranges over them the map must not be changed.
func (m *Map[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) { maps.Keys(m.m)(yield) }
}

// Values are the values, in no order. While one ranges over them the map must not be changed.
func (m *Map[K, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) { maps.Values(m.m)(yield) }
}
