package vhost

import (
	"fmt"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/route"
	"github.com/dormousemq/dormouse/internal/wire"
)

// The exchange types of RabbitMQ's plugins that give a message to one destination, and the arguments that say by what
// x-consistent-hash does. Source: the documentation of rabbitmq_consistent_hash_exchange and rabbitmq_random_exchange.
const (
	consistentHashType = "x-consistent-hash"
	randomType         = "x-random"
	hashHeader         = "hash-header"
	hashProperty       = "hash-property"
)

// single tells whether the exchange is asked once for a message, not once for each of its keys.
func (x *Exchange) single() bool { return x.routes == consistentHashType || x.routes == randomType }

// forget has the exchanges give no message to q any more that give one to a single destination.
func (h *Host) forget(q *Queue) {
	if q.bindings.Len() <= unbound {
		return // its bindings are removed before anybody sees it
	}
	for _, x := range h.exchanges {
		if m, ok := x.matcher.(interface{ Forget(destination) }); ok {
			m.Forget(destination{queue: q})
		}
	}
}

// checkHashing checks by what an x-consistent-hash exchange is to route.
func (d ExchangeDeclare) checkHashing() error {
	_, byHeader := stringArgument(d.Arguments, hashHeader)
	property, byProperty := stringArgument(d.Arguments, hashProperty)
	switch {
	case byHeader && byProperty:
		return wire.Errorf(wire.PreconditionFailed, "hash-header and hash-property are mutually exclusive")
	case byProperty && property != "correlation_id" && property != "message_id" && property != "timestamp":
		return wire.Errorf(wire.PreconditionFailed, "Unsupported property: %s", property)
	}
	return nil
}

// hashed is what x hashes of m: a header, a property, or the routing key. What is not there is hashed as "".
func (x *Exchange) hashed(m *message.Message, headers func() route.Headers) string {
	if name, ok := stringArgument(x.Arguments, hashHeader); ok {
		v, ok := headers()(name)
		if !ok {
			return ""
		}
		return fmt.Sprint(v)
	}
	property, ok := stringArgument(x.Arguments, hashProperty)
	if !ok {
		return m.Keys[0]
	}
	p, err := wire.ParseProperties(m.Properties)
	switch {
	case err != nil:
	case property == "correlation_id":
		return p.CorrelationID
	case property == "message_id":
		return p.MessageID
	case p.Flags&wire.FlagTimestamp != 0:
		return fmt.Sprint(p.Timestamp)
	}
	return ""
}
