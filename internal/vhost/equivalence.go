package vhost

import (
	"fmt"
	"strconv"

	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/stream"
	"github.com/dormousemq/dormouse/internal/wire"
)

// exchangeEquivalence checks a declaration against the exchange that is there.
func (h *Host) exchangeEquivalence(x *Exchange, d ExchangeDeclare) error {
	name := h.exchangeText(x.Name)
	if x.Type != d.Type {
		return inequivalent("type", name, quoted(d.Type), quoted(x.Type))
	}
	for _, p := range []struct {
		name          string
		received, has bool
	}{
		{"durable", d.Durable, x.Durable}, {"auto_delete", d.AutoDelete, x.AutoDelete}, {"internal", d.Internal, x.Internal},
	} {
		if p.received != p.has {
			return inequivalent(p.name, name, quoted(p.received), quoted(p.has))
		}
	}
	if x.Type == delayedMessage {
		if err := argumentsEquivalent(x.Arguments, d.Arguments, name, delayedType); err != nil {
			return err
		}
	}
	return argumentsEquivalent(x.Arguments, d.Arguments, name, "alternate-exchange")
}

// queueEquivalence checks a declaration against the queue that is there.
func (h *Host) queueEquivalence(q *Queue, owner any, d QueueDeclare) error {
	if err := h.checkOwner(q, owner); err != nil {
		return err
	}
	if d.Exclusive != (q.owner != nil) {
		return h.lockedError(q)
	}
	name := h.queueText(q.Name())
	for _, p := range []struct {
		name          string
		received, has bool
	}{
		{"durable", d.Durable, q.declared.Durable}, {"auto_delete", d.AutoDelete, q.declared.AutoDelete},
	} {
		if p.received != p.has {
			return inequivalent(p.name, name, quoted(p.received), quoted(p.has))
		}
	}
	if now, is := d.named(), q.declared.named(); now != is {
		return inequivalent(queueType, name, quoted(now), quoted(is))
	}
	for _, argument := range comparedArguments(d.kind()) {
		if err := argumentsEquivalent(q.declared.Arguments, d.Arguments, name, argument); err != nil {
			return err
		}
	}
	return nil
}

// comparedArguments are the arguments that a declaration must share with the queue that is there, in the order in which
// RabbitMQ 4.3 compares them. Others may differ, even where they would be refused for a new queue.
func comparedArguments(kind queue.Type) []string {
	switch kind {
	case queue.Quorum:
		return []string{
			"x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy", "x-expires", "x-max-length",
			"x-max-length-bytes", "x-max-in-memory-length", "x-max-in-memory-bytes", "x-overflow", "x-single-active-consumer",
			"x-quorum-initial-group-size", "x-delivery-limit", "x-message-ttl", "x-queue-leader-locator",
			"x-consumer-disconnected-timeout", "x-consumer-timeout", "x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max",
		}
	case queue.Stream:
		return []string{
			"x-max-length-bytes", "x-max-age", "x-stream-max-segment-size-bytes", "x-stream-filter-size-bytes", "x-initial-cluster-size",
			"x-queue-leader-locator",
		}
	}
	return []string{
		"x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length", "x-max-length-bytes",
		"x-max-priority", "x-overflow", "x-queue-mode", "x-queue-version", "x-single-active-consumer", "x-queue-master-locator",
		"x-queue-leader-locator",
	}
}

// argumentsEquivalent compares one argument; the width of an integer is no difference.
func argumentsEquivalent(has, received wire.Table, of, name string) error {
	old, hadOld := has.Get(name)
	now, hasNow := received.Get(name)
	if name == "x-max-age" {
		old, now = inMilliseconds(old), inMilliseconds(now)
	}
	describe := func(v any, is bool) string {
		switch {
		case !is || v == nil:
			return "none"
		case hadOld && hasNow:
			return "'" + erlang(v) + "'"
		}
		return fmt.Sprintf("the value '%s' of type '%s'", erlang(v), wire.TypeName(v))
	}
	if hadOld == hasNow && same(old, now) {
		return nil
	}
	return inequivalent(name, of, describe(now, hasNow), describe(old, hadOld))
}

func same(a, b any) bool {
	x, isInt := integer(a)
	y, isIntToo := integer(b)
	if isInt && isIntToo {
		return x == y
	}
	return wire.TypeName(a) == wire.TypeName(b) && erlang(a) == erlang(b)
}

// inMilliseconds is the value of x-max-age as RabbitMQ 4.3 compares and shows it.
func inMilliseconds(v any) any {
	text, _ := v.(string)
	if age, ok := stream.ParseAge(text); ok {
		return strconv.FormatInt(age.Milliseconds(), 10)
	}
	return v
}

func inequivalent(argument, of, received, current string) error {
	return wire.Errorf(wire.PreconditionFailed, "inequivalent arg '%s' for %s: received %s but current is %s", argument, of, received, current)
}

func quoted(v any) string { return fmt.Sprintf("'%v'", v) }

// erlang writes a table value as RabbitMQ's error texts do.
func erlang(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case nil:
		return "undefined"
	}
	return fmt.Sprint(v)
}

func integer(v any) (int64, bool) { return policy.Integer(v) }
