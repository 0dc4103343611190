package route

import "slices"

// indexAt is the number of destinations above which a set keeps an index. Most sets have one or two members, and a
// map for each of them would cost more memory than everything else.
const indexAt = 8

// destinations is a set of bindings by destination: the list to give out, and for each of its entries the identities
// of the bindings that put it there.
type destinations[D comparable] struct {
	list  []D
	bound [][]identity
	index map[D]int // position in list; nil while the set is small
}

// identity is what tells two bindings of one destination apart.
type identity struct {
	key  string
	args Arguments // sorted
}

func (id identity) same(o identity) bool { return id.key == o.key && id.args.same(o.args) }

func (s *destinations[D]) find(d D) int {
	if s.index == nil {
		return slices.Index(s.list, d)
	}
	if i, ok := s.index[d]; ok {
		return i
	}
	return -1
}

func (s *destinations[D]) add(key string, args Arguments, d D) bool {
	id := identity{key, args.sorted()}
	if i := s.find(d); i >= 0 {
		if slices.ContainsFunc(s.bound[i], id.same) {
			return false
		}
		s.bound[i] = append(s.bound[i], id)
		return true
	}
	s.list = append(s.list, d)
	s.bound = append(s.bound, []identity{id})
	switch {
	case s.index != nil:
		s.index[d] = len(s.list) - 1
	case len(s.list) > indexAt:
		s.index = make(map[D]int, 2*len(s.list))
		for i, d := range s.list {
			s.index[d] = i
		}
	}
	return true
}

func (s *destinations[D]) remove(key string, args Arguments, d D) bool {
	i := s.find(d)
	if i < 0 {
		return false
	}
	id := identity{key, args.sorted()}
	j := slices.IndexFunc(s.bound[i], id.same)
	if j < 0 {
		return false
	}
	if s.bound[i] = slices.Delete(s.bound[i], j, j+1); len(s.bound[i]) == 0 {
		s.drop(i)
	}
	return true
}

// drop takes entry i out by moving the last one into its place.
func (s *destinations[D]) drop(i int) {
	last := len(s.list) - 1
	if s.index != nil {
		delete(s.index, s.list[i])
		if i != last {
			s.index[s.list[last]] = i
		}
	}
	s.list[i], s.bound[i] = s.list[last], s.bound[last]
	clear(s.list[last:])
	clear(s.bound[last:])
	s.list, s.bound = s.list[:last], s.bound[:last]
}

func (s *destinations[D]) empty() bool { return len(s.list) == 0 }

func (s *destinations[D]) each(yield func(D)) {
	for _, d := range s.list {
		yield(d)
	}
}
