package vhost

import (
	"fmt"
	"slices"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/stream"
	"github.com/dormousemq/dormouse/internal/wire"
)

// consumerArgument is an argument of basic.consume that means something.
type consumerArgument struct {
	name string
	// types are the queue types that know it.
	types []queue.Type
	// set takes a value into the consumer, or returns RabbitMQ's reason to refuse it. It
	// may be nil.
	set func(c *queue.Consumer, v any) (reason string)
}

// consumerArguments are the known arguments, in the order in which they are checked. Others
// are accepted and mean nothing. Source: https://www.rabbitmq.com/docs/consumers.
var consumerArguments = []consumerArgument{
	{"x-priority", both, func(c *queue.Consumer, v any) string {
		n, ok := integer(v)
		if !ok {
			return fmt.Sprintf("\"expected integer, got %s\"", wire.TypeName(v))
		}
		c.Priority = int(n)
		return ""
	}},
	{"x-consumer-timeout", quorum, func(c *queue.Consumer, v any) string {
		n, reason := nonNegative(v)
		timeout := duration(n)
		c.Timeout = &timeout
		return reason
	}},
	// A stream reads its own when the consumer comes, but a bad offset is refused before anything else.
	{"x-stream-offset", streams, func(_ *queue.Consumer, v any) string { return stream.CheckOffset(v) }},
	{"x-stream-filter", streams, nil},
	{"x-stream-match-unfiltered", streams, nil},
}

// readArguments reads the arguments of a consumer of q. Those that q knows are checked
// before those that only queues of other types know, as in RabbitMQ.
func (h *Host) readArguments(q *Queue, c *queue.Consumer) error {
	kind := q.Settings().Type
	for _, a := range consumerArguments {
		v, has := c.Arguments.Get(a.name)
		if !has || a.set == nil || !slices.Contains(a.types, kind) {
			continue
		}
		if reason := a.set(c, v); reason != "" {
			return h.invalidArgument(a.name, q.Name(), reason)
		}
	}
	for _, f := range c.Arguments {
		known := func(a consumerArgument) bool { return a.name == f.Name && !slices.Contains(a.types, kind) }
		if slices.ContainsFunc(consumerArguments, known) {
			return wire.Errorf(wire.PreconditionFailed, "invalid arg '%s' for %s of queue type rabbit_%s_queue", f.Name, h.queueText(q.Name()), kind)
		}
	}
	return nil
}
