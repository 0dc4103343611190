package wire

import (
	"encoding/binary"
	"unicode/utf8"
)

// MalformedText is what RabbitMQ says of a short string that is no UTF-8.
const MalformedText = "Malformed UTF-8 in shortstr"

// arguments reads the arguments of a method one after another. Past the first
// failure everything reads as zero, and end reports it.
type arguments struct {
	b   []byte // what is left of all
	all []byte
	bad bool
	// garbled says that a short string is no UTF-8.
	garbled bool
}

func (a *arguments) take(n int) []byte {
	if len(a.b) < n || a.bad {
		a.bad = true
		return nil
	}
	p := a.b[:n]
	a.b = a.b[n:]
	return p
}

func (a *arguments) octet() uint8 {
	if p := a.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (a *arguments) short() uint16 {
	if p := a.take(2); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

func (a *arguments) long() uint32 {
	if p := a.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (a *arguments) longlong() uint64 {
	if p := a.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

// view reads a short string without copying it.
func (a *arguments) view() []byte { return a.take(int(a.octet())) }

// shortstr reads a short string, which must be UTF-8, as RabbitMQ has it of all but those of basic.publish.
func (a *arguments) shortstr() string {
	s := string(a.view())
	a.garbled = a.garbled || !utf8.ValidString(s)
	return s
}

func (a *arguments) longstr() string { return string(a.block()) }

func (a *arguments) table() Table {
	t, err := ParseTable(a.block())
	if err != nil {
		a.bad = true
	}
	return t
}

// block reads what a long string and a table have in common: a length of four
// octets and as many octets.
func (a *arguments) block() []byte {
	s, rest, ok := cutLong(a.b)
	if !ok || a.bad {
		a.bad = true
		return nil
	}
	a.b = rest
	return s
}

// end reports a failure, or arguments that are left over. RabbitMQ calls both a
// frame error, in these words.
func (a *arguments) end() error {
	if a.garbled {
		return Errorf(FrameError, MalformedText)
	}
	if a.bad || len(a.b) != 0 {
		return Errorf(FrameError, "cannot decode %s", erlangBinary(a.all))
	}
	return nil
}

// appendBits packs adjacent bits into an octet, the first into its lowest bit.
func appendBits(dst []byte, bits ...bool) []byte {
	var o byte
	for i, set := range bits {
		if set {
			o |= 1 << i
		}
	}
	return append(dst, o)
}
