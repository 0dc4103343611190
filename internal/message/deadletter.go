package message

import (
	"strconv"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
	"github.com/dormousemq/dormouse/internal/xdeath"
)

// Death is how a message leaves a queue for that queue's dead-letter exchange.
type Death struct {
	// Queue is where it died.
	Queue string
	// Reason is rejected, expired, maxlen or delivery_limit.
	Reason string
	// Time is when.
	Time time.Time
	// Exchange is the dead-letter exchange.
	Exchange string
	// RoutingKey replaces the message's keys if it is not nil.
	RoutingKey *string
}

// DeadLetter returns what is published to the dead-letter exchange for a message
// that died: with its history grown by this death, without an expiration, with its
// keys unless the queue has a dead-letter routing key.
// Source: https://www.rabbitmq.com/docs/dlx.
func (m *Message) DeadLetter(d Death) *Message {
	dead := *m
	event := xdeath.Event{
		Queue: d.Queue, Reason: d.Reason, Time: d.Time,
		Exchange: m.Exchange, Keys: m.Keys,
	}
	if m.Expiration != NoExpiration {
		event.OriginalExpiration = strconv.FormatInt(m.Expiration.Milliseconds(), 10)
		dead.Expiration = NoExpiration
		if p, err := wire.ReplaceProperty(m.Properties, wire.FlagExpiration, nil); err == nil {
			dead.Properties = p
		}
	}
	dead.Deaths = m.Deaths.Record(event)
	dead.Exchange = d.Exchange
	if d.RoutingKey != nil {
		dead.Keys, dead.BCC = []string{*d.RoutingKey}, nil
	}
	return &dead
}

// Counts are the delivery counts that a quorum queue adds to a delivery.
// Source: https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling.
type Counts struct {
	// Returns is how often the message came back, x-acquired-count.
	Returns uint32
	// Failures is how often of these after a failure, x-delivery-count.
	Failures uint32
}

// Delivered returns the properties as a consumer sees them: those of the publisher
// with the broker's own headers in their place. Like RabbitMQ 4 it sorts the headers
// by name if, and only if, it adds any.
func (m *Message) Delivered(c Counts) []byte {
	if m.Deaths == nil && c == (Counts{}) {
		return m.Properties
	}
	view, err := wire.ViewProperties(m.Properties)
	if err != nil {
		return m.Properties
	}
	table := appendOwnHeaders(make([]byte, 4, 512), m.Deaths, c) // begins with its length
	if len(view.Headers) > 0 {
		table = appendMerged(make([]byte, 4, len(table)+len(view.Headers)), table[4:], view.Headers)
	}
	properties, err := wire.ReplaceProperty(m.Properties, wire.FlagHeaders, wire.EndField(table, 4))
	if err != nil {
		return m.Properties
	}
	return properties
}

// offsetHeader tells consumers of a stream where in it a message is. Source:
// https://www.rabbitmq.com/docs/streams#consuming.
const offsetHeader = "x-stream-offset"

// DeliveredAt is Delivered for a message of a stream, with its offset among the headers, and with the delivery mode
// that RabbitMQ gives it on the way through AMQP 1.0 if it is not persistent.
func (m *Message) DeliveredAt(offset uint64) []byte {
	raw := m.Delivered(Counts{})
	view, err := wire.ViewProperties(raw)
	if err != nil {
		return raw
	}
	table := make([]byte, 4, 4+len(view.Headers)+64) // begins with its length
	for f := range wire.RawFields(view.Headers) {
		if string(f.Name) != offsetHeader {
			table = append(table, f.Field...)
		}
	}
	table = wire.AppendInt64Field(table, offsetHeader, int64(offset))
	properties, err := wire.ReplaceProperty(raw, wire.FlagHeaders, wire.EndField(table, 4))
	if err == nil && view.DeliveryMode != wire.Persistent {
		properties, err = wire.ReplaceProperty(properties, wire.FlagDeliveryMode, []byte{wire.Transient})
	}
	if err != nil {
		return raw
	}
	return properties
}
