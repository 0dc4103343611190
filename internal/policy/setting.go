package policy

import (
	"regexp"
	"slices"
)

// setting is one key that a policy may define.
type setting struct {
	key       string
	complaint string // stands behind a value that is not valid
	valid     func(v any) bool
	// not are the types of queue for which a policy that defines it is passed over.
	not []Type
	// operator merges the values of policy and operator policy; nil if an operator
	// policy may not define it.
	operator choice
	// argument chooses between what policies and what the declaration says.
	argument func(Type) choice
	// late settings are looked at after all that are not: RabbitMQ has two validators.
	late bool
}

// choice makes one of two values: that of the regular policy or of both policies, and
// that of the operator policy or of the argument.
type choice func(a, b any) any

func first(a, _ any) any  { return a }
func second(_, b any) any { return b }

// least is the smaller integer; what is no integer is greater than all, as in Erlang.
func least(a, b any) any {
	x, xOK := Integer(a)
	y, yOK := Integer(b)
	if !yOK || xOK && x <= y {
		return a
	}
	return b
}

func greatest(a, b any) any {
	x, xOK := Integer(a)
	y, yOK := Integer(b)
	if !yOK || xOK && x <= y {
		return b
	}
	return a
}

// leastLimit is the smaller limit, where a negative one means none and wins.
func leastLimit(a, b any) any {
	x, xOK := Integer(a)
	y, yOK := Integer(b)
	if xOK && x < 0 || yOK && y < 0 {
		return greatest(a, b)
	}
	return least(a, b)
}

func always(c choice) func(Type) choice { return func(Type) choice { return c } }

// onStream is c, but that policies win on streams.
func onStream(c choice) func(Type) choice {
	return func(t Type) choice {
		if t == Stream {
			return first
		}
		return c
	}
}

func policyWinsOnQuorum(t Type) choice {
	if t == Quorum {
		return first
	}
	return second
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

func isInteger(v any) bool {
	_, ok := Integer(v)
	return ok
}

func atLeast(low int64) func(any) bool {
	return func(v any) bool {
		n, ok := Integer(v)
		return ok && n >= low
	}
}

func within(low, high int64) func(any) bool {
	return func(v any) bool {
		n, ok := Integer(v)
		return ok && n >= low && n <= high
	}
}

func oneOf(values ...any) func(any) bool {
	return func(v any) bool {
		switch v.(type) {
		case string, int64:
			return slices.Contains(values, v)
		}
		return false
	}
}

var age = regexp.MustCompile(`^0*[1-9][0-9]*[YMDhms]$`)

func isAge(v any) bool {
	s, ok := v.(string)
	return ok && age.MatchString(s)
}

const retryKey = "delayed-retry-"

// settings are all keys, in the order in which they are validated.
var settings = []setting{
	{key: "alternate-exchange", complaint: "alternate exchange name", valid: isText, argument: always(second)},
	{key: "consumer-disconnected-timeout", complaint: "consumer disconnected timeout", valid: atLeast(0), argument: always(least)},
	{key: "consumer-timeout", complaint: "consumer timeout", valid: atLeast(0), argument: always(least)},
	{key: "dead-letter-exchange", complaint: "dead letter exchange name", valid: isText, not: []Type{Stream}, argument: always(second)},
	{key: "dead-letter-routing-key", complaint: "dead letter routing key", valid: isText, not: []Type{Stream}, argument: always(second)},
	{
		key: "dead-letter-strategy", complaint: "dead letter strategy", valid: oneOf("at-most-once", "at-least-once"),
		not: []Type{Classic, Stream}, argument: always(second),
	},
	{
		key: "delivery-limit", complaint: "delivery limit", valid: isInteger,
		not: []Type{Classic, Stream}, operator: leastLimit, argument: always(leastLimit),
	},
	{key: "expires", complaint: "queue expiry", valid: atLeast(1), not: []Type{Stream}, operator: least, argument: always(least)},
	{key: "initial-cluster-size", complaint: "cluster size", valid: atLeast(0), not: []Type{Classic, Quorum}, argument: always(first)},
	{key: "max-age", complaint: "max age", valid: isAge, not: []Type{Classic, Quorum}, argument: always(first)},
	{key: "max-in-memory-bytes", complaint: "maximum memory in bytes", valid: atLeast(0), not: []Type{Classic, Stream}, operator: least, argument: always(least)},
	{key: "max-in-memory-length", complaint: "maximum memory in bytes", valid: atLeast(0), not: []Type{Classic, Stream}, operator: least, argument: always(least)},
	{key: "max-length", complaint: "maximum length", valid: atLeast(0), not: []Type{Stream}, operator: least, argument: always(least)},
	{key: "max-length-bytes", complaint: "maximum length in bytes", valid: atLeast(0), operator: least, argument: onStream(least)},
	{key: "message-ttl", complaint: "message TTL", valid: atLeast(0), not: []Type{Stream}, operator: least, argument: always(least)},
	{
		key: "overflow", complaint: "overflow value", valid: oneOf("drop-head", "reject-publish", "reject-publish-dlx"),
		not: []Type{Stream}, operator: second, argument: policyWinsOnQuorum,
	},
	{
		key: "queue-leader-locator", complaint: "queue leader locator value",
		valid: oneOf("client-local", "balanced", "random", "least-leaders"), argument: always(first),
	},
	{key: "queue-mode", complaint: "queue-mode value", valid: oneOf("default", "lazy"), not: []Type{Quorum, Stream}, argument: always(second)},
	{key: "queue-version", complaint: "queue-version value", valid: oneOf(int64(1), int64(2)), operator: second, argument: always(second)},
	{key: "stream-filter-size-bytes", complaint: "filter size. Valid range is 16-255", valid: within(16, 255), argument: always(first)},
	{
		key: "stream-max-segment-size-bytes", complaint: "segment size", valid: within(0, 3_000_000_000),
		not: []Type{Classic, Quorum}, argument: always(first),
	},
	{
		key: retryKey + "max", complaint: "delayed retry maximum delay. Must be a positive integer", valid: atLeast(1),
		operator: least, argument: always(least), late: true,
	},
	{
		key: retryKey + "min", complaint: "delayed retry minimum delay. Must be a positive integer", valid: atLeast(1),
		operator: greatest, argument: always(least), late: true,
	},
	{
		key: retryKey + "type", complaint: "delayed retry type. Must be one of: all, failed, returned, disabled",
		valid: oneOf("all", "failed", "returned", "disabled"), operator: second, argument: always(first), late: true,
	},
	{
		key: "target-group-size", complaint: "qq target count value", valid: atLeast(1),
		not: []Type{Classic, Stream}, operator: greatest, argument: always(greatest), late: true,
	},
}

func settingOf(key string) (setting, bool) {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key })
	if i < 0 {
		return setting{}, false
	}
	return settings[i], true
}
