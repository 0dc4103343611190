package session

import (
	"github.com/dormousemq/dormouse/internal/wire"
)

const (
	// maxBody is the largest body that the protocol implementation takes at all, in
	// bytes: RabbitMQ's hard limit.
	maxBody = 512 << 20
	// maxMessage is the largest body that is accepted, in bytes: the default
	// max_message_size of RabbitMQ since 4.0.
	maxMessage = 16 << 20
	// believed is the largest size, in bytes, for which room is made when a content
	// header promises it. For larger bodies room is made as they come.
	believed = 4 << 10
)

// content assembles a method with content: the method, a content header, and body
// frames until the size in the header is reached.
type content struct {
	method  wire.MethodID // 0 while a method is awaited
	header  bool          // the content header has come
	size    uint64        // of the body
	missing uint64        // of it

	exchange, key string // of basic.publish
	mandatory     bool
	immediate     bool

	// bytes are the properties and then the body, in one allocation that the message
	// will keep.
	bytes      []byte
	properties int
}

// class is the only class that has content.
const class = uint16(wire.IDBasicPublish >> 16)

// ready tells whether a method may come now.
func (c *content) ready() error {
	switch {
	case c.method == 0:
		return nil
	case c.header:
		return wire.Errorf(wire.UnexpectedFrame, "expected content body, got non content body frame instead")
	}
	return wire.Errorf(wire.UnexpectedFrame, "expected content header for class %d, got non content header frame instead", class)
}

// begin takes a method that has content.
func (c *content) begin(id wire.MethodID, args []byte, names *names) error {
	c.method = id
	if id != wire.IDBasicPublish {
		_, err := parse(id, args)
		return err
	}
	var m wire.BasicPublish
	if err := m.Parse(args); err != nil {
		return err
	}
	c.exchange, c.key = names.of(m.Exchange), names.of(m.RoutingKey)
	c.mandatory, c.immediate = m.Mandatory, m.Immediate
	return nil
}

// add takes a frame that is no method, and tells whether the content is complete.
func (c *content) add(f wire.Frame) (complete bool, err error) {
	switch {
	case c.method == 0:
		return false, wire.Errorf(wire.UnexpectedFrame, "expected method frame, got non method frame instead")
	case c.header && f.Type != wire.FrameBody, !c.header && f.Type != wire.FrameHeader:
		return false, c.ready()
	case c.header:
		return c.addBody(f.Payload)
	}
	h, _ := wire.ParseContentHeader(f.Payload)
	switch {
	case h.Weight != 0:
		return false, c.ready()
	case h.Class != class:
		return false, wire.Errorf(wire.UnexpectedFrame, "expected content header for class %d, got one for class %d instead", class, h.Class)
	case h.BodySize > maxBody:
		return false, wire.Errorf(wire.FrameError, "content body size %d exceeds maximum allowed size %d", h.BodySize, maxBody)
	}
	c.header, c.size, c.missing = true, h.BodySize, h.BodySize
	c.properties = len(h.Properties)
	room := c.properties
	if c.size <= believed {
		room += int(c.size)
	}
	c.bytes = append(make([]byte, 0, room), h.Properties...)
	return c.missing == 0, nil
}

func (c *content) addBody(b []byte) (complete bool, err error) {
	if uint64(len(b)) > c.missing {
		return false, wire.Errorf(wire.FrameError, "content body frame exceeds remaining content size")
	}
	c.missing -= uint64(len(b))
	if c.size <= maxMessage {
		c.grow(len(b))
		c.bytes = append(c.bytes, b...)
	}
	return c.missing == 0, nil
}

// grow makes room for n bytes more: doubled, but not beyond what is to come.
func (c *content) grow(n int) {
	if have := cap(c.bytes); have < len(c.bytes)+n {
		whole := c.properties + int(c.size)
		bigger := make([]byte, len(c.bytes), min(whole, max(2*have, len(c.bytes)+n)))
		copy(bigger, c.bytes)
		c.bytes = bigger
	}
}

// tooLarge is the exception for a body over the limit. It was not kept.
func (c *content) tooLarge() error {
	if c.size <= maxMessage {
		return nil
	}
	return wire.Errorf(wire.PreconditionFailed, "message size %d is larger than configured max size %d", c.size, maxMessage)
}

// reset awaits the next method.
func (c *content) reset() { *c = content{} }
