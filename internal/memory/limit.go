package memory

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// DefaultShare is how much of the available memory a broker may use by default.
// Source: vm_memory_high_watermark of RabbitMQ up to 3.13,
// https://www.rabbitmq.com/docs/3.13/memory.
const DefaultShare = 0.4

// Limit is how much memory may be used: a number of bytes, or a share of what there is.
// The zero value is DefaultShare.
type Limit struct {
	Bytes uint64
	Share float64 // used if Bytes is 0
}

var errLimit = errors.New(`a memory limit is a percentage such as "40%", a size such as "2GiB" or "800MB", or "none"`)

var units = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// ParseLimit reads "40%", "2GiB", "800MB", "1073741824", or "none".
func ParseLimit(s string) (Limit, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	if text == "none" {
		return Limit{Bytes: math.MaxUint64}, nil
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(percent > 0 && percent <= 100) {
			return Limit{}, fmt.Errorf("%q: %w", s, errLimit)
		}
		return Limit{Share: percent / 100}, nil
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n > 0) || n*u.bytes >= math.MaxInt64 || n*u.bytes < 1 {
			break
		}
		return Limit{Bytes: uint64(n * u.bytes)}, nil
	}
	return Limit{}, fmt.Errorf("%q: %w", s, errLimit)
}

// Of is the limit in bytes where so much memory is available; math.MaxUint64 if there is
// none, because it is a share of what is not known.
func (l Limit) Of(available uint64, known bool) uint64 {
	if l.Bytes > 0 {
		return l.Bytes
	}
	if !known {
		return math.MaxUint64
	}
	share := l.Share
	if share == 0 {
		share = DefaultShare
	}
	return uint64(share * float64(available))
}
