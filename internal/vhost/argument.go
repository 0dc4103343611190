package vhost

import (
	"fmt"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// queueArgument is an argument of queue.declare that means something.
type queueArgument struct {
	name string
	// types are the queue types that know it; nil for all.
	types []queue.Type
	// set takes a value into the settings, or returns RabbitMQ's reason to refuse it.
	set func(s *queue.Settings, v any) (reason string)
}

var (
	classicOnly = []queue.Type{queue.Classic}
	quorumOnly  = []queue.Type{queue.Quorum}
)

// queueArguments are the known arguments. Others are accepted and mean nothing.
// Source: https://www.rabbitmq.com/docs/queues#optional-arguments.
var queueArguments = []queueArgument{
	{"x-queue-type", nil, func(*queue.Settings, any) string { return "" }},
	{"x-expires", nil, func(s *queue.Settings, v any) string {
		ms, reason := milliseconds(v)
		if reason == "" && ms == 0 {
			reason = "{value_zero,0}"
		}
		s.Expires = ms
		return reason
	}},
	{"x-message-ttl", nil, func(s *queue.Settings, v any) string {
		ms, reason := milliseconds(v)
		s.TTL = ms
		return reason
	}},
	{"x-dead-letter-exchange", nil, func(s *queue.Settings, v any) string {
		name, ok := v.(string)
		s.DeadLetterExchange = &name
		return expectString(v, ok)
	}},
	{"x-dead-letter-routing-key", nil, func(s *queue.Settings, v any) string {
		key, ok := v.(string)
		s.DeadLetterRoutingKey = &key
		return expectString(v, ok)
	}},
	{"x-dead-letter-strategy", quorumOnly, func(s *queue.Settings, v any) string {
		strategy, ok := v.(string)
		switch {
		case !ok:
			return expectString(v, ok)
		case strategy == "at-least-once":
			s.AtLeastOnce = true
		case strategy != "at-most-once":
			return "invalid_dlx_strategy"
		}
		return ""
	}},
	{"x-max-length", nil, func(s *queue.Settings, v any) (reason string) {
		s.MaxLength, reason = nonNegative(v)
		return reason
	}},
	{"x-max-length-bytes", nil, func(s *queue.Settings, v any) (reason string) {
		s.MaxBytes, reason = nonNegative(v)
		return reason
	}},
	{"x-overflow", nil, func(s *queue.Settings, v any) string {
		overflow, ok := v.(string)
		switch s.Overflow = queue.Overflow(overflow); {
		case !ok:
			return expectString(v, ok)
		case s.Overflow == queue.RejectPublishDLX && s.Type == queue.Quorum:
			s.Overflow = queue.DropHead
		case s.Overflow != queue.DropHead && s.Overflow != queue.RejectPublish && s.Overflow != queue.RejectPublishDLX:
			return "invalid_overflow"
		}
		return ""
	}},
	{"x-max-priority", classicOnly, func(s *queue.Settings, v any) string {
		n, reason := nonNegative(v)
		if reason == "" && n > 255 {
			reason = fmt.Sprintf("{max_value_exceeded,%d}", n)
		}
		s.MaxPriority = uint8(n)
		return reason
	}},
	{"x-single-active-consumer", nil, func(s *queue.Settings, v any) string {
		single, ok := v.(bool)
		if !ok {
			return fmt.Sprintf("\"expected boolean, got %s\"", wire.TypeName(v))
		}
		s.SingleActiveConsumer = single
		return ""
	}},
	{"x-delivery-limit", quorumOnly, func(s *queue.Settings, v any) string {
		if n, ok := integer(v); ok {
			s.DeliveryLimit = max(n, queue.Unlimited)
		}
		return ""
	}},
}

// settings reads the arguments of a queue declaration.
func (h *Host) settings(d QueueDeclare) (queue.Settings, error) {
	kind := queue.Classic
	if v, has := d.Arguments.Get("x-queue-type"); has {
		name, ok := v.(string)
		if !ok {
			return queue.Settings{}, h.invalidArgument("x-queue-type", d.Name, expectString(v, false))
		}
		if kind = queue.Type(name); kind != queue.Classic && kind != queue.Quorum {
			return queue.Settings{}, h.invalidArgument("x-queue-type", d.Name, fmt.Sprintf("\"unsupported queue type '%s'\"", name))
		}
	}
	s := queue.Defaults(kind, d.Durable && !d.Exclusive)
	for _, a := range queueArguments {
		v, has := d.Arguments.Get(a.name)
		if !has {
			continue
		}
		if a.types != nil && a.types[0] != kind {
			return s, wire.Errorf(wire.PreconditionFailed, "invalid arg '%s' for %s of queue type rabbit_%s_queue", a.name, h.queueText(d.Name), kind)
		}
		if reason := a.set(&s, v); reason != "" {
			return s, h.invalidArgument(a.name, d.Name, reason)
		}
	}
	if s.DeadLetterRoutingKey != nil && s.DeadLetterExchange == nil {
		return s, h.invalidArgument("x-dead-letter-routing-key", d.Name, "routing_key_but_no_dlx_defined")
	}
	if s.AtLeastOnce && (s.Overflow != queue.RejectPublish || s.DeadLetterExchange == nil) {
		h.log.Warn("at-least-once dead-lettering needs x-overflow reject-publish and a dead-letter exchange; the queue dead-letters at most once", "queue", d.Name)
		s.AtLeastOnce = false
	}
	if kind == queue.Quorum {
		for property, wrong := range map[string]bool{"non-durable": !d.Durable, "auto-delete": d.AutoDelete, "exclusive-owner": d.Exclusive} {
			if wrong {
				return s, wire.Errorf(wire.PreconditionFailed, "invalid property '%s' for %s", property, h.queueText(d.Name))
			}
		}
	}
	return s, nil
}

func (h *Host) invalidArgument(name, queue, reason string) error {
	return wire.Errorf(wire.PreconditionFailed, "invalid arg '%s' for %s: %s", name, h.queueText(queue), reason)
}

func expectString(v any, ok bool) string {
	if ok {
		return ""
	}
	return fmt.Sprintf("{unacceptable_type,%s}", wire.TypeName(v))
}

// milliseconds reads a TTL.
func milliseconds(v any) (time.Duration, string) {
	n, reason := nonNegative(v)
	if reason == "" && n > message.MaxTTL.Milliseconds() {
		reason = fmt.Sprintf("{value_too_large,%d}", n)
	}
	return time.Duration(n) * time.Millisecond, reason
}

func nonNegative(v any) (int64, string) {
	n, ok := integer(v)
	switch {
	case !ok:
		return 0, fmt.Sprintf("\"expected integer, got %s\"", wire.TypeName(v))
	case n < 0:
		return 0, fmt.Sprintf("{value_negative,%d}", n)
	}
	return n, ""
}
