package dormouse

import "time"

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
	// Headers hold values that AMQP can carry: booleans, integers, floats, strings, []byte, time.Time, nil, []any and
	// map[string]any of those. The headers CC and BCC (each []any of strings) are further routing keys, as in RabbitMQ.
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
	Priority  uint8
	// TTL is how long the message may wait in its queue (the property expiration); 0 means for ever. It cannot be
	// combined with a delay.
	TTL time.Duration
	// Transient messages are lost when the broker restarts. Default: persistent.
	Transient bool
}
