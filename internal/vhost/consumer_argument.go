package vhost

import (
	"slices"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// consumerArguments are the arguments of basic.consume that mean something, with the queue
// types that know them. Others are accepted and mean nothing.
// Source: https://www.rabbitmq.com/docs/consumers.
var consumerArguments = map[string][]queue.Type{
	"x-priority":                both,
	"x-consumer-timeout":        quorum,
	"x-stream-offset":           streams,
	"x-stream-filter":           streams,
	"x-stream-match-unfiltered": streams,
}

// checkConsumerArguments refuses arguments that belong to queues of other types.
func (h *Host) checkConsumerArguments(q *Queue, arguments wire.Table) error {
	kind := q.Settings().Type
	for _, a := range arguments {
		if types, known := consumerArguments[a.Name]; known && !slices.Contains(types, kind) {
			return wire.Errorf(wire.PreconditionFailed, "invalid arg '%s' for %s of queue type rabbit_%s_queue", a.Name, h.queueText(q.Name()), kind)
		}
	}
	return nil
}
