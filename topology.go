package dormouse

import (
	"context"
	"errors"
	"time"
)

// A Topology is what [Client.Declare] makes: always the delay ladder, and the exchanges and queues named here.
type Topology struct {
	// LadderType is the queue type of the lanes. Default Quorum: replicated, and nothing is lost between lanes.
	// Classic lanes are for brokers where a hop may lose messages when the broker crashes.
	LadderType QueueType
	// WithoutLadder leaves the ladder out; what is declared can then neither delay nor retry.
	WithoutLadder bool
	Exchanges     []Exchange
	Queues        []Queue
	FixedDelays   []FixedDelay
}

// A QueueType is the value of x-queue-type.
type QueueType string

// The queue types that Dormouse declares.
const (
	Quorum  QueueType = "quorum"
	Classic QueueType = "classic"
)

// An Exchange is a durable exchange.
type Exchange struct {
	Name string
	// Kind is direct, fanout, topic, headers or a plugin's. Default topic.
	Kind string
	// Alternate is the exchange that gets what no queue is bound for. Default "<prefix>.unrouted", so that a delayed message
	// whose bindings are gone can not block a lane.
	Alternate string
	// Args are further arguments.
	Args map[string]any
}

// A Queue is a durable work queue with its parking lot, the queue "<name>.parked". What is rejected, or delivered more
// often than the broker's delivery limit allows, goes to the parking lot as well.
type Queue struct {
	Name string
	// Type is Quorum by default.
	Type     QueueType
	Bindings []Binding
	// DeadLetterExchange is where rejected messages go instead of the parking lot: that of a [FixedDelay], so that they
	// come back. No delivery limit applies then: RabbitMQ would drop such a message as a cycle.
	DeadLetterExchange string
	// Args are further arguments.
	Args map[string]any
}

// A Binding is a queue's binding to an exchange.
type Binding struct {
	Exchange, RoutingKey string
	Args                 map[string]any
}

// A FixedDelay is a single queue whose messages all wait the same time and then go on: the classic pattern, one hop.
type FixedDelay struct {
	// Queue is its name; publish to it, or bind it.
	Queue string
	// Delay is the time that every message waits, from 1 ms to ten years.
	Delay time.Duration
	// Exchange and RoutingKey are where the messages go then. Without RoutingKey they keep their own. Without Exchange they
	// go to the queue that RoutingKey names.
	Exchange, RoutingKey string
	// Bindings feed it.
	Bindings []Binding
	// Type is Quorum by default.
	Type QueueType
}

// Declare makes what t names. It can be repeated; what is there already and equal is left alone, and what is there and
// differs gives a *[MismatchError]. The topology is declared again at every reconnect.
func (c *Client) Declare(ctx context.Context, t Topology) error { return errors.ErrUnsupported }

// A MismatchError says that an exchange or queue exists with other settings than those declared.
type MismatchError struct {
	// Kind is "queue" or "exchange".
	Kind string
	Name string
	// Property is the argument or property that differs, such as x-message-ttl; empty when the broker did not say.
	Property string
	// Want is the declared value, Have the one that is there, as the broker prints them.
	Want, Have string
	Err        error
}

func (e *MismatchError) Error() string { return "" }

// Unwrap returns the broker's error.
func (e *MismatchError) Unwrap() error { return e.Err }
