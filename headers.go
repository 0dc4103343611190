package dormouse

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The headers with further routing keys, https://www.rabbitmq.com/docs/sender-selected.
const (
	headerCC  = "CC"
	headerBCC = "BCC"
)

// Headers of a delayed message.
const (
	// headerDueTime is when the message was to arrive, in milliseconds since the Unix epoch (a signed 64-bit integer).
	headerDueTime = "due-time"
	// headerDueExchange is the exchange that it was published to; the broker only tells a consumer of the last lane's.
	headerDueExchange = "due-exchange"
)

// Headers of a retried or parked message. Headers that begin with x- belong to the broker.
const (
	headerCount      = "retry-count"       // failed attempts so far (a signed 64-bit integer); the name is a setting
	headerError      = "retry-error"       // the last attempt's error
	headerStack      = "retry-stack"       // where it panicked, in the parking lot only
	headerSnoozed    = "retry-snoozed"     // how often it was put off (a signed 64-bit integer)
	headerReason     = "retry-reason"      // why the last attempt failed, a Reason
	headerFirstTime  = "retry-first-time"  // when the first attempt failed, in milliseconds since the Unix epoch
	headerQueue      = "retry-queue"       // the work queue
	headerExchange   = "retry-exchange"    // where the message was published first,
	headerRoutingKey = "retry-routing-key" // and its key then
)

// longestError and longestStack bound retry-error and retry-stack, so that they fit a frame with all other headers.
const (
	longestError = 1024
	longestStack = 4096
)

// isBrokerHeader reports whether the broker keeps its own books in a header. A copy that is published with them would be dropped as
// a dead-letter cycle by RabbitMQ up to 3.13, and miscounted.
func isBrokerHeader(name string) bool {
	switch name {
	case "x-death", "x-delivery-count", "x-acquired-count":
		return true
	}
	return strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

// isOwnHeader reports whether Dormouse writes a header, so that it is no part of the message as it was published.
func isOwnHeader(name string) bool {
	switch name {
	case headerDueTime, headerDueExchange, headerCount, headerError, headerStack, headerSnoozed, headerReason, headerFirstTime, headerQueue, headerExchange, headerRoutingKey:
		return true
	}
	return false
}

// integer reads an integer of any AMQP type, or a decimal string as other clients may write it.
func integer(t amqp.Table, name string) (int64, bool) {
	switch v := t[name].(type) {
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

func text(t amqp.Table, name string) string {
	s, _ := t[name].(string)
	return s
}

// moment reads a time in milliseconds since the Unix epoch, or an AMQP timestamp.
func moment(t amqp.Table, name string) time.Time {
	if v, ok := t[name].(time.Time); ok {
		return v
	}
	if ms, ok := integer(t, name); ok {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// shorten cuts s to at most n bytes of valid UTF-8.
func shorten(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	s = s[:n]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}
