package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	maxShortString = 255
	// maxNesting bounds tables and arrays inside one another, so that a small
	// frame cannot cost a deep stack.
	maxNesting = 64
)

// Field is one entry of a Table. Value has one of these Go types, each with its
// type octet on the wire:
//
//	bool t      int8 b      uint8 B     int16 s (U is read as well)
//	uint16 u    int32 I     uint32 i    int64 l (L is read as well)
//	float32 f   float64 d   Decimal D   string S
//	[]any A     Timestamp T Table F     nil V       []byte x
type Field struct {
	Name  string
	Value any
}

// Table is an AMQP field table. Order is kept; a peer may send a name twice.
type Table []Field

// Timestamp is an AMQP timestamp: seconds since the Unix epoch.
type Timestamp uint64

// Decimal is Value divided by ten to the power of Scale. RabbitMQ treats the
// value as unsigned.
type Decimal struct {
	Scale uint8
	Value uint32
}

// Get returns the value of the first field called name.
func (t Table) Get(name string) (any, bool) {
	for i := range t {
		if t[i].Name == name {
			return t[i].Value, true
		}
	}
	return nil, false
}

// Integer is the value of an integer field of any width.
func Integer(v any) (n int64, ok bool) {
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
	}
	return 0, false
}

// ParseTable parses the content of a table, that is without its four octets of
// length. The result does not alias b. A malformed table is a syntax error
// (502).
func ParseTable(b []byte) (Table, error) {
	return parseTable(b, maxNesting)
}

// ValidateTable reports the error that ParseTable would, without allocating. In place
// it writes the type L, which some clients write for a signed integer, as l: so does
// RabbitMQ with what it passes on.
func ValidateTable(b []byte) error {
	return validateTable(b, maxNesting)
}

// LookupTable returns the value of the first field called name in the content
// of a table. Only that value is decoded. A malformed table ends the search.
func LookupTable(b []byte, name string) (any, bool) {
	for len(b) > 0 {
		key, rest, ok := cutShort(b)
		if !ok || len(rest) == 0 {
			return nil, false
		}
		size, ok := valueSize(rest)
		if !ok {
			return nil, false
		}
		if string(key) == name {
			v, _, err := parseValue(rest[:size], maxNesting)
			return v, err == nil
		}
		b = rest[size:]
	}
	return nil, false
}

// AppendTo appends the content of the table, without its length. Names are cut
// to 255 octets. It panics on a value of a type that Field does not list.
func (t Table) AppendTo(dst []byte) []byte {
	for i := range t {
		dst = appendShort(dst, t[i].Name)
		dst = appendValue(dst, t[i].Value)
	}
	return dst
}

// AppendTable appends a table with its four octets of length.
func AppendTable(dst []byte, t Table) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = t.AppendTo(dst)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

var errTable = &Exception{Code: SyntaxError, Text: "malformed field table"}

func parseTable(b []byte, depth int) (Table, error) {
	if depth == 0 {
		return nil, Errorf(SyntaxError, "field table nested deeper than %d", maxNesting)
	}
	var t Table
	for len(b) > 0 {
		name, rest, ok := cutShort(b)
		if !ok {
			return nil, errTable
		}
		v, rest, err := parseValue(rest, depth)
		if err != nil {
			return nil, err
		}
		t = append(t, Field{Name: string(name), Value: v})
		b = rest
	}
	return t, nil
}

func parseArray(b []byte, depth int) ([]any, error) {
	if depth == 0 {
		return nil, Errorf(SyntaxError, "field table nested deeper than %d", maxNesting)
	}
	a := []any{}
	for len(b) > 0 {
		v, rest, err := parseValue(b, depth)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
		b = rest
	}
	return a, nil
}

// valueSize returns how many octets the type octet and the value at the start
// of b take, or false when b is too short or the type is unknown.
func valueSize(b []byte) (int, bool) {
	if len(b) == 0 {
		return 0, false
	}
	n := 1
	switch b[0] {
	case 'V':
	case 't', 'b', 'B':
		n++
	case 's', 'U', 'u':
		n += 2
	case 'I', 'i', 'f':
		n += 4
	case 'D':
		n += 5
	case 'l', 'L', 'd', 'T':
		n += 8
	case 'S', 'x', 'A', 'F':
		if len(b) < 5 {
			return 0, false
		}
		size := binary.BigEndian.Uint32(b[1:])
		if uint64(size) > uint64(len(b)-5) {
			return 0, false
		}
		n += 4 + int(size)
	default:
		return 0, false
	}
	return n, n <= len(b)
}

func validateTable(b []byte, depth int) error {
	if depth == 0 {
		return Errorf(SyntaxError, "field table nested deeper than %d", maxNesting)
	}
	for len(b) > 0 {
		_, rest, ok := cutShort(b)
		if !ok {
			return errTable
		}
		size, err := validateValue(rest, depth)
		if err != nil {
			return err
		}
		b = rest[size:]
	}
	return nil
}

func validateValue(b []byte, depth int) (int, error) {
	size, ok := valueSize(b)
	if !ok {
		return 0, errTable
	}
	switch b[0] {
	case 'L':
		b[0] = 'l'
	case 'F':
		return size, validateTable(b[5:size], depth-1)
	case 'A':
		if depth == 1 {
			return 0, Errorf(SyntaxError, "field table nested deeper than %d", maxNesting)
		}
		for a := b[5:size]; len(a) > 0; {
			n, err := validateValue(a, depth-1)
			if err != nil {
				return 0, err
			}
			a = a[n:]
		}
	}
	return size, nil
}

func parseValue(b []byte, depth int) (v any, rest []byte, err error) {
	size, ok := valueSize(b)
	if !ok {
		return nil, nil, errTable
	}
	p, rest := b[1:size], b[size:]
	switch b[0] {
	case 'V':
		return nil, rest, nil
	case 't':
		v = p[0] != 0
	case 'b':
		v = int8(p[0])
	case 'B':
		v = p[0]
	case 's', 'U':
		v = int16(binary.BigEndian.Uint16(p))
	case 'u':
		v = binary.BigEndian.Uint16(p)
	case 'I':
		v = int32(binary.BigEndian.Uint32(p))
	case 'i':
		v = binary.BigEndian.Uint32(p)
	case 'l', 'L':
		v = int64(binary.BigEndian.Uint64(p))
	case 'f':
		v = math.Float32frombits(binary.BigEndian.Uint32(p))
	case 'd':
		v = math.Float64frombits(binary.BigEndian.Uint64(p))
	case 'D':
		v = Decimal{Scale: p[0], Value: binary.BigEndian.Uint32(p[1:])}
	case 'T':
		v = Timestamp(binary.BigEndian.Uint64(p))
	case 'S':
		v = string(p[4:])
	case 'x':
		v = append([]byte{}, p[4:]...)
	case 'F':
		v, err = parseTable(p[4:], depth-1)
	case 'A':
		v, err = parseArray(p[4:], depth-1)
	}
	return v, rest, err
}

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, 'V')
	case bool:
		if v {
			return append(dst, 't', 1)
		}
		return append(dst, 't', 0)
	case int8:
		return append(dst, 'b', byte(v))
	case uint8:
		return append(dst, 'B', v)
	case int16:
		return binary.BigEndian.AppendUint16(append(dst, 's'), uint16(v))
	case uint16:
		return binary.BigEndian.AppendUint16(append(dst, 'u'), v)
	case int32:
		return binary.BigEndian.AppendUint32(append(dst, 'I'), uint32(v))
	case uint32:
		return binary.BigEndian.AppendUint32(append(dst, 'i'), v)
	case int64:
		return binary.BigEndian.AppendUint64(append(dst, 'l'), uint64(v))
	case float32:
		return binary.BigEndian.AppendUint32(append(dst, 'f'), math.Float32bits(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 'd'), math.Float64bits(v))
	case Decimal:
		return binary.BigEndian.AppendUint32(append(dst, 'D', v.Scale), v.Value)
	case Timestamp:
		return binary.BigEndian.AppendUint64(append(dst, 'T'), uint64(v))
	case string:
		return appendLong(append(dst, 'S'), v)
	case []byte:
		return appendLong(append(dst, 'x'), v)
	case Table:
		return AppendTable(append(dst, 'F'), v)
	case []any:
		dst = append(dst, 'A', 0, 0, 0, 0)
		start := len(dst)
		for _, e := range v {
			dst = appendValue(dst, e)
		}
		binary.BigEndian.PutUint32(dst[start-4:], uint32(len(dst)-start))
		return dst
	}
	panic(fmt.Sprintf("wire: a field table cannot hold a %T", v))
}

// cutShort splits a short string off the front of b.
func cutShort(b []byte) (s, rest []byte, ok bool) {
	if len(b) == 0 || len(b)-1 < int(b[0]) {
		return nil, nil, false
	}
	n := 1 + int(b[0])
	return b[1:n], b[n:], true
}

// cutLong splits a long string (or a table) off the front of b.
func cutLong(b []byte) (s, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	size := binary.BigEndian.Uint32(b)
	if uint64(size) > uint64(len(b)-4) {
		return nil, nil, false
	}
	n := 4 + int(size)
	return b[4:n], b[n:], true
}

func appendShort[S string | []byte](dst []byte, s S) []byte {
	if len(s) > maxShortString {
		s = s[:maxShortString]
	}
	return append(append(dst, byte(len(s))), s...)
}

func appendLong[S string | []byte](dst []byte, s S) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(s))), s...)
}
