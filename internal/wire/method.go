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
// and its arguments. It returns false if the frame is not well-formed.
func SplitMethod(payload []byte) (id MethodID, args []byte, ok bool) {
	if len(payload) < methodSize {
		return 0, nil, false
	}
	return MethodID(binary.BigEndian.Uint32(payload)), payload[methodSize:], true
}

// methodSize is the size of a method without arguments.
const methodSize = 4

// ParseMethod parses arguments into a new Method. A method that the protocol
// does not have is an invalid command (503), where RabbitMQ would cut the
// connection without a word; malformed arguments are a frame error (501), as in
// RabbitMQ.
func ParseMethod(id MethodID, args []byte) (Method, error) {
	m := newMethod(id)
	if m == nil {
		return nil, Errorf(CommandInvalid, "unknown %s", id.number())
	}
	if err := m.Parse(args); err != nil {
		return nil, err
	}
	return m, nil
}
