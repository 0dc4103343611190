package route

import "strings"

type headers[D comparable] struct {
	list  []*headerBinding[D]
	index map[D][]*headerBinding[D]
}

// NewHeaders returns a Matcher by the headers of the message. The binding argument x-match says how: all (also when it
// is absent), any, all-with-x, any-with-x. Arguments whose name begins with x- take part only in the last two, and
// x-match itself in none. An argument without a value (void) asks only that the header be there.
//
// Without an argument that takes part, all matches every message and any matches none.
func NewHeaders[D comparable]() Matcher[D] {
	return &headers[D]{index: make(map[D][]*headerBinding[D])}
}

type headerBinding[D comparable] struct {
	identity
	dest D
	pos  int // in list
	any  bool
	want Arguments // those that take part
}

func newHeaderBinding[D comparable](id identity, d D) *headerBinding[D] {
	b := &headerBinding[D]{identity: id, dest: d}
	mode, _ := id.args.lookup("x-match")
	b.any = mode == "any" || mode == "any-with-x"
	withX := mode == "all-with-x" || mode == "any-with-x"
	for _, a := range id.args {
		if a.Name != "x-match" && (withX || !strings.HasPrefix(a.Name, "x-")) {
			b.want = append(b.want, a)
		}
	}
	return b
}

func (b *headerBinding[D]) match(h Headers) bool {
	for _, want := range b.want {
		got, ok := h(want.Name)
		ok = ok && (want.Value == nil || equal(want.Value, got))
		if ok == b.any {
			return ok
		}
	}
	return !b.any
}

func (x *headers[D]) find(id identity, d D) int {
	for i, b := range x.index[d] {
		if b.same(id) {
			return i
		}
	}
	return -1
}

func (x *headers[D]) Bind(key string, args Arguments, d D) bool {
	id := identity{key, args.sorted()}
	if x.find(id, d) >= 0 {
		return false
	}
	b := newHeaderBinding(id, d)
	b.pos = len(x.list)
	x.list = append(x.list, b)
	x.index[d] = append(x.index[d], b)
	return true
}

func (x *headers[D]) Unbind(key string, args Arguments, d D) bool {
	i := x.find(identity{key, args.sorted()}, d)
	if i < 0 {
		return false
	}
	of := x.index[d]
	pos := of[i].pos
	if of = swapOut(of, i); len(of) == 0 {
		delete(x.index, d)
	} else {
		x.index[d] = of
	}
	if x.list = swapOut(x.list, pos); pos < len(x.list) {
		x.list[pos].pos = pos
	}
	return true
}

// swapOut removes entry i by moving the last one into its place.
func swapOut[E any](s []E, i int) []E {
	last := len(s) - 1
	s[i] = s[last]
	clear(s[last:])
	return s[:last]
}

func none(string) (any, bool) { return nil, false }

func (x *headers[D]) Match(_ string, hs func() Headers, yield func(D)) {
	if len(x.list) == 0 {
		return
	}
	h := Headers(none)
	if hs != nil {
		h = hs()
	}
	for _, b := range x.list {
		if b.match(h) {
			yield(b.dest)
		}
	}
}
