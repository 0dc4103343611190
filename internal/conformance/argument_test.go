package conformance

import (
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// argumentCases are queue declarations with one argument, and the exception for each.
func argumentCases() []Case {
	invalid := func(arg, why string) string {
		return "406 PRECONDITION_FAILED - invalid arg '" + arg + "' for queue 'q' in vhost '/': " + why
	}
	notFor := func(arg, kind string) string {
		return "406 PRECONDITION_FAILED - invalid arg '" + arg + "' for queue 'q' in vhost '/' of queue type rabbit_" + kind + "_queue"
	}
	badType := func(arg, typ string) string { return invalid(arg, "{unacceptable_type,"+typ+"}") }
	badName := func(arg, typ string) string {
		return "406 PRECONDITION_FAILED - invalid type '" + typ + "' for arg '" + arg + "' in queue 'q' in vhost '/'"
	}
	const maxTTL = int64(315360000000)
	var cases []Case
	for _, a := range []struct {
		name string
		kind string
		args amqp.Table
		want any
	}{
		{"ttl 0", classic, amqp.Table{"x-message-ttl": int64(0)}, ""},
		{"ttl as byte", classic, amqp.Table{"x-message-ttl": int8(1)}, ""},
		{"ttl as short", classic, amqp.Table{"x-message-ttl": int16(1)}, ""},
		{"ttl maximum", classic, amqp.Table{"x-message-ttl": maxTTL}, ""},
		{"ttl beyond maximum", classic, amqp.Table{"x-message-ttl": maxTTL + 1}, invalid("x-message-ttl", "{value_too_large,315360000001}")},
		{"ttl negative", classic, amqp.Table{"x-message-ttl": int64(-1)}, invalid("x-message-ttl", "{value_negative,-1}")},
		{"ttl as string", classic, amqp.Table{"x-message-ttl": "1000"}, invalid("x-message-ttl", `"expected integer, got longstr"`)},
		{"ttl as double", classic, amqp.Table{"x-message-ttl": 1.0}, invalid("x-message-ttl", `"expected integer, got double"`)},
		{"ttl as bool", classic, amqp.Table{"x-message-ttl": true}, invalid("x-message-ttl", `"expected integer, got bool"`)},
		{"ttl void", classic, amqp.Table{"x-message-ttl": nil}, invalid("x-message-ttl", `"expected integer, got void"`)},
		{"expires 0", classic, amqp.Table{"x-expires": int64(0)}, invalid("x-expires", "{value_zero,0}")},
		{"expires negative", classic, amqp.Table{"x-expires": int64(-1)}, invalid("x-expires", "{value_negative,-1}")},
		{"expires beyond maximum", classic, amqp.Table{"x-expires": maxTTL + 1}, invalid("x-expires", "{value_too_large,315360000001}")},
		{"expires as string", classic, amqp.Table{"x-expires": "1"}, invalid("x-expires", `"expected integer, got longstr"`)},
		{"dead-letter exchange as integer", classic, amqp.Table{"x-dead-letter-exchange": int32(1)}, badName("x-dead-letter-exchange", "signedint")},
		{"dead-letter exchange as void", classic, amqp.Table{"x-dead-letter-exchange": nil}, badName("x-dead-letter-exchange", "void")},
		{"dead-letter exchange that does not exist", classic, amqp.Table{"x-dead-letter-exchange": "nowhere"}, ""},
		{"dead-letter exchange empty", classic, amqp.Table{"x-dead-letter-exchange": ""}, ""},
		{"dead-letter key without exchange", classic, amqp.Table{"x-dead-letter-routing-key": "k"}, invalid("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined")},
		{"dead-letter key as integer", classic, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": int32(1)}, badType("x-dead-letter-routing-key", "signedint")},
		{"dead-letter strategy on classic", classic, amqp.Table{"x-dead-letter-strategy": "at-most-once"}, notFor("x-dead-letter-strategy", "classic")},
		{"dead-letter strategy at-least-once", quorum, amqp.Table{"x-dead-letter-strategy": "at-least-once"}, ""},
		{"dead-letter strategy unknown", quorum, amqp.Table{"x-dead-letter-strategy": "never"}, invalid("x-dead-letter-strategy", "invalid_dlx_strategy")},
		{"max-length 0", classic, amqp.Table{"x-max-length": int64(0)}, ""},
		{"max-length negative", classic, amqp.Table{"x-max-length": int64(-1)}, invalid("x-max-length", "{value_negative,-1}")},
		{"max-length as string", classic, amqp.Table{"x-max-length": "1"}, invalid("x-max-length", `"expected integer, got longstr"`)},
		{"max-length-bytes negative", classic, amqp.Table{"x-max-length-bytes": int64(-1)}, invalid("x-max-length-bytes", "{value_negative,-1}")},
		{"overflow drop-head", classic, amqp.Table{"x-overflow": "drop-head"}, ""},
		{"overflow reject-publish-dlx", classic, amqp.Table{"x-overflow": "reject-publish-dlx"}, ""},
		{"overflow reject-publish-dlx on quorum", quorum, amqp.Table{"x-overflow": "reject-publish-dlx"}, ""},
		{"overflow unknown", classic, amqp.Table{"x-overflow": "drop"}, invalid("x-overflow", "invalid_overflow")},
		{"overflow as integer", classic, amqp.Table{"x-overflow": int32(1)}, badType("x-overflow", "signedint")},
		{"max-priority", classic, amqp.Table{"x-max-priority": int64(255)}, ""},
		{"max-priority beyond 255", classic, amqp.Table{"x-max-priority": int64(256)}, invalid("x-max-priority", "{max_value_exceeded,256}")},
		{"max-priority negative", classic, amqp.Table{"x-max-priority": int64(-1)}, invalid("x-max-priority", "{value_negative,-1}")},
		{"max-priority as string", classic, amqp.Table{"x-max-priority": "1"}, invalid("x-max-priority", `"expected integer, got longstr"`)},
		{"max-priority on quorum", quorum, amqp.Table{"x-max-priority": int64(5)}, notFor("x-max-priority", "quorum")},
		{"single active consumer as string", classic, amqp.Table{"x-single-active-consumer": "true"}, badType("x-single-active-consumer", "longstr")},
		{"delivery limit on classic", classic, amqp.Table{"x-delivery-limit": int64(3)}, notFor("x-delivery-limit", "classic")},
		{"delivery limit", quorum, amqp.Table{"x-delivery-limit": int64(3)}, ""},
		{"delivery limit -1", quorum, amqp.Table{"x-delivery-limit": int64(-1)}, ""},
		{"delivery limit as string", quorum, amqp.Table{"x-delivery-limit": "3"}, ""},
		{"queue mode lazy", classic, amqp.Table{"x-queue-mode": "lazy"}, ""},
		{"queue mode unknown", classic, amqp.Table{"x-queue-mode": "fast"}, changedIn(v43, invalid("x-queue-mode", `"unsupported queue mode 'fast'"`), "")},
		{"queue version 1", classic, amqp.Table{"x-queue-version": int64(1)}, changedIn(v43, "", invalid("x-queue-version", `"unsupported queue version '1'"`))},
		{"queue version 2", classic, amqp.Table{"x-queue-version": int64(2)}, ""},
		{"queue type unknown", classic, amqp.Table{"x-queue-type": "fast"}, invalid("x-queue-type", `"unsupported queue type 'fast'"`)},
		{"queue type as integer", classic, amqp.Table{"x-queue-type": int32(1)}, badType("x-queue-type", "signedint")},
		{"quorum transient", "", nil, "406 PRECONDITION_FAILED - invalid property 'non-durable' for queue 'q' in vhost '/'"},
		{"quorum initial group size", quorum, amqp.Table{"x-quorum-initial-group-size": int64(1)}, ""},
		{"quorum initial group size 0", quorum, amqp.Table{"x-quorum-initial-group-size": int64(0)}, invalid("x-quorum-initial-group-size", "{value_zero,0}")},
		{"quorum group size on classic", classic, amqp.Table{"x-quorum-initial-group-size": int64(1)}, notFor("x-quorum-initial-group-size", "classic")},
		{"queue leader locator", classic, amqp.Table{"x-queue-leader-locator": "client-local"}, changedIn(v40, notFor("x-queue-leader-locator", "classic"), "")},
		{"queue leader locator unknown", classic, amqp.Table{"x-queue-leader-locator": "far"}, changedIn(v40, notFor("x-queue-leader-locator", "classic"), invalid("x-queue-leader-locator", "invalid_queue_locator_arg"))},
		{"consumer timeout", classic, amqp.Table{"x-consumer-timeout": int64(60000)}, changedIn(v43, "", notFor("x-consumer-timeout", "classic"))},
		{"consumer timeout as string", classic, amqp.Table{"x-consumer-timeout": "1"}, changedIn(v43, "", notFor("x-consumer-timeout", "classic"))},
		{"max-age on classic", classic, amqp.Table{"x-max-age": "1h"}, notFor("x-max-age", "classic")},
		{"max-in-memory-length on classic", classic, amqp.Table{"x-max-in-memory-length": int64(1)}, notFor("x-max-in-memory-length", "classic")},
		{"consumer timeout on quorum", quorum, amqp.Table{"x-consumer-timeout": int64(60000)}, ""},
		{"consumer timeout 0 on quorum", quorum, amqp.Table{"x-consumer-timeout": int64(0)}, ""},
		{"consumer timeout as string on quorum", quorum, amqp.Table{"x-consumer-timeout": "1"}, changedIn(v43, "", invalid("x-consumer-timeout", `"expected integer, got longstr"`))},
		{"delayed retry", quorum, amqp.Table{"x-delayed-retry-type": "all", "x-delayed-retry-min": int64(10)}, ""},
		{"delayed retry type unknown", quorum, amqp.Table{"x-delayed-retry-type": "some"}, ""},
		{"delayed retry on classic", classic, amqp.Table{"x-delayed-retry-type": "all"}, changedIn(v43, "", notFor("x-delayed-retry-type", "classic"))},
		{"argument without x-", classic, amqp.Table{"message-ttl": "soon"}, ""},
		{"arguments in order of name", classic, amqp.Table{"x-message-ttl": "a", "x-expires": "b", "x-max-length": "c"}, invalid("x-expires", `"expected integer, got longstr"`)},
	} {
		if a.kind == "" {
			cases = append(cases, Case{"argument/" + a.name, func(c *C) {
				c.Equal("exception", c.DeclareRefused(c.Unique("q"), declare{Transient: true}, amqp.Table{"x-queue-type": "quorum"}), a.want)
			}})
			continue
		}
		cases = append(cases, Case{"argument/" + strings.ReplaceAll(a.name, "/", " "), func(c *C) {
			c.Equal("exception", c.DeclareRefused(c.Unique("q"), declare{}, kindArgs(a.kind, a.args)), a.want)
		}})
	}
	return cases
}
