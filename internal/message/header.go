package message

import (
	"bytes"
	"slices"

	"github.com/dormousemq/dormouse/internal/wire"
	"github.com/dormousemq/dormouse/internal/xdeath"
)

// appendOwnHeaders appends the headers that the broker adds to a delivery, in the order of their names, as encoded fields.
func appendOwnHeaders(b []byte, h *xdeath.History, c Counts) []byte {
	if c.Returns > 0 {
		b = wire.AppendInt64Field(b, "x-acquired-count", int64(c.Returns))
	}
	if h != nil {
		b = appendDeathHeader(b, h.Deaths)
	}
	if c.Failures > 0 {
		b = wire.AppendInt64Field(b, "x-delivery-count", int64(c.Failures))
	}
	if h != nil {
		b = wire.AppendStringField(b, "x-first-death-exchange", h.FirstExchange)
		b = wire.AppendStringField(b, "x-first-death-queue", h.FirstQueue)
		b = wire.AppendStringField(b, "x-first-death-reason", h.FirstReason)
		b = wire.AppendStringField(b, "x-last-death-exchange", h.LastExchange)
		b = wire.AppendStringField(b, "x-last-death-queue", h.LastQueue)
		b = wire.AppendStringField(b, "x-last-death-reason", h.LastReason)
	}
	return b
}

// appendDeathHeader appends x-death with the fields, order and types of RabbitMQ 4.
// Source: https://www.rabbitmq.com/docs/dlx#effects.
func appendDeathHeader(b []byte, deaths xdeath.Deaths) []byte {
	b, array := wire.BeginArrayField(b, "x-death")
	for i := range deaths {
		d := &deaths[i]
		var table, keys int
		b, table = wire.BeginTableElement(b)
		if d.OriginalExpiration != "" {
			b = wire.AppendStringField(b, "original-expiration", d.OriginalExpiration)
		}
		b = wire.AppendInt64Field(b, "count", d.Count)
		b = wire.AppendStringField(b, "reason", d.Reason)
		b = wire.AppendStringField(b, "queue", d.Queue)
		b = wire.AppendTimestampField(b, "time", wire.Timestamp(d.Time.Unix()))
		b = wire.AppendStringField(b, "exchange", d.Exchange)
		b, keys = wire.BeginArrayField(b, "routing-keys")
		for _, k := range d.Keys {
			b = wire.AppendStringElement(b, k)
		}
		b = wire.EndField(b, keys)
		b = wire.EndField(b, table)
	}
	return wire.EndField(b, array)
}

// appendMerged appends own headers and those of the publisher, by name. Of several with one name it takes the first, and own ones before
// those of the publisher, like RabbitMQ 4.
func appendMerged(b, own, publishers []byte) []byte {
	fields := slices.AppendSeq(slices.Collect(wire.RawFields(own)), wire.RawFields(publishers))
	slices.SortStableFunc(fields, func(a, b wire.RawField) int { return bytes.Compare(a.Name, b.Name) })
	fields = slices.CompactFunc(fields, func(a, b wire.RawField) bool { return bytes.Equal(a.Name, b.Name) })
	for _, f := range fields {
		b = append(b, f.Field...)
	}
	return b
}
