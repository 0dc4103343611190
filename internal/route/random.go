package route

import "math/rand/v2"

// random gives a message to one destination, however often that is bound.
type random[D comparable] struct {
	all destinations[D]
}

// NewRandom returns a Matcher of the exchange type x-random, which gives every message to one of the destinations. Call
// its Match once for a message, however many keys that has.
func NewRandom[D comparable]() Matcher[D] { return new(random[D]) }

func (x *random[D]) Bind(key string, args Arguments, d D) bool { return x.all.add(key, args, d) }

func (x *random[D]) Unbind(key string, args Arguments, d D) bool { return x.all.remove(key, args, d) }

// Forget removes all bindings of d.
func (x *random[D]) Forget(d D) { x.all.forget(d) }

func (x *random[D]) Match(_ string, _ func() Headers, yield func(D)) {
	if n := len(x.all.list); n > 0 {
		yield(x.all.list[rand.IntN(n)])
	}
}
