package message

import (
	"strconv"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// delayHeader is the header by which a publisher asks an x-delayed-message exchange for
// a delay in milliseconds. Source: the README of rabbitmq-delayed-message-exchange.
const delayHeader = "x-delay"

// Delay is what the header x-delay asks for: an integer of any width, the same as a
// string, or a float whose fraction is cut off. It is 0 without one, and for what is
// no number or not positive. The error is a *wire.Exception, 406, for more than MaxTTL.
func (m *Message) Delay() (time.Duration, error) {
	view, err := wire.ViewProperties(m.Properties)
	if err != nil {
		return 0, nil
	}
	v, has := view.Header(delayHeader)
	if !has {
		return 0, nil
	}
	ms, ok := number(v)
	switch {
	case !ok || ms <= 0:
		return 0, nil
	case ms > float64(MaxTTL.Milliseconds()):
		return 0, wire.Errorf(wire.PreconditionFailed, "header 'x-delay' is %.0f, more than the longest delay of %d ms (ten years)", ms, MaxTTL.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// number reads a header; up to MaxTTL a float64 is exact.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int8:
		return float64(v), true
	case uint8:
		return float64(v), true
	case int16:
		return float64(v), true
	case uint16:
		return float64(v), true
	case int32:
		return float64(v), true
	case uint32:
		return float64(v), true
	case int64:
		return float64(v), true
	case float32:
		return float64(v), true
	case float64:
		return v, true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return float64(n), err == nil
	}
	return 0, false
}

// Delayed returns the message as it goes on after a delay of d: with its header x-delay
// negated, by which consumers see that it was delayed, and by which no other such
// exchange delays it again.
func (m *Message) Delayed(d time.Duration) *Message {
	view, err := wire.ViewProperties(m.Properties)
	if err != nil {
		return m
	}
	table := make([]byte, 4, 4+len(view.Headers)+8) // begins with its length
	found := false
	for f := range wire.RawFields(view.Headers) {
		if !found && string(f.Name) == delayHeader {
			found = true
			table = wire.Table{{Name: delayHeader, Value: negated(d)}}.AppendTo(table)
			continue
		}
		table = append(table, f.Field...)
	}
	properties, err := wire.ReplaceProperty(m.Properties, wire.FlagHeaders, wire.EndField(table, 4))
	if err != nil || !found {
		return m
	}
	on := *m
	on.Properties = properties
	return &on
}

// negated is the value that the plugin writes, a 32-bit integer, or a longer one for a
// delay that the plugin did not know.
func negated(d time.Duration) any {
	if ms := -d.Milliseconds(); ms == int64(int32(ms)) {
		return int32(ms)
	}
	return -d.Milliseconds()
}
