package policy

import (
	"bytes"
	"encoding/json"
	"strings"
)

// UnmarshalJSON reads a definition without losing which numbers are integers.
func (d *Definition) UnmarshalJSON(b []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var m map[string]any
	if err := decoder.Decode(&m); err != nil {
		return err
	}
	*d = nil
	if m != nil {
		*d = plain(m).(map[string]any)
	}
	return nil
}

// plain puts int64 and float64 in the place of other numbers.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		if !strings.ContainsAny(v.String(), ".eE") { // an integer too long for any use
			return saturated(f)
		}
		return f
	case int:
		return int64(v)
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = plain(v[i])
		}
		return all
	case Definition:
		return plain(map[string]any(v))
	case map[string]any:
		all := make(map[string]any, len(v))
		for k := range v {
			all[k] = plain(v[k])
		}
		return all
	}
	return v
}
