package management

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// rate is a number that is written with a decimal point even if it is whole, as
// RabbitMQ writes those of its numbers that need not be.
type rate float64

func (o *object) add(name string, value any) { *o = append(*o, member{name, value}) }

// get finds the member with a name.
func (o object) get(name string) (any, bool) {
	for i := range o {
		if o[i].name == name {
			return o[i].value, true
		}
	}
	return nil, false
}

// at finds what is at a path of names with dots between them, nil if there is nothing.
func (o object) at(path string) any {
	for {
		first, rest, deeper := strings.Cut(path, ".")
		v, _ := o.get(first)
		if !deeper {
			return v
		}
		inner, ok := v.(object)
		if !ok {
			return nil
		}
		o, path = inner, rest
	}
}

// only returns what is at the given paths. Of arguments all are returned, as in RabbitMQ.
func (o object) only(paths []string) object {
	var kept object
	deeper := map[string][]string{}
	for _, path := range paths {
		if first, rest, ok := strings.Cut(path, "."); ok {
			deeper[first] = append(deeper[first], rest)
		} else {
			deeper[first] = append(deeper[first], "")
		}
	}
	for _, m := range o {
		rests, wanted := deeper[m.name]
		if !wanted {
			continue
		}
		inner, isObject := m.value.(object)
		switch {
		case rests[0] == "" || m.name == "arguments":
			kept = append(kept, m)
		case isObject:
			kept = append(kept, member{m.name, inner.only(rests)})
		}
	}
	return kept
}

// columns is what the query asks for of a single object, all if it does not say.
func (o object) columns(r *request) object {
	if paths := r.param("columns"); paths != "" {
		return o.only(strings.Split(paths, ","))
	}
	return o
}

// appendJSON appends v as JSON.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.name), ':')
			b = appendJSON(b, m.value)
		}
		return append(b, '}')
	case []object:
		return appendList(b, v)
	case []any:
		return appendList(b, v)
	case []string:
		return appendList(b, v)
	case string:
		return appendString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case rate:
		before := len(b)
		b = strconv.AppendFloat(b, float64(v), 'f', -1, 64)
		if bytes.IndexByte(b[before:], '.') < 0 {
			b = append(b, ".0"...)
		}
		return b
	}
	text, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}

func appendList[T any](b []byte, list []T) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, v)
	}
	return append(b, ']')
}

// appendString appends s as a JSON string. What is no UTF-8 is replaced.
func appendString(b []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(strings.ToValidUTF8(s, "�")) // never fails for a string
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}
