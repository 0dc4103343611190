package wire

import (
	"encoding/binary"
	"iter"
)

// ReplaceProperty returns properties in which the property of that flag is value, as it is encoded, or which lack it if
// value is nil. raw is not changed. Everything else stays as it is, byte for byte.
func ReplaceProperty(raw []byte, flag uint16, value []byte) ([]byte, error) {
	if len(raw) < 2 {
		return nil, errProperties
	}
	flags, at, size := binary.BigEndian.Uint16(raw), 2, 0
	for f := uint16(FlagContentType); f >= flag; f >>= 1 {
		at += size
		size = 0
		if flags&f == 0 {
			continue
		}
		var ok bool
		if size, ok = propertySize(f, raw[at:]); !ok {
			return nil, errProperties
		}
	}
	if flags |= flag; value == nil {
		flags &^= flag
	}
	changed := make([]byte, 0, len(raw)-size+len(value))
	changed = binary.BigEndian.AppendUint16(changed, flags)
	changed = append(changed, raw[2:at]...)
	changed = append(changed, value...)
	return append(changed, raw[at+size:]...), nil
}

// propertySize is the length of the property of that flag at the front of b.
func propertySize(flag uint16, b []byte) (int, bool) {
	var rest []byte
	var ok bool
	switch flag {
	case FlagDeliveryMode, FlagPriority:
		return 1, len(b) >= 1
	case FlagTimestamp:
		return 8, len(b) >= 8
	case FlagHeaders:
		_, rest, ok = cutLong(b)
	default:
		_, rest, ok = cutShort(b)
	}
	return len(b) - len(rest), ok
}

// RawField is a field of a table as it is encoded.
type RawField struct {
	Name []byte
	// Field is the whole of it, name included.
	Field []byte
}

// RawFields yields the fields of a table, given as ParseTable takes it, where they lie. It ends at what is malformed.
func RawFields(table []byte) iter.Seq[RawField] {
	return func(yield func(RawField) bool) {
		for b := table; len(b) > 0; {
			name, rest, ok := cutShort(b)
			if !ok {
				return
			}
			size, ok := valueSize(rest)
			if !ok {
				return
			}
			whole := len(b) - len(rest) + size
			if !yield(RawField{Name: name, Field: b[:whole:whole]}) {
				return
			}
			b = b[whole:]
		}
	}
}

// AppendStringField appends a field whose value is a string.
func AppendStringField(dst []byte, name, value string) []byte {
	return appendLong(append(appendShort(dst, name), 'S'), value)
}

// AppendInt64Field appends a field whose value is a signed 64-bit integer.
func AppendInt64Field(dst []byte, name string, value int64) []byte {
	return binary.BigEndian.AppendUint64(append(appendShort(dst, name), 'l'), uint64(value))
}

// AppendTimestampField appends a field whose value is a Timestamp.
func AppendTimestampField(dst []byte, name string, value Timestamp) []byte {
	return binary.BigEndian.AppendUint64(append(appendShort(dst, name), 'T'), uint64(value))
}

// BeginArrayField appends the beginning of a field whose value is an array. The caller appends the elements, by
// BeginTableElement and AppendStringElement, and hands the mark to EndField.
func BeginArrayField(dst []byte, name string) (b []byte, mark int) {
	dst = append(appendShort(dst, name), 'A', 0, 0, 0, 0)
	return dst, len(dst)
}

// BeginTableElement appends the beginning of a table in an array. The caller appends fields and hands the mark to
// EndField.
func BeginTableElement(dst []byte) (b []byte, mark int) {
	dst = append(dst, 'F', 0, 0, 0, 0)
	return dst, len(dst)
}

// AppendStringElement appends a string in an array.
func AppendStringElement(dst []byte, value string) []byte {
	return appendLong(append(dst, 'S'), value)
}

// EndField completes what began at mark.
func EndField(dst []byte, mark int) []byte {
	binary.BigEndian.PutUint32(dst[mark-4:], uint32(len(dst)-mark))
	return dst
}
