package xdeath

import (
	"reflect"
	"time"
)

// Parse reads the value of an x-death header as a client library delivers it: a list of tables, each a map with string
// keys, whatever the named types of list and map. Entries that are not tables are left out and fields of an unexpected
// type stay empty; a value that is no list at all gives no deaths.
func Parse(header any) Deaths {
	list := reflect.ValueOf(header)
	if list.Kind() != reflect.Slice {
		return nil
	}
	var deaths Deaths
	for i := range list.Len() {
		if t, ok := table(list.Index(i)); ok {
			deaths = append(deaths, Death{
				Queue:              text(t["queue"]),
				Reason:             text(t["reason"]),
				Exchange:           text(t["exchange"]),
				Keys:               texts(t["routing-keys"]),
				Count:              number(t["count"]),
				Time:               instant(t["time"]),
				OriginalExpiration: text(t["original-expiration"]),
			})
		}
	}
	return deaths
}

var tableType = reflect.TypeFor[map[string]any]()

func table(v reflect.Value) (map[string]any, bool) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || !v.CanConvert(tableType) {
		return nil, false
	}
	return v.Convert(tableType).Interface().(map[string]any), true
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func texts(v any) []string {
	switch v := v.(type) {
	case []string:
		return v
	case []any:
		var keys []string
		for _, k := range v {
			if s, ok := k.(string); ok {
				keys = append(keys, s)
			}
		}
		return keys
	}
	return nil
}

// number is 0 for what is not an integer or is negative: a count never is.
func number(v any) int64 {
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return max(0, r.Int())
	case r.CanUint():
		return max(0, int64(r.Uint()))
	}
	return 0
}

func instant(v any) time.Time {
	if t, ok := v.(time.Time); ok {
		return t
	}
	if s := number(v); s > 0 {
		return time.Unix(s, 0)
	}
	return time.Time{}
}
