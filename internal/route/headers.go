package route

import (
	"strings"

	"github.com/dormousemq/dormouse/internal/compact"
)

type headers[D comparable] struct {
	list  []*headerBinding[D]
	index compact.Map[headerID[D], *headerBinding[D]]
}

type headerID[D comparable] struct {
	identity
	dest D
}

// NewHeaders returns a Matcher by the headers of the message. The binding argument x-match says how: all (also when it
// is absent), any, all-with-x, any-with-x. Arguments whose name begins with x- take part only in the last two, and
// x-match itself in none. An argument without a value (void) asks only that the header be there.
//
// Without an argument that takes part, all matches every message and any matches none.
func NewHeaders[D comparable]() Matcher[D] {
	return new(headers[D])
}

type headerBinding[D comparable] struct {
	dest D
	pos  int // in list
	any  bool
	want Arguments // those that take part
}

func newHeaderBinding[D comparable](args Arguments, d D) *headerBinding[D] {
	b := &headerBinding[D]{dest: d}
	mode, _ := args.lookup("x-match")
	b.any = mode == "any" || mode == "any-with-x"
	withX := mode == "all-with-x" || mode == "any-with-x"
	for _, a := range args.sorted() {
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

func (x *headers[D]) Bind(key string, args Arguments, d D) bool {
	id := headerID[D]{identify(key, args), d}
	if _, bound := x.index.Get(id); bound {
		return false
	}
	b := newHeaderBinding(args, d)
	b.pos = len(x.list)
	x.list = append(x.list, b)
	x.index.Set(id, b)
	return true
}

func (x *headers[D]) Unbind(key string, args Arguments, d D) bool {
	id := headerID[D]{identify(key, args), d}
	b, bound := x.index.Get(id)
	if !bound {
		return false
	}
	x.index.Delete(id)
	if x.list = swapOut(x.list, b.pos); b.pos < len(x.list) {
		x.list[b.pos].pos = b.pos
	}
	return true
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
