package conformance

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A Consumer receives from one queue on a channel of its own.
type Consumer struct {
	c         *C
	ch        *amqp.Channel
	queue     string
	tag       string
	msgs      <-chan amqp.Delivery
	cancelled chan string
}

// How a consumer is started. Prefetch 0 is unlimited.
type consume struct {
	Prefetch  int
	AutoAck   bool
	Exclusive bool
	Args      amqp.Table
	Channel   *amqp.Channel // nil for a new one
}

// Consume starts a consumer.
func (c *C) Consume(queue string, how consume) *Consumer {
	c.Helper()
	k := &Consumer{c: c, ch: how.Channel, queue: queue, tag: c.Unique(queue + "-consumer")}
	if k.ch == nil {
		k.ch = c.Channel()
	}
	k.cancelled = k.ch.NotifyCancel(make(chan string, 1))
	if how.Prefetch > 0 {
		c.OK(k.ch.Qos(how.Prefetch, 0, false))
	}
	var err error
	k.msgs, err = k.ch.Consume(queue, k.tag, how.AutoAck, how.Exclusive, false, false, how.Args)
	c.OK(err)
	return k
}

// Next is the next delivery.
func (k *Consumer) Next() amqp.Delivery {
	k.c.Helper()
	select {
	case d, ok := <-k.msgs:
		if !ok {
			k.c.Fatalf("consumer of %s was cancelled", k.c.plain(k.queue))
		}
		return d
	case <-time.After(patience):
		k.c.Fatalf("nothing arrived from %s", k.c.plain(k.queue))
	}
	panic("unreachable")
}

// Bodies are those of the next n deliveries.
func (k *Consumer) Bodies(n int) []string {
	k.c.Helper()
	bodies := make([]string, n)
	for i := range n {
		bodies[i] = string(k.Next().Body)
	}
	return bodies
}

// None fails the case if something arrives within d. Where an event marks the moment by which a message would have
// come, it is better to wait for that event.
func (k *Consumer) None(d time.Duration) {
	k.c.Helper()
	select {
	case m, ok := <-k.msgs:
		if ok {
			k.c.Errorf("%q arrived from %s", m.Body, k.c.plain(k.queue))
		}
	case <-time.After(d):
	}
}

// Stop closes the consumer's channel, which returns what it has not acked.
func (k *Consumer) Stop() {
	k.c.Helper()
	k.c.OK(k.ch.Close())
}

// Receive takes the next n messages of a queue and acks them.
func (c *C) Receive(queue string, n int) []amqp.Delivery {
	c.Helper()
	k := c.Consume(queue, consume{Prefetch: n})
	got := make([]amqp.Delivery, n)
	for i := range n {
		got[i] = k.Next()
	}
	c.OK(got[n-1].Ack(true))
	k.Stop()
	return got
}

// One takes the next message of a queue and acks it.
func (c *C) One(queue string) amqp.Delivery {
	c.Helper()
	return c.Receive(queue, 1)[0]
}

// Bodies are those of the next n messages of a queue, which are acked.
func (c *C) Bodies(queue string, n int) []string {
	c.Helper()
	bodies := make([]string, n)
	for i, d := range c.Receive(queue, n) {
		bodies[i] = string(d.Body)
	}
	return bodies
}

// Get takes one message with basic.get, unacked.
func (c *C) Get(queue string) amqp.Delivery {
	c.Helper()
	d, ok, err := c.ch.Get(queue, false)
	c.OK(err)
	if !ok {
		c.Fatalf("%s is empty", c.plain(queue))
	}
	return d
}

// Empty fails the case when basic.get finds a message.
func (c *C) Empty(queue string) {
	c.Helper()
	d, ok, err := c.ch.Get(queue, true)
	c.OK(err)
	if ok {
		c.Errorf("%q is in %s", d.Body, c.plain(queue))
	}
}

// Ready is the number of ready messages.
func (c *C) Ready(queue string) int {
	c.Helper()
	return c.inspect(queue).Messages
}

func (c *C) inspect(queue string) amqp.Queue {
	c.Helper()
	q, err := c.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	c.OK(err)
	return q
}

// Eventually waits until ok is true.
func (c *C) Eventually(what string, ok func() bool) {
	c.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			c.Fatalf("never came: %s", what)
		}
	}
}

// ReadyBecomes waits until the queue has n ready messages.
func (c *C) ReadyBecomes(queue string, n int) {
	c.Helper()
	c.Eventually("the right number of messages in "+c.plain(queue), func() bool { return c.Ready(queue) == n })
}
