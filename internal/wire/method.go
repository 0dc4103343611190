package wire

import (
	"encoding/binary"
	"fmt"
)

// MethodID names a method: its class in the upper, its number in the class in
// the lower 16 bits.
type MethodID uint32

// Class returns the class identifier, as close methods report it.
func (id MethodID) Class() uint16 { return uint16(id >> 16) }

// Method returns the method identifier within its class.
func (id MethodID) Method() uint16 { return uint16(id) }

func (id MethodID) number() string {
	return fmt.Sprintf("method %d of class %d", id.Method(), id.Class())
}

// Method is an AMQP method with its arguments. Its implementations are the
// generated structs.
type Method interface {
	ID() MethodID
	// AppendTo appends the payload of a method frame.
	AppendTo(dst []byte) []byte
	// Parse sets the arguments from b, the payload behind the identifier.
	Parse(b []byte) error
}

// SplitMethod splits the payload of a method frame into the method's identifier
// and its arguments.
func SplitMethod(payload []byte) (id MethodID, args []byte, err error) {
	if len(payload) < 4 {
		return 0, nil, Errorf(SyntaxError, "method frame of %d octets", len(payload))
	}
	return MethodID(binary.BigEndian.Uint32(payload)), payload[4:], nil
}

// ParseMethod parses the payload of a method frame into a new Method.
func ParseMethod(payload []byte) (Method, error) {
	id, args, err := SplitMethod(payload)
	if err != nil {
		return nil, err
	}
	m := newMethod(id)
	if m == nil {
		return nil, UnknownMethod(id)
	}
	return m, m.Parse(args)
}

// UnknownMethod is the exception for a method that the protocol does not have.
func UnknownMethod(id MethodID) *Exception {
	return Errorf(CommandInvalid, "unknown %s", id.number())
}
