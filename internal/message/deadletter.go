package message

import (
	"encoding/binary"
	"slices"
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
		if p, err := wire.ParseProperties(m.Properties); err == nil {
			p.Flags &^= wire.FlagExpiration
			dead.Properties = p.AppendTo(nil)
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
	p, err := wire.ParseProperties(m.Properties)
	if err != nil {
		return m.Properties
	}
	var own wire.Table
	if m.Deaths != nil {
		own = deathHeaders(m.Deaths)
	}
	if c.Returns > 0 {
		own = append(own, wire.Field{Name: "x-acquired-count", Value: int64(c.Returns)})
	}
	if c.Failures > 0 {
		own = append(own, wire.Field{Name: "x-delivery-count", Value: int64(c.Failures)})
	}
	headers := own
	for _, f := range p.Headers {
		if _, taken := headers.Get(f.Name); !taken {
			headers = append(headers, f)
		}
	}
	slices.SortStableFunc(headers, func(a, b wire.Field) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
	p.Headers = headers
	p.Flags |= wire.FlagHeaders
	return p.AppendTo(nil)
}

// offsetHeader tells consumers of a stream where in it a message is. Source:
// https://www.rabbitmq.com/docs/streams#consuming.
const offsetHeader = "x-stream-offset"

// DeliveredAt is Delivered for a message of a stream, with its offset among the headers.
func (m *Message) DeliveredAt(offset uint64) []byte {
	raw := m.Delivered(Counts{})
	v, err := wire.ViewProperties(raw)
	if err != nil {
		return raw
	}
	at := 2 // where the headers are: behind the flags and the content type and encoding
	if v.Has(wire.FlagContentType) {
		at += 1 + len(v.ContentType)
	}
	if v.Has(wire.FlagContentEncoding) {
		at += 1 + len(v.ContentEncoding)
	}
	behind := at
	if v.Has(wire.FlagHeaders) {
		behind += 4 + len(v.Headers)
	}
	headers := v.Headers
	if _, taken := v.Header(offsetHeader); taken {
		t, _ := wire.ParseTable(v.Headers)
		headers = without(t, offsetHeader).AppendTo(nil)
	}
	const ownSize = 1 + len(offsetHeader) + 1 + 8
	b := make([]byte, 0, len(raw)+4+ownSize)
	b = binary.BigEndian.AppendUint16(b, v.Flags|wire.FlagHeaders)
	b = append(b, raw[2:at]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)+ownSize))
	b = append(b, headers...)
	b = append(append(b, byte(len(offsetHeader))), offsetHeader...)
	b = binary.BigEndian.AppendUint64(append(b, 'l'), offset)
	return append(b, raw[behind:]...)
}

// deathHeaders writes x-death and its companions with the fields, order and types of
// RabbitMQ 4. Source: https://www.rabbitmq.com/docs/dlx#effects.
func deathHeaders(h *xdeath.History) wire.Table {
	deaths := make([]any, 0, len(h.Deaths))
	for _, d := range h.Deaths {
		var t wire.Table
		if d.OriginalExpiration != "" {
			t = append(t, wire.Field{Name: "original-expiration", Value: d.OriginalExpiration})
		}
		keys := make([]any, len(d.Keys))
		for i, k := range d.Keys {
			keys[i] = k
		}
		deaths = append(deaths, append(t,
			wire.Field{Name: "count", Value: d.Count},
			wire.Field{Name: "reason", Value: d.Reason},
			wire.Field{Name: "queue", Value: d.Queue},
			wire.Field{Name: "time", Value: wire.Timestamp(d.Time.Unix())},
			wire.Field{Name: "exchange", Value: d.Exchange},
			wire.Field{Name: "routing-keys", Value: keys},
		))
	}
	return wire.Table{
		{Name: "x-death", Value: deaths},
		{Name: "x-first-death-exchange", Value: h.FirstExchange},
		{Name: "x-first-death-queue", Value: h.FirstQueue},
		{Name: "x-first-death-reason", Value: h.FirstReason},
		{Name: "x-last-death-exchange", Value: h.LastExchange},
		{Name: "x-last-death-queue", Value: h.LastQueue},
		{Name: "x-last-death-reason", Value: h.LastReason},
	}
}
