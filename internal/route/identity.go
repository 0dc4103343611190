package route

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"

	"github.com/dormousemq/dormouse/internal/compact"
)

// identity is what tells two bindings of one destination apart.
type identity struct {
	key  string
	args string // see canonical
}

func identify(key string, args Arguments) identity { return identity{key, args.canonical()} }

// canonical encodes arguments so that equal ones are equal strings, in whatever order they were sent. Field types count:
// the 32-bit and the 64-bit integer 1 make different bindings.
func (a Arguments) canonical() string {
	var b []byte
	for _, arg := range a.sorted() {
		b = appendText(b, arg.Name)
		b = appendCanonical(b, reflect.ValueOf(arg.Value))
	}
	return string(b)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendCanonical appends the type and the content of any value that a field can have.
func appendCanonical(b []byte, v reflect.Value) []byte {
	if !v.IsValid() {
		return append(b, 0)
	}
	b = appendText(b, v.Type().String())
	switch {
	case v.Kind() == reflect.Bool && v.Bool():
		return append(b, 1)
	case v.Kind() == reflect.Bool:
		return append(b, 0)
	case v.CanInt():
		return binary.AppendVarint(b, v.Int())
	case v.CanUint():
		return binary.AppendUvarint(b, v.Uint())
	case v.CanFloat():
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v.Float()))
	}
	switch v.Kind() {
	case reflect.String:
		return appendText(b, v.String())
	case reflect.Interface:
		return appendCanonical(b, v.Elem())
	case reflect.Slice, reflect.Array:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for i := range v.Len() {
			b = appendCanonical(b, v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			b = appendCanonical(b, field)
		}
	default:
		panic("a field of type " + v.Type().String())
	}
	return b
}

// fewBindings is the number of bindings of one destination above which they are kept in a map. Most have one or two.
const fewBindings = 8

// identities is a set.
type identities struct {
	few  []identity
	many *compact.Map[identity, struct{}] // instead of few, once there were more
}

func (s *identities) has(id identity) bool {
	if s.many == nil {
		return slices.Contains(s.few, id)
	}
	_, ok := s.many.Get(id)
	return ok
}

// add reports whether id was not there.
func (s *identities) add(id identity) bool {
	switch {
	case s.has(id):
		return false
	case s.many != nil:
		s.many.Set(id, struct{}{})
	case len(s.few) < fewBindings:
		s.few = append(s.few, id)
	default:
		s.many = new(compact.Map[identity, struct{}])
		for _, f := range append(s.few, id) {
			s.many.Set(f, struct{}{})
		}
		s.few = nil
	}
	return true
}

// remove reports whether id was there.
func (s *identities) remove(id identity) bool {
	if !s.has(id) {
		return false
	}
	if s.many != nil {
		s.many.Delete(id)
	} else {
		i := slices.Index(s.few, id)
		s.few = slices.Delete(s.few, i, i+1)
	}
	return true
}

func (s *identities) empty() bool { return len(s.few) == 0 && (s.many == nil || s.many.Len() == 0) }
