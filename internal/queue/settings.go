package queue

import (
	"time"

	"github.com/dormousemq/dormouse/internal/store"
)

// Type is the x-queue-type of a queue.
type Type string

// The queue types.
const (
	Classic Type = "classic"
	Quorum  Type = "quorum"
	Stream  Type = "stream" // made by internal/stream
)

// Overflow is what happens when a length limit is reached.
type Overflow string

// The overflow behaviours. Source: https://www.rabbitmq.com/docs/maxlength.
const (
	DropHead         Overflow = "drop-head"
	RejectPublish    Overflow = "reject-publish"
	RejectPublishDLX Overflow = "reject-publish-dlx"
)

// DefaultConsumerTimeout is how long a message of a quorum queue may be out
// unacknowledged, unless the queue or the consumer says otherwise.
// Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout.
const DefaultConsumerTimeout = 30 * time.Minute

// Unlimited is a limit that is not set.
const Unlimited = -1

// DefaultDeliveryLimit is how often a quorum queue redelivers a message before it
// dead-letters it, unless the queue says otherwise. Source: RabbitMQ 4.0.
const DefaultDeliveryLimit = 20

// Settings are what its arguments and policies make of a queue.
type Settings struct {
	Type Type
	// Durable queues outlive a restart, and so do their persistent messages.
	Durable bool
	// TTL is the longest that a message may wait (x-message-ttl), or Unlimited.
	TTL time.Duration
	// Expires is how long the queue lives unused (x-expires), or Unlimited.
	Expires time.Duration
	// MaxLength and MaxBytes limit the ready messages, or are Unlimited.
	MaxLength, MaxBytes int64
	Overflow            Overflow
	// DeadLetterExchange is where dead messages are published; nil drops them.
	DeadLetterExchange *string
	// DeadLetterRoutingKey replaces their routing keys if it is not nil.
	DeadLetterRoutingKey *string
	// AtLeastOnce keeps a dead letter until a queue has taken it.
	AtLeastOnce bool
	// MaxPriority is the highest priority of the queue, 0 if all are the same.
	// DefaultPriority is that of a message without one.
	MaxPriority, DefaultPriority uint8
	// SingleActiveConsumer gives messages to one consumer at a time.
	SingleActiveConsumer bool
	// DeliveryLimit is how many failed deliveries a quorum queue allows, or Unlimited.
	DeliveryLimit int64
	// ConsumerTimeout is how long a message of a quorum queue may be out unacknowledged,
	// if its consumer does not say otherwise.
	ConsumerTimeout time.Duration
	// Retry is when what comes back to a quorum queue is delivered again.
	Retry Retry
	// MaxAge is how long a stream keeps messages at least (x-max-age), or Unlimited;
	// MaxBytes is how much it keeps at least.
	MaxAge time.Duration
	// SegmentBytes is how much a stream gathers before it begins a new segment.
	SegmentBytes int64
}

// DefaultSegmentBytes is the size of a stream's segments unless the stream says
// otherwise. Source: https://www.rabbitmq.com/docs/streams#retention.
const DefaultSegmentBytes = 500_000_000

// Defaults are the settings of a queue declared without arguments.
func Defaults(t Type, durable bool) Settings {
	s := Settings{
		Type: t, Durable: durable,
		TTL: Unlimited, Expires: Unlimited, MaxLength: Unlimited, MaxBytes: Unlimited,
		Overflow: DropHead, DeliveryLimit: Unlimited,
		MaxAge: Unlimited, SegmentBytes: DefaultSegmentBytes,
	}
	if t == Quorum {
		s.DeliveryLimit = DefaultDeliveryLimit
		s.ConsumerTimeout = DefaultConsumerTimeout
		s.MaxPriority, s.DefaultPriority = 31, 4 // https://www.rabbitmq.com/docs/quorum-queues#priorities, 4.3
	}
	return s
}

// Levels is how many numbers of the store a queue takes: one for each priority, or for the
// messages and the segments of a stream.
func (s *Settings) Levels() store.QueueID {
	if s.Type == Stream {
		return 2
	}
	return store.QueueID(s.MaxPriority) + 1
}

// stores tells whether a message with or without the persistent flag is kept on disk.
// A quorum queue keeps all of them.
func (s *Settings) stores(persistent bool) bool {
	return s.Durable && (persistent || s.Type == Quorum)
}
