package session

import (
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/wire"
)

const (
	// defaultMaxHeld is how much a connection may hold, in bytes: eight messages of the
	// largest size.
	defaultMaxHeld = 8 * maxMessage
	// messageOverhead is about what a message costs besides its properties and body, in
	// bytes.
	messageOverhead = 512
)

// hold adds n to the bytes that the connection holds on all its channels of messages that
// are not complete or not committed yet. Only the client can finish these, so the broker
// cannot wait until there are fewer. RabbitMQ has no such limit; it ends at its memory.
func (c *conn) hold(n int) error {
	c.held += n
	if most := c.server.options.MaxHeld; c.held > most {
		return wire.Errorf(wire.ResourceError, "messages that are not complete or not committed take more than the %d bytes that a connection may hold", most)
	}
	return nil
}

// let is hold for what is complete, committed or dropped.
func (c *conn) let(n int) { c.held -= n }

func sizeOf(m *message.Message) int { return messageOverhead + len(m.Properties) + len(m.Body) }
