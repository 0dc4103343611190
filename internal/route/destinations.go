package route

import (
	"slices"

	"github.com/dormousemq/dormouse/internal/compact"
)

// indexAt is the number of destinations above which a set keeps an index. Most sets have one or two members, and a
// map for each of them would cost more memory than everything else.
const indexAt = 8

// destinations is a set of bindings by destination: the list to give out, and for each of its entries the identities
// of the bindings that put it there.
type destinations[D comparable] struct {
	list  []D
	bound []identities
	index *compact.Map[D, int] // position in list; nil while the set is small
}

func (s *destinations[D]) find(d D) int {
	if s.index == nil {
		return slices.Index(s.list, d)
	}
	if i, ok := s.index.Get(d); ok {
		return i
	}
	return -1
}

func (s *destinations[D]) add(key string, args Arguments, d D) bool {
	id := identify(key, args)
	if i := s.find(d); i >= 0 {
		return s.bound[i].add(id)
	}
	s.list = append(s.list, d)
	s.bound = append(s.bound, identities{few: []identity{id}})
	switch {
	case s.index != nil:
		s.index.Set(d, len(s.list)-1)
	case len(s.list) > indexAt:
		s.index = new(compact.Map[D, int])
		for i, d := range s.list {
			s.index.Set(d, i)
		}
	}
	return true
}

func (s *destinations[D]) remove(key string, args Arguments, d D) bool {
	i := s.find(d)
	if i < 0 || !s.bound[i].remove(identify(key, args)) {
		return false
	}
	if s.bound[i].empty() {
		s.drop(i)
	}
	return true
}

// forget removes all bindings of d at once, and reports whether there were any.
func (s *destinations[D]) forget(d D) bool {
	i := s.find(d)
	if i >= 0 {
		s.drop(i)
	}
	return i >= 0
}

// drop takes entry i out by moving the last one into its place.
func (s *destinations[D]) drop(i int) {
	last := len(s.list) - 1
	if s.index != nil {
		s.index.Delete(s.list[i])
		if i != last {
			s.index.Set(s.list[last], i)
		}
	}
	s.list, s.bound = swapOut(s.list, i), swapOut(s.bound, i)
}

// swapOut removes entry i by moving the last one into its place. It gives memory back when little of it is used.
func swapOut[E any](s []E, i int) []E {
	last := len(s) - 1
	s[i] = s[last]
	clear(s[last:])
	if s = s[:last]; cap(s) > 1024 && last < cap(s)/8 {
		return slices.Clone(s)
	}
	return s
}

func (s *destinations[D]) empty() bool { return len(s.list) == 0 }

func (s *destinations[D]) each(yield func(D)) {
	for _, d := range s.list {
		yield(d)
	}
}
