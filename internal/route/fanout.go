package route

type fanout[D comparable] struct {
	all destinations[D]
}

// NewFanout returns a Matcher that gives every message to every destination.
func NewFanout[D comparable]() Matcher[D] { return new(fanout[D]) }

func (x *fanout[D]) Bind(key string, args Arguments, d D) bool { return x.all.add(key, args, d) }

func (x *fanout[D]) Unbind(key string, args Arguments, d D) bool { return x.all.remove(key, args, d) }

func (x *fanout[D]) Match(_ string, _ func() Headers, yield func(D)) { x.all.each(yield) }
