package route

import (
	"bytes"
	"math"
	"reflect"
)

// equal compares the value of a binding argument with that of a header as RabbitMQ 4 does: by value, whatever the width
// or signedness of an integer, the precision of a float, and whether text came as a string or as a byte array. An
// integer is never equal to a float. Inside arrays and tables the field types must agree as well.
func equal(a, b any) bool {
	switch a := a.(type) {
	case string:
		switch b := b.(type) {
		case string:
			return a == b
		case []byte:
			return a == string(b)
		}
		return false
	case []byte:
		switch b := b.(type) {
		case string:
			return string(a) == b
		case []byte:
			return bytes.Equal(a, b)
		}
		return false
	}
	if x, neg, ok := integer(a); ok {
		y, negY, ok := integer(b)
		return ok && x == y && neg == negY
	}
	if x, ok := float(a); ok {
		y, ok := float(b)
		return ok && math.Float64bits(x) == math.Float64bits(y)
	}
	return reflect.DeepEqual(a, b)
}

// integer returns the two's complement of any integer and whether it is negative.
func integer(v any) (bits uint64, negative, ok bool) {
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return uint64(r.Int()), r.Int() < 0, true
	case r.CanUint():
		return r.Uint(), false, true
	}
	return 0, false, false
}

func float(v any) (float64, bool) {
	if r := reflect.ValueOf(v); r.CanFloat() {
		return r.Float(), true
	}
	return 0, false
}
