package stream

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// offsetArgument says where a consumer begins to read. Source:
// https://www.rabbitmq.com/docs/streams#consuming.
const offsetArgument = "x-stream-offset"

// where is a kind of place in a stream.
type where int

const (
	fromNext where = iota
	fromFirst
	fromLast
	fromNumber
	fromTime
	fromAge
)

// offset is what the argument asks for.
type offset struct {
	where  where
	number uint64        // fromNumber
	at     time.Time     // fromTime
	age    time.Duration // fromAge: that long ago
}

// CheckOffset returns RabbitMQ's reason to refuse an offset argument, "" if it is a good one.
func CheckOffset(v any) string {
	if _, err := parseOffset(wire.Table{{Name: offsetArgument, Value: v}}); err != nil {
		return err.Error()
	}
	return ""
}

func parseOffset(arguments wire.Table) (offset, error) {
	v, has := arguments.Get(offsetArgument)
	if !has {
		return offset{}, nil
	}
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	switch v := v.(type) {
	case string:
		switch v {
		case "first":
			return offset{where: fromFirst}, nil
		case "last":
			return offset{where: fromLast}, nil
		case "next":
			return offset{}, nil
		}
		if age, ok := ParseAge(v); ok {
			return offset{where: fromAge, age: age}, nil
		}
		return offset{}, fmt.Errorf("{invalid_stream_offset_arg,{longstr,<<%s>>}}", binaryText(v))
	case wire.Timestamp:
		return offset{where: fromTime, at: time.Unix(int64(v), 0)}, nil
	}
	if n, ok := wire.Integer(v); ok {
		return offset{where: fromNumber, number: uint64(max(n, 0))}, nil
	}
	return offset{}, fmt.Errorf("{invalid_stream_offset_arg,%s}: it may be first, last, next, a number, a timestamp or a time like 1h", wire.TypeName(v))
}

// binaryText is a string as RabbitMQ's texts have it inside << and >>.
func binaryText(s string) string {
	if s == "" {
		return ""
	}
	return `"` + s + `"`
}

// seek returns the offset that a consumer begins with.
func (s *Stream) seek(o offset, now time.Time) (uint64, error) {
	s.mu.Lock()
	first, end := s.first, s.readable.Load()
	newest := s.newest
	s.mu.Unlock()
	switch o.where {
	case fromFirst:
		return first, nil
	case fromLast:
		return max(first, end-min(end, 1)), nil
	case fromNumber:
		return max(first, o.number), nil
	case fromTime:
		return s.bisect(first, end, newest, o.at.UnixMilli())
	case fromAge:
		return s.bisect(first, end, newest, now.Add(-o.age).UnixMilli())
	}
	return end, nil
}

// bisect returns the first offset from first on whose message arrived at that moment or
// later, or end: times only grow. newest is that of the newest message.
func (s *Stream) bisect(first, end uint64, newest, at int64) (uint64, error) {
	if newest < at {
		return end, nil
	}
	for first < end {
		middle := first + (end-first)/2
		found, then, err := s.moment(middle)
		switch {
		case errors.Is(err, errMissing), err == nil && (found >= end || then >= at):
			end = middle
		case err != nil:
			return 0, err
		default:
			first = found + 1
		}
	}
	return first, nil
}

// ParseAge reads a length of time as RabbitMQ has it for streams: a positive number and
// Y, M, D, h, m or s, for years of 365 days, months of 30 days, days, hours, minutes or
// seconds. Source: https://www.rabbitmq.com/docs/streams#declaring.
func ParseAge(s string) (time.Duration, bool) {
	name := strings.TrimLeft(s, "0123456789")
	unit, known := map[string]time.Duration{
		"Y": 365 * 24 * time.Hour, "M": 30 * 24 * time.Hour, "D": 24 * time.Hour,
		"h": time.Hour, "m": time.Minute, "s": time.Second,
	}[name]
	if !known {
		return 0, false
	}
	n := int64(0)
	for _, d := range strings.TrimSuffix(s, name) {
		n = min(10*n+int64(d-'0'), int64(maxAge/unit)) // no clock goes further
	}
	return time.Duration(n * int64(unit)), n > 0
}

// maxAge is the longest time, near what a time.Duration holds.
const maxAge = 292 * 365 * 24 * time.Hour
