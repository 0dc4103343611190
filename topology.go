package dormouse

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dormousemq/dormouse/internal/ladder"
)

// A Topology is what [Client.Declare] makes: always the delay ladder, and the exchanges and queues named here.
type Topology struct {
	// LadderType is the queue type of the lanes. Default Quorum: replicated, and nothing is lost between lanes.
	// With Classic lanes a message can be lost when the broker crashes while it passes from one lane to the next.
	LadderType QueueType
	// WithoutLadder leaves the ladder out; what is declared can then neither delay nor retry, except by FixedDelays.
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
	// whose bindings are gone cannot block a lane.
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
	// come back. There is no delivery limit then, because RabbitMQ would drop such a message as a cycle.
	DeadLetterExchange string
	// Args are further arguments; they win over Dormouse's own.
	Args map[string]any
	// ParkedArgs are further arguments of the parking lot, such as x-max-length or x-message-ttl.
	ParkedArgs map[string]any
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
	// Delay is the time that every message waits, from 1 ms to ten years. It is rounded up to milliseconds.
	Delay time.Duration
	// Exchange and RoutingKey are where the messages go then. Without RoutingKey they keep their own. Without Exchange they
	// go to the queue that RoutingKey names.
	Exchange, RoutingKey string
	// Bindings feed it.
	Bindings []Binding
	// Type is Quorum by default.
	Type QueueType
}

// ParkedQueue is the name of a queue's parking lot.
func ParkedQueue(queue string) string { return queue + ".parked" }

const (
	longestName      = 255
	longestQueueName = longestName - len(".parked")

	// unlimitedDeliveries is x-delivery-limit for queues whose messages are looked at and given back. It is no limit in practice, on all
	// versions: -1 would drop each message that is given back on RabbitMQ 3, and on 4 put it at the end of the queue.
	unlimitedDeliveries = int64(2_000_000_000)
)

// Validate reports what is wrong with the topology as far as that can be told without a broker.
func (t *Topology) Validate() error {
	var errs []error
	check := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	checkBindings := func(queue string, bindings []Binding) {
		for _, b := range bindings {
			check(b.Exchange == "", "queue %q: a binding names no exchange", queue)
		}
	}
	checkName := func(kind, name string, longest int) {
		if err := validName(name, longest); err != nil {
			check(true, "%s %q: %w", kind, name, err)
		}
	}
	check(!t.LadderType.valid(), "LadderType is %q, must be %q or %q", t.LadderType, Quorum, Classic)
	for _, x := range t.Exchanges {
		checkName("exchange", x.Name, longestName)
	}
	for _, q := range t.Queues {
		checkName("queue", q.Name, longestQueueName)
		check(strings.HasPrefix(q.Name, ladder.KeyPrefix), "queue %q: names that begin with %q cannot be delayed or retried to, as such keys belong to the delay ladder", q.Name, ladder.KeyPrefix)
		checkBindings(q.Name, q.Bindings)
		check(!q.Type.valid(), "queue %q: type is %q, must be %q or %q", q.Name, q.Type, Quorum, Classic)
	}
	for _, f := range t.FixedDelays {
		checkName("fixed delay", f.Queue, longestName)
		checkBindings(f.Queue, f.Bindings)
		check(!f.Type.valid(), "fixed delay %q: type is %q, must be %q or %q", f.Queue, f.Type, Quorum, Classic)
		check(f.Delay <= 0 || f.Delay > ladder.GreatestMax, "fixed delay %q: %v is not between 1 ms and ten years", f.Queue, f.Delay)
		check(f.Exchange == "" && f.RoutingKey == "", "fixed delay %q: neither Exchange nor RoutingKey say where its messages go", f.Queue)
	}
	return errors.Join(errs...)
}

// validName refuses what AMQP cannot carry, and line breaks, which RabbitMQ takes out of a name without saying so.
func validName(name string, longest int) error {
	switch {
	case name == "" || len(name) > longest:
		return fmt.Errorf("the name must have 1 to %d bytes", longest)
	case strings.ContainsAny(name, "\r\n"):
		return errors.New("the name must not have line breaks")
	}
	return nil
}

func (q QueueType) valid() bool { return q == "" || q == Quorum || q == Classic }

// orQuorum is the type with the default filled in.
func (q QueueType) orQuorum() QueueType {
	if q == "" {
		return Quorum
	}
	return q
}
