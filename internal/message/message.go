// Package message is one message inside the broker: its content as the publisher
// sent it, where it goes, and what happened to it.
//
// A Message is immutable once it is made, so that all queues that hold it share it.
// Its properties and body stay the bytes that came over the wire; they are decoded
// only when the broker has something to add to its headers.
package message

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
	"github.com/dormousemq/dormouse/internal/xdeath"
)

// MaxTTL is the longest time that a message or queue TTL may be, ten years.
// Source: https://www.rabbitmq.com/docs/ttl and RabbitMQ since 3.10.2.
const MaxTTL = 315_360_000_000 * time.Millisecond

// NoExpiration is the Expiration of a message without one.
const NoExpiration time.Duration = -1

// NoPriority is the Priority of a message without one.
const NoPriority = -1

// Message is one message. Do not change one that others may see.
type Message struct {
	// Exchange is where it was published to, by a client or last by dead-lettering.
	Exchange string
	// Keys are its routing key and then those of its CC header.
	Keys []string
	// BCC are the routing keys of its BCC header, which consumers do not see.
	BCC []string
	// Properties are the property flags and property list of its content header,
	// without a BCC header.
	Properties []byte
	// Body is its content.
	Body []byte
	// Persistent is whether it asked to survive a restart (delivery-mode 2).
	Persistent bool
	// Priority is its priority, or NoPriority.
	Priority int
	// Expiration is its own TTL in whole milliseconds, or NoExpiration.
	Expiration time.Duration
	// Deaths is its dead-lettering history, nil if it has none.
	Deaths *xdeath.History
	// Returns and Failures are how often quorum queues that it was dead-lettered
	// from had got it back, and how often of these after a failure.
	Returns, Failures uint32
}

// New makes a message of what a client published. properties and body are kept, not
// copied. The error is a *wire.Exception with RabbitMQ's text: 406 for an expiration
// that is no number of milliseconds within MaxTTL and for a CC or BCC that is no
// array; 501 or 502 for properties that cannot be read.
func New(exchange, key string, properties, body []byte) (*Message, error) {
	view, err := wire.ViewProperties(properties)
	if err != nil {
		return nil, err
	}
	m := &Message{
		Exchange:   exchange,
		Keys:       []string{key},
		Properties: properties,
		Body:       body,
		Persistent: view.DeliveryMode == 2,
		Priority:   NoPriority,
		Expiration: NoExpiration,
	}
	if view.Has(wire.FlagPriority) {
		m.Priority = int(view.Priority)
	}
	if view.Has(wire.FlagExpiration) {
		if m.Expiration, err = parseExpiration(string(view.Expiration)); err != nil {
			return nil, err
		}
	}
	if bytes.Contains(view.Headers, []byte("CC")) {
		if err := m.addHeaderKeys(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// addHeaderKeys takes the routing keys of the CC and BCC headers (sender-selected
// distribution, https://www.rabbitmq.com/docs/sender-selected) and removes BCC.
func (m *Message) addHeaderKeys() error {
	p, err := wire.ParseProperties(m.Properties)
	if err != nil {
		return err
	}
	cc, err := headerKeys(p.Headers, "CC")
	if err != nil {
		return err
	}
	if m.BCC, err = headerKeys(p.Headers, "BCC"); err != nil {
		return err
	}
	m.Keys = append(m.Keys, cc...)
	if _, has := p.Headers.Get("BCC"); has {
		p.Headers = without(p.Headers, "BCC")
		m.Properties = p.AppendTo(nil)
	}
	return nil
}

func headerKeys(headers wire.Table, name string) ([]string, error) {
	v, has := headers.Get(name)
	if !has {
		return nil, nil
	}
	values, ok := v.([]any)
	if !ok {
		return nil, wire.Errorf(wire.PreconditionFailed, "invalid message: {unacceptable_type_in_header,\"%s\",%s}", name, wire.TypeName(v))
	}
	var keys []string
	for _, v := range values {
		if key, ok := v.(string); ok {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func without(t wire.Table, name string) wire.Table {
	kept := make(wire.Table, 0, len(t))
	for _, f := range t {
		if f.Name != name {
			kept = append(kept, f)
		}
	}
	return kept
}

// parseExpiration reads an expiration property as RabbitMQ does: an integer, all of
// the string, in milliseconds.
func parseExpiration(s string) (time.Duration, error) {
	bad := func(why string) (time.Duration, error) {
		return 0, wire.Errorf(wire.PreconditionFailed, "invalid expiration '%s': %s", s, why)
	}
	digits := len(s) - len(strings.TrimLeft(strings.TrimLeft(s[:min(1, len(s))], "+-")+s[min(1, len(s)):], "0123456789"))
	number, rest := s[:digits], s[digits:]
	if strings.Trim(number, "+-") == "" {
		return bad("no_integer")
	}
	if rest != "" {
		return bad("{leftover_string," + strconv.Quote(rest) + "}")
	}
	number = strings.TrimPrefix(number, "+")
	if strings.HasPrefix(number, "-") && strings.Trim(number, "-0") != "" {
		return bad("{value_negative," + number + "}")
	}
	ms, err := strconv.ParseInt(number, 10, 64)
	if err != nil || ms > MaxTTL.Milliseconds() {
		return bad("{value_too_large," + strings.TrimLeft(number, "0") + "}")
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// AllKeys are the keys that the message is routed by: its own, CC and BCC.
func (m *Message) AllKeys() []string {
	if len(m.BCC) == 0 {
		return m.Keys
	}
	return append(slices.Clip(m.Keys), m.BCC...)
}

// Headers are the headers by which the message is routed: those of the publisher,
// without BCC, and those of its deaths; nil if there are none or they cannot be read.
func (m *Message) Headers() wire.Table {
	p, err := wire.ParseProperties(m.Delivered(Counts{}))
	if err != nil {
		return nil
	}
	return p.Headers
}

// Memory is about what the message takes in memory, in bytes.
func (m *Message) Memory() int {
	const overhead = 256
	return overhead + len(m.Properties) + len(m.Body)
}
