package management

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/dormousemq/dormouse/internal/wire"
)

// shown is an AMQP table as JSON.
func shown(t wire.Table) object {
	o := make(object, 0, len(t))
	for _, f := range t {
		o.add(f.Name, shownValue(f.Value))
	}
	return o
}

func shownValue(v any) any {
	switch v := v.(type) {
	case wire.Table:
		return shown(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = shownValue(e)
		}
		return list
	case []byte:
		return string(v)
	case wire.Timestamp:
		return uint64(v)
	case wire.Decimal:
		return rate(float64(v.Value) / math.Pow10(int(v.Scale)))
	case float32:
		return number(float64(v))
	case float64:
		return number(v)
	}
	return v
}

// number is f as JSON can say it.
func number(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return rate(f)
}

// tableOf makes an AMQP table of a JSON object, sorted by name. Integers are 64 bits wide.
func tableOf(o map[string]any) (wire.Table, error) {
	t := make(wire.Table, 0, len(o))
	for _, name := range slices.Sorted(maps.Keys(o)) {
		v, err := valueOf(o[name])
		if err != nil {
			return nil, err
		}
		t = append(t, wire.Field{Name: name, Value: v})
	}
	return t, nil
}

func valueOf(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, badRequest("null_not_allowed")
	case map[string]any:
		return tableOf(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			var err error
			if list[i], err = valueOf(e); err != nil {
				return nil, err
			}
		}
		return list, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, badRequest("number out of range: " + v.String())
		}
		return f, nil
	}
	return v, nil
}
