package dormouse

import (
	"fmt"
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// table turns headers into what amqp091-go can write. The result is a copy, and the error names the header at fault.
// An int becomes a signed 64-bit integer: amqp091-go would cut it to 32 bits.
func table(headers map[string]any) (amqp.Table, error) {
	t := make(amqp.Table, len(headers)+3) // room for the ladder's own
	for name, v := range headers {
		if len(name) > 255 {
			return nil, fmt.Errorf("header name %.20q... is longer than 255 bytes", name)
		}
		f, err := field(v)
		if err != nil {
			return nil, fmt.Errorf("header %q: %w", name, err)
		}
		t[name] = f
	}
	return t, nil
}

func field(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, uint8, int8, int16, int32, int64, uint16, uint32, float32, float64, string, []byte, amqp.Decimal, time.Time:
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("AMQP cannot carry %d: its integers are signed", v)
		}
		return int64(v), nil
	case map[string]any:
		return table(v)
	case amqp.Table:
		return table(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			f, err := field(v[i])
			if err != nil {
				return nil, err
			}
			list[i] = f
		}
		return list, nil
	}
	return nil, fmt.Errorf("AMQP cannot carry a %T", v)
}

// plain is the opposite of field: nested tables become plain maps. It copies.
func plain(v any) any {
	switch v := v.(type) {
	case amqp.Table:
		m := make(map[string]any, len(v))
		for name, f := range v {
			m[name] = plain(f)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	}
	return v
}

// fieldSize is the number of bytes that a value takes on the wire, its type octet included (AMQP 0-9-1, 4.2.5).
func fieldSize(v any) int {
	switch v := v.(type) {
	case nil:
		return 1
	case bool, uint8, int8:
		return 1 + 1
	case int16, uint16:
		return 1 + 2
	case int32, uint32, float32:
		return 1 + 4
	case amqp.Decimal:
		return 1 + 5
	case string:
		return 1 + 4 + len(v)
	case []byte:
		return 1 + 4 + len(v)
	case amqp.Table:
		return 1 + tableSize(v)
	case []any:
		n := 1 + 4
		for _, f := range v {
			n += fieldSize(f)
		}
		return n
	}
	return 1 + 8
}

func tableSize(t amqp.Table) int {
	n := 4
	for name, v := range t {
		n += 1 + len(name) + fieldSize(v)
	}
	return n
}

// checkHeaderFrame refuses properties that do not fit one frame: the broker would close the whole connection.
func checkHeaderFrame(p *amqp.Publishing, frameSize int) error {
	const rest = 8 + 14 + 13*256 // frame and header, then the other properties at their longest
	if n := tableSize(p.Headers) + rest; frameSize > 0 && n > frameSize {
		return fmt.Errorf("headers of %d bytes: they must fit one frame of %d bytes with the other properties", n-rest, frameSize)
	}
	return nil
}
