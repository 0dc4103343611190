package route

type direct[D comparable] struct {
	byKey map[string]*destinations[D]
}

// NewDirect returns a Matcher by equality of routing key and binding key.
func NewDirect[D comparable]() Matcher[D] {
	return &direct[D]{byKey: make(map[string]*destinations[D])}
}

func (x *direct[D]) Bind(key string, args Arguments, d D) bool {
	s := x.byKey[key]
	if s == nil {
		s = new(destinations[D])
		x.byKey[key] = s
	}
	return s.add(key, args, d)
}

func (x *direct[D]) Unbind(key string, args Arguments, d D) bool {
	s := x.byKey[key]
	if s == nil || !s.remove(key, args, d) {
		return false
	}
	if s.empty() {
		delete(x.byKey, key)
	}
	return true
}

func (x *direct[D]) Match(key string, _ func() Headers, yield func(D)) {
	if s := x.byKey[key]; s != nil {
		s.each(yield)
	}
}
