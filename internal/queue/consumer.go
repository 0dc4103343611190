package queue

import (
	"slices"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Delivery is a message on its way to a consumer or a get.
type Delivery struct {
	Queue Source
	// Entry is what to acknowledge; it is done already if the consumer takes
	// messages without acknowledgement.
	Entry       *Entry
	Message     *message.Message
	Redelivered bool
	// Offset is the message's place in the stream, if it comes from one (InStream).
	Offset   uint64
	InStream bool
	// Counts are what a quorum queue tells of earlier deliveries.
	Counts message.Counts
	// Remaining is how many messages are still ready in the queue.
	Remaining int
}

// Properties are the message's properties with what the broker adds to them.
func (d *Delivery) Properties() []byte {
	if d.InStream {
		return d.Message.DeliveredAt(d.Offset)
	}
	return d.Message.Delivered(d.Counts)
}

// Sink is where a consumer's messages go. It is called with the queue locked, so it
// must neither block nor call the queue.
type Sink interface {
	// Deliver takes d for c, or returns false if it cannot now; then the queue leaves
	// c alone until Resume is called for it.
	Deliver(c *Consumer, d Delivery) bool
	// QueueGone says that c's queue has been deleted, and c with it.
	QueueGone(c *Consumer)
	// TimedOut says that messages were taken back from c, which has kept them for too
	// long. It gets no more until it has settled them all the same.
	TimedOut(c *Consumer)
}

// Consumer is one subscription to a queue. Its exported fields are set before it is
// given to Consume and do not change.
type Consumer struct {
	Sink      Sink
	Tag       string
	NoAck     bool // messages are done once they are delivered
	Exclusive bool // no other consumer beside it
	Prefetch  int  // most unacknowledged messages, 0 for no limit
	Priority  int  // x-priority: higher ones are served first
	// Timeout is how long it may keep a message of a quorum queue unacknowledged
	// (x-consumer-timeout), nil for as long as the queue allows.
	Timeout *time.Duration

	// ChannelLimit is the limit of all consumers of the channel together, 0 for none.
	ChannelLimit int
	Arguments    wire.Table

	queue   Source
	limit   int           // most unacknowledged messages, 0 for no limit
	timeout time.Duration // that of the queue when it came
	unacked int
	out     outstanding
	lapsed  int  // messages that were taken back from it, and that it has not settled
	waiting bool // is in the queue's line of consumers that can take a message
}

// Queue is the queue that the consumer was added to, nil if it has left it.
func (c *Consumer) Queue() Source { return c.queue }

// Joins says which queue the consumer was added to; the queue itself says so.
func (c *Consumer) Joins(q Source) { c.queue = q }

func (c *Consumer) hasCredit() bool {
	return c.NoAck || c.lapsed == 0 && (c.limit == 0 || c.unacked < c.limit)
}

// line is the consumers that can take a message, in the order in which they are
// served: by priority, and in turn within one.
// Source: https://www.rabbitmq.com/docs/consumer-priority.
type line []*Consumer

func (l *line) join(c *Consumer) {
	if c.waiting {
		return
	}
	c.waiting = true
	i := len(*l)
	for i > 0 && (*l)[i-1].Priority < c.Priority {
		i--
	}
	*l = slices.Insert(*l, i, c)
}

func (l *line) leave(c *Consumer) {
	if !c.waiting {
		return
	}
	c.waiting = false
	*l = slices.DeleteFunc(*l, func(x *Consumer) bool { return x == c })
}

// served puts the first consumer behind the others of its priority.
func (l line) served() {
	for i := 1; i < len(l) && l[i].Priority == l[i-1].Priority; i++ {
		l[i-1], l[i] = l[i], l[i-1]
	}
}
