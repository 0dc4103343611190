package route

import "github.com/dormousemq/dormouse/internal/compact"

type direct[D comparable] struct {
	byKey compact.Map[string, *destinations[D]]
}

// NewDirect returns a Matcher by equality of routing key and binding key.
func NewDirect[D comparable]() Matcher[D] {
	return new(direct[D])
}

func (x *direct[D]) Bind(key string, args Arguments, d D) bool {
	s, ok := x.byKey.Get(key)
	if !ok {
		s = new(destinations[D])
		x.byKey.Set(key, s)
	}
	return s.add(key, args, d)
}

func (x *direct[D]) Unbind(key string, args Arguments, d D) bool {
	s, ok := x.byKey.Get(key)
	if !ok || !s.remove(key, args, d) {
		return false
	}
	if s.empty() {
		x.byKey.Delete(key)
	}
	return true
}

func (x *direct[D]) Match(key string, _ func() Headers, yield func(D)) {
	if s, ok := x.byKey.Get(key); ok {
		s.each(yield)
	}
}
