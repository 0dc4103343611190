package policy

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// term writes a value of a definition the way Erlang prints it, which is how it stands
// in RabbitMQ's texts.
func term(v any) string {
	switch v := v.(type) {
	case string:
		return "<<" + strconv.Quote(v) + ">>"
	case nil:
		return "null"
	case float64:
		return float(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = term(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, term(k)+" => "+term(v[k]))
		}
		return "#{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprint(v)
}

// float writes 1000 as 1.0e3 and 5 as 5.0, whichever notation Erlang takes: the shorter.
func float(f float64) string {
	fixed := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(fixed, ".") {
		fixed += ".0"
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	if scientific := mantissa + "e" + strconv.Itoa(n); len(scientific) < len(fixed) {
		return scientific
	}
	return fixed
}

func saturated(f float64) int64 {
	if f < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}

// pairs writes settings as Erlang prints a list of pairs.
func pairs(d map[string]any, keys []string) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = "{" + term(k) + "," + term(d[k]) + "}"
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// Integer is the value of an integer of whatever width, as arguments and definitions
// have them; false for anything else.
func Integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int64:
		return v, true
	case int:
		return int64(v), true
	}
	return 0, false
}
