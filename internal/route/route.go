package route

// A Matcher holds the bindings of one exchange and finds those that a message satisfies.
//
// Bind and Unbind must not run concurrently with any other method. Match is safe concurrently with Match.
type Matcher[D comparable] interface {
	// Bind adds the binding of d and reports whether it is new.
	Bind(key string, args Arguments, d D) bool

	// Unbind removes exactly the binding with this key, these arguments and this destination, and reports
	// whether there was one.
	Unbind(key string, args Arguments, d D) bool

	// Match calls yield for the destination of every binding that the message satisfies. A destination may be
	// given more than once. headers is called at most once, and only by matchers that look at headers; it may
	// be nil for a message without any.
	Match(key string, headers func() Headers, yield func(D))
}

// Headers looks up a header of a message by its name. Where a name stands twice in the message the last one counts,
// as in RabbitMQ 4.
type Headers func(name string) (value any, ok bool)
