package dormouse

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/ladder"
)

// A Message is what is published and what a handler gets. Its properties are those of AMQP 0-9-1 basic.
type Message struct {
	// Exchange and RoutingKey are where the message goes. Without an exchange it goes straight to the queue that
	// RoutingKey names (AMQP's default exchange).
	Exchange, RoutingKey string
	// After delays the message by this time; At delays it until then. Only one may be set. A time that has passed
	// means now. A delayed message is always persistent, and its routing key must not begin with "dm.".
	After time.Duration
	At    time.Time

	Body            []byte
	ContentType     string
	ContentEncoding string
	// Headers hold values that AMQP can carry: booleans, integers (an int travels as 64 bits, a uint64 as a signed one), floats, strings, []byte,
	// time.Time (whole seconds), nil, and []any and map[string]any of those. The headers CC and BCC (each []any of strings) are further routing keys, as in RabbitMQ.
	Headers map[string]any
	// MessageID is generated when empty; it stays the same through all retries.
	MessageID     string
	CorrelationID string
	ReplyTo       string
	Type          string
	AppID         string
	// UserID, if set, must be the name that the connection logged in with.
	UserID    string
	Timestamp time.Time
	// Priority is kept through a delay, except on RabbitMQ 4.0 to 4.2: there a message with priority would hold up others in a
	// quorum lane.
	Priority uint8
	// TTL is how long the message may wait in its queue (the property expiration); 0 means for ever. It cannot be
	// combined with a delay.
	TTL time.Duration
	// Transient messages are lost when the broker restarts. Default: persistent.
	Transient bool
}

// validate reports what Dormouse refuses before anything is sent.
func (m *Message) validate() error {
	if m.After != 0 && !m.At.IsZero() {
		return errors.New("both After and At are set")
	}
	if m.TTL < 0 {
		return fmt.Errorf("negative TTL %v", m.TTL)
	}
	if m.Exchange == "" && m.RoutingKey == "" {
		return errors.New("neither Exchange nor RoutingKey is set")
	}
	for _, f := range [...]struct{ name, value string }{
		{"Exchange", m.Exchange}, {"RoutingKey", m.RoutingKey}, {"ContentType", m.ContentType}, {"ContentEncoding", m.ContentEncoding},
		{"MessageID", m.MessageID}, {"CorrelationID", m.CorrelationID}, {"ReplyTo", m.ReplyTo}, {"Type", m.Type}, {"AppID", m.AppID}, {"UserID", m.UserID},
	} {
		if len(f.value) > 255 {
			return fmt.Errorf("%s is longer than 255 bytes", f.name)
		}
	}
	return nil
}

// validateDelayed reports what Dormouse refuses together with a delay.
func (m *Message) validateDelayed() error {
	if m.TTL != 0 {
		return errors.New("a TTL together with a delay: the first lane would take the shorter of the two")
	}
	keys := []string{m.RoutingKey}
	for _, name := range []string{headerCC, headerBCC} {
		list, err := keyList(m.Headers, name)
		if err != nil {
			return err
		}
		for _, k := range list {
			if k, ok := k.(string); ok {
				keys = append(keys, k)
			}
		}
	}
	for _, k := range keys {
		if strings.HasPrefix(k, ladder.KeyPrefix) {
			return fmt.Errorf("routing key %q: keys that begin with %q belong to the delay ladder", k, ladder.KeyPrefix)
		}
	}
	return nil
}

// keyList reads a CC or BCC header.
func keyList(headers map[string]any, name string) ([]any, error) {
	switch v := headers[name].(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	default:
		return nil, fmt.Errorf("header %s is %T, must be []any of strings", name, v)
	}
}

// due is when the message is to arrive; the zero time means at once.
func (m *Message) due(now time.Time) time.Time {
	switch {
	case !m.At.IsZero():
		return m.At
	case m.After > 0:
		return now.Add(m.After)
	}
	return time.Time{}
}

// publishing is the message as amqp091-go takes it.
func (m *Message) publishing() (amqp.Publishing, error) {
	headers, err := table(m.Headers)
	if err != nil {
		return amqp.Publishing{}, err
	}
	p := amqp.Publishing{
		Headers:         headers,
		ContentType:     m.ContentType,
		ContentEncoding: m.ContentEncoding,
		DeliveryMode:    amqp.Persistent,
		Priority:        m.Priority,
		CorrelationId:   m.CorrelationID,
		ReplyTo:         m.ReplyTo,
		MessageId:       m.MessageID,
		Timestamp:       m.Timestamp,
		Type:            m.Type,
		UserId:          m.UserID,
		AppId:           m.AppID,
		Body:            m.Body,
	}
	if m.Transient {
		p.DeliveryMode = amqp.Transient
	}
	if m.TTL > 0 {
		p.Expiration = strconv.FormatInt(milliseconds(m.TTL), 10)
	}
	return p, nil
}

// milliseconds rounds d up.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func newMessageID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
