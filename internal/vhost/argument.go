package vhost

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/stream"
	"github.com/dormousemq/dormouse/internal/wire"
)

// queueArgument is an argument of queue.declare that means something.
type queueArgument struct {
	name string
	// types are the queue types that know it.
	types []queue.Type
	// set takes a value into the settings, or returns RabbitMQ's reason to refuse it.
	set func(s *queue.Settings, v any) (reason string)
}

const (
	queueType          = "x-queue-type"
	deadLetterExchange = "x-dead-letter-exchange"
)

var (
	both    = []queue.Type{queue.Classic, queue.Quorum}
	classic = []queue.Type{queue.Classic}
	quorum  = []queue.Type{queue.Quorum}
	streams = []queue.Type{queue.Stream}
	all     = []queue.Type{queue.Classic, queue.Quorum, queue.Stream}
)

// queueArguments are the known arguments, in the order in which they are checked. Others
// are accepted and mean nothing.
// Source: https://www.rabbitmq.com/docs/queues#optional-arguments.
var queueArguments = []queueArgument{
	{"x-expires", both, func(s *queue.Settings, v any) string {
		ms, reason := milliseconds(v)
		if reason == "" && ms == 0 {
			reason = zero
		}
		s.Expires = ms
		return reason
	}},
	{"x-message-ttl", both, func(s *queue.Settings, v any) string {
		ms, reason := milliseconds(v)
		s.TTL = ms
		return reason
	}},
	{deadLetterExchange, both, func(s *queue.Settings, v any) string {
		name, ok := v.(string)
		s.DeadLetterExchange = &name
		return unacceptable(v, ok)
	}},
	{"x-dead-letter-routing-key", both, func(s *queue.Settings, v any) string {
		key, ok := v.(string)
		s.DeadLetterRoutingKey = &key
		return unacceptable(v, ok)
	}},
	{"x-dead-letter-strategy", quorum, func(s *queue.Settings, v any) string {
		strategy, ok := v.(string)
		switch {
		case !ok:
			return unacceptable(v, ok)
		case strategy == "at-least-once":
			s.AtLeastOnce = true
		case strategy != "at-most-once":
			return "invalid_dlx_strategy"
		}
		return ""
	}},
	{"x-max-length", both, func(s *queue.Settings, v any) (reason string) {
		s.MaxLength, reason = nonNegative(v)
		return reason
	}},
	{"x-max-length-bytes", all, func(s *queue.Settings, v any) (reason string) {
		s.MaxBytes, reason = nonNegative(v)
		return reason
	}},
	{"x-max-age", streams, func(s *queue.Settings, v any) string {
		text, ok := v.(string)
		if !ok {
			return unacceptable(v, ok)
		}
		if s.MaxAge, ok = stream.ParseAge(text); !ok {
			return "invalid_max_age"
		}
		return ""
	}},
	{"x-stream-max-segment-size-bytes", streams, func(s *queue.Settings, v any) (reason string) {
		s.SegmentBytes, reason = nonNegative(v)
		return reason
	}},
	{"x-stream-filter-size-bytes", streams, func(_ *queue.Settings, v any) string {
		_, reason := nonNegative(v)
		return reason
	}},
	{"x-max-in-memory-length", quorum, memoryLimit},
	{"x-max-in-memory-bytes", quorum, memoryLimit},
	{"x-max-priority", classic, func(s *queue.Settings, v any) string {
		n, reason := nonNegative(v)
		if reason == "" && n > 255 {
			reason = fmt.Sprintf("{max_value_exceeded,%d}", n)
		}
		s.MaxPriority = uint8(n)
		return reason
	}},
	{"x-overflow", both, func(s *queue.Settings, v any) string {
		overflow, ok := v.(string)
		switch s.Overflow = queue.Overflow(overflow); {
		case !ok:
			return unacceptable(v, ok)
		case s.Overflow == queue.RejectPublishDLX && s.Type == queue.Quorum:
			s.Overflow = queue.DropHead
		case s.Overflow != queue.DropHead && s.Overflow != queue.RejectPublish && s.Overflow != queue.RejectPublishDLX:
			return "invalid_overflow"
		}
		return ""
	}},
	{"x-queue-version", classic, func(_ *queue.Settings, v any) string {
		n, reason := nonNegative(v)
		if reason == "" && n != 2 {
			reason = fmt.Sprintf("\"unsupported queue version '%d'\"", n)
		}
		return reason
	}},
	{"x-single-active-consumer", both, func(s *queue.Settings, v any) string {
		single, ok := v.(bool)
		s.SingleActiveConsumer = single
		return unacceptable(v, ok)
	}},
	{"x-consumer-timeout", quorum, func(s *queue.Settings, v any) string {
		n, reason := nonNegative(v)
		s.ConsumerTimeout = duration(n)
		return reason
	}},
	{"x-consumer-disconnected-timeout", quorum, func(_ *queue.Settings, v any) string {
		_, reason := nonNegative(v)
		return reason
	}},
	{"x-delivery-limit", quorum, func(s *queue.Settings, v any) string {
		if n, ok := integer(v); ok {
			s.DeliveryLimit = max(n, queue.Unlimited)
		}
		return ""
	}},
	{"x-delayed-retry-type", quorum, func(s *queue.Settings, v any) string {
		on, _ := v.(string)
		s.Retry.On = queue.RetryOn(on)
		return ""
	}},
	{"x-delayed-retry-min", quorum, func(s *queue.Settings, v any) string {
		s.Retry.Min = positiveDuration(v)
		return ""
	}},
	{"x-delayed-retry-max", quorum, func(s *queue.Settings, v any) string {
		s.Retry.Max = positiveDuration(v)
		return ""
	}},
	{"x-quorum-initial-group-size", quorum, positive},
	{"x-quorum-target-group-size", quorum, positive},
	{"x-initial-cluster-size", streams, positive},
	{"x-queue-leader-locator", all, func(_ *queue.Settings, v any) string {
		where, ok := v.(string)
		if ok && !slices.Contains(leaderLocators, where) {
			return "invalid_queue_locator_arg"
		}
		return unacceptable(v, ok)
	}},
	{queueType, all, ignored}, // read before all others
}

// leaderLocators are the ways to place a queue in a cluster, which here are all the same.
var leaderLocators = []string{"client-local", "balanced", "random", "least-leaders", "min-masters"}

// ignored accepts any value of an argument that makes no difference here: it is about
// the members of a cluster, or about what is not offered.
func ignored(*queue.Settings, any) string { return "" }

// memoryLimit accepts a limit that has had no meaning since RabbitMQ 4.0.
func memoryLimit(_ *queue.Settings, v any) string {
	_, reason := nonNegative(v)
	return reason
}

func positive(_ *queue.Settings, v any) string {
	n, reason := nonNegative(v)
	if reason == "" && n == 0 {
		reason = zero
	}
	return reason
}

// kind is the queue type that a declaration asks for. An empty name is a classic queue, as in RabbitMQ 4.3.
func (d *QueueDeclare) kind() queue.Type {
	return cmp.Or(d.named(), queue.Classic)
}

// named is the queue type by the name that the declaration has for it.
func (d *QueueDeclare) named() queue.Type {
	if name, ok := stringArgument(d.Arguments, queueType); ok {
		return queue.Type(name)
	}
	return queue.Classic
}

// settings checks the arguments of a queue declaration and reads what they say.
func (h *Host) settings(d QueueDeclare) (queue.Settings, error) {
	if v, has := d.Arguments.Get(queueType); has {
		if _, ok := v.(string); !ok {
			return queue.Settings{}, h.invalidArgument(queueType, d.Name, unacceptable(v, false))
		}
	}
	kind := d.kind()
	if !slices.Contains(all, kind) {
		return queue.Settings{}, h.invalidArgument(queueType, d.Name, fmt.Sprintf("\"unsupported queue type '%s'\"", kind))
	}
	s := queue.Defaults(kind, d.Durable)
	if v, has := d.Arguments.Get(deadLetterExchange); has {
		if _, isName := v.(string); !isName {
			return s, wire.Errorf(wire.PreconditionFailed, "invalid type '%s' for arg '%s' in %s", wire.TypeName(v), deadLetterExchange, h.queueText(d.Name))
		}
	}
	if kind == queue.Quorum {
		s.ConsumerTimeout = h.all.timeout
	}
	for _, a := range queueArguments {
		v, has := d.Arguments.Get(a.name)
		if !has || !slices.Contains(a.types, kind) {
			continue
		}
		if reason := a.set(&s, v); reason != "" {
			return s, h.invalidArgument(a.name, d.Name, reason)
		}
	}
	for _, f := range d.Arguments {
		i := slices.IndexFunc(queueArguments, func(a queueArgument) bool { return a.name == f.Name })
		if i >= 0 && !slices.Contains(queueArguments[i].types, kind) {
			return s, wire.Errorf(wire.PreconditionFailed, "invalid arg '%s' for %s of queue type rabbit_%s_queue", f.Name, h.queueText(d.Name), kind)
		}
	}
	if s.DeadLetterRoutingKey != nil && s.DeadLetterExchange == nil {
		return s, h.invalidArgument("x-dead-letter-routing-key", d.Name, "routing_key_but_no_dlx_defined")
	}
	if kind != queue.Classic {
		for _, p := range []struct {
			name  string
			wrong bool
		}{{"auto-delete", d.AutoDelete}, {"exclusive-owner", d.Exclusive}, {"non-durable", !d.Durable}} {
			if p.wrong {
				return s, wire.Errorf(wire.PreconditionFailed, "invalid property '%s' for %s", p.name, h.queueText(d.Name))
			}
		}
	}
	return s, checkStreamSizes(d)
}

// checkStreamSizes checks the sizes that a stream is declared with, which RabbitMQ does last.
func checkStreamSizes(d QueueDeclare) error {
	if v, has := d.Arguments.Get("x-stream-max-segment-size-bytes"); has {
		if n, _ := integer(v); n > maxSegmentBytes {
			return wire.Errorf(wire.PreconditionFailed, "Exceeded max value for x-stream-max-segment-size-bytes")
		}
	}
	if v, has := d.Arguments.Get("x-stream-filter-size-bytes"); has {
		if n, _ := integer(v); n < 16 || n > 255 {
			return wire.Errorf(wire.PreconditionFailed, "Invalid value for x-stream-filter-size-bytes")
		}
	}
	return nil
}

// maxSegmentBytes is the largest size of a stream's segments. Source:
// https://www.rabbitmq.com/docs/streams#retention.
const maxSegmentBytes = 3_000_000_000

// withPolicy is what comes of the settings that a queue was declared with and of the
// policies in effect.
func (h *Host) withPolicy(declared QueueDeclare, s queue.Settings, d policy.Definition) queue.Settings {
	for _, a := range queueArguments {
		key := strings.TrimPrefix(a.name, "x-")
		v, has := d[key]
		if !has || !slices.Contains(a.types, s.Type) {
			continue
		}
		if argument, both := declared.Arguments.Get(a.name); both {
			v = policy.Resolve(policy.Type(s.Type), key, v, argument)
		}
		a.set(&s, v) // both have been found to be valid
	}
	if s.AtLeastOnce && (s.Overflow != queue.RejectPublish || s.DeadLetterExchange == nil) {
		h.log.Warn("at-least-once dead-lettering needs overflow reject-publish and a dead-letter exchange; the queue dead-letters at most once", "queue", declared.Name)
		s.AtLeastOnce = false
	}
	s.Retry = s.Retry.Sane()
	return s
}

func (h *Host) invalidArgument(name, queue, reason string) error {
	return wire.Errorf(wire.PreconditionFailed, "invalid arg '%s' for %s: %s", name, h.queueText(queue), reason)
}

const zero = "{value_zero,0}"

func unacceptable(v any, ok bool) string {
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
	return duration(n), reason
}

// duration is n milliseconds, at most what a TTL may be: policies may say more, and
// nobody will see the difference.
func duration(n int64) time.Duration {
	return time.Duration(min(n, message.MaxTTL.Milliseconds())) * time.Millisecond
}

// positiveDuration is a number of milliseconds, 0 if v is no such.
func positiveDuration(v any) time.Duration {
	n, _ := integer(v)
	return duration(max(n, 0))
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
