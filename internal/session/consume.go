package session

import (
	"crypto/rand"
	"encoding/base64"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// consumer is a subscription of a channel. It is the queue's Sink.
type consumer struct {
	queue.Consumer
	channel *channel

	// Guarded by conn.mu.
	announced bool         // consume-ok was sent, or nobody waits for it
	from      queue.Source // that has delivered or tried to
	refused   bool         // is in conn.stalled or channel.held
}

// consume handles basic.consume.
func (ch *channel) consume(m *wire.BasicConsume) error {
	if m.Queue == replyQueue {
		return ch.consumeReplies(m)
	}
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	if ch.hasConsumer(m.ConsumerTag) {
		return tagInUse(m.ConsumerTag)
	}
	if err := ch.conn.mayQueue(access.Read, name); err != nil {
		return err
	}
	k := &consumer{channel: ch, announced: m.NoWait}
	k.Consumer = queue.Consumer{
		Sink: k, Tag: m.ConsumerTag, NoAck: m.NoAck, Exclusive: m.Exclusive, Prefetch: ch.prefetch,
		ChannelLimit: ch.limit, Arguments: m.Arguments,
	}
	if k.Tag == "" {
		k.Tag = consumerTag()
	}
	c := ch.conn
	c.mu.Lock()
	ch.consumers[k.Tag] = k
	c.mu.Unlock()
	err = c.host.Consume(c, name, &k.Consumer)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(ch.consumers, k.Tag)
		return err
	}
	k.announce()
	c.wakeWriter()
	return nil
}

func (ch *channel) hasConsumer(tag string) bool {
	ch.conn.mu.Lock()
	defer ch.conn.mu.Unlock()
	return ch.consumers[tag] != nil
}

func tagInUse(tag string) error {
	return wire.Errorf(wire.NotAllowed, "attempt to reuse consumer tag '%s'", tag)
}

// consumerTag makes a tag as RabbitMQ's are.
func consumerTag() string { return "amq.ctag-" + random() }

// random is 16 random bytes as text.
func random() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// announce sends consume-ok, which the client must see before the first delivery.
// With conn.mu held.
func (k *consumer) announce() {
	if !k.announced {
		k.announced = true
		k.channel.conn.out.method(k.channel.number, &wire.BasicConsumeOk{ConsumerTag: k.Tag})
	}
}

// Deliver writes a delivery, or refuses it while the client has enough to read.
func (k *consumer) Deliver(_ *queue.Consumer, d queue.Delivery) bool {
	properties := d.Properties()
	ch := k.channel
	c := ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.closed || c.dead || k.refused {
		return false
	}
	k.from = d.Queue
	if ch.limited() {
		k.refused = true
		ch.held = append(ch.held, k)
		return false
	}
	if c.out.size >= deliverLimit {
		k.refused = true
		c.stalled = append(c.stalled, k)
		return false
	}
	k.announce()
	ch.counts.delivered(k.NoAck, d.Redelivered)
	m := wire.BasicDeliver{
		ConsumerTag: k.Tag, DeliveryTag: ch.tag(d, k.NoAck, false), Redelivered: d.Redelivered,
		Exchange: d.Message.Exchange, RoutingKey: d.Message.Keys[0],
	}
	b, mark := wire.BeginMethod(c.out.begin(), ch.number)
	c.out.end(wire.EndMethod(m.AppendTo(b), mark))
	c.out.content(ch.number, c.frameMax, properties, d.Message)
	c.wakeWriter()
	return true
}

// limited tells whether the consumers of the channel have as many messages as they may.
// Those that do not acknowledge wait for the others too. With conn.mu held.
func (ch *channel) limited() bool { return ch.limit > 0 && ch.unacked.consumed() >= ch.limit }

// resumeHeld lets the consumers go on that the channel's limit has held, if it does not
// any more. Who went first the last time goes last, so that the queues take turns.
func (ch *channel) resumeHeld() {
	c := ch.conn
	c.mu.Lock()
	if len(ch.held) == 0 || ch.limited() {
		c.mu.Unlock()
		return
	}
	held := accept(append(ch.held[1:], ch.held[0]))
	ch.held = nil
	c.mu.Unlock()
	for _, k := range held {
		k.resume()
	}
}

// accept says of consumers that have refused a delivery that they will not refuse the
// next. With conn.mu held; resume them after that.
func accept(refusing []*consumer) []*consumer {
	for _, k := range refusing {
		k.refused = false
	}
	return refusing
}

// tag gives a delivery its tag, and remembers it if it is to be acknowledged; got is
// whether it answers basic.get. With conn.mu held.
func (ch *channel) tag(d queue.Delivery, noAck, got bool) uint64 {
	tag := ch.nextTag
	ch.nextTag++
	if !noAck {
		ch.unacked.add(unacked{tag: tag, queue: d.Queue, entry: d.Entry, got: got})
	}
	return tag
}

// resume asks for deliveries again.
func (k *consumer) resume() {
	k.channel.conn.mu.Lock()
	from := k.from
	k.channel.conn.mu.Unlock()
	from.Resume(&k.Consumer)
}

// QueueGone tells the client that the queue was deleted.
func (k *consumer) QueueGone(*queue.Consumer) {
	ch := k.channel
	c := ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.closed || ch.consumers[k.Tag] != k {
		return
	}
	k.announce()
	delete(ch.consumers, k.Tag)
	if ch.gone = append(ch.gone, k.Tag); !ch.deleting {
		ch.tellGone()
	}
}

// tellGone cancels the consumers whose queue was deleted. The caller holds the connection's lock.
func (ch *channel) tellGone() {
	c := ch.conn
	for _, tag := range ch.gone {
		if c.can("consumer_cancel_notify") {
			c.out.method(ch.number, &wire.BasicCancel{ConsumerTag: tag, NoWait: true})
		}
	}
	ch.gone = nil
	c.wakeWriter()
}

// deletion tells the channel's client of consumers whose queue is deleted in do only when that is over: in RabbitMQ a
// channel has sent queue.delete-ok before it hears of them.
func (ch *channel) deletion(do func() error) error {
	set := func(deleting bool) {
		ch.conn.mu.Lock()
		defer ch.conn.mu.Unlock()
		if ch.deleting = deleting; !deleting && !ch.closed {
			ch.tellGone()
		}
	}
	set(true)
	defer set(false)
	return do()
}

// TimedOut tells the client that it has kept messages for too long: by a cancel, though
// the consumer stays and gets messages again when the client has settled what it has, or
// if the client does not know that, by closing the channel.
func (k *consumer) TimedOut(*queue.Consumer) {
	ch := k.channel
	c := ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ch.closed:
	case ch.consumers[k.Tag] == k && c.can("consumer_cancel_notify"):
		k.announce()
		c.out.method(ch.number, &wire.BasicCancel{ConsumerTag: k.Tag, NoWait: true})
		c.wakeWriter()
	default:
		ch.expel()
	}
}

// getter is who gets a message by basic.get.
type getter struct{ channel *channel }

// Deliver is never called: a getter is not subscribed.
func (getter) Deliver(*queue.Consumer, queue.Delivery) bool { return false }

// QueueGone is never called either.
func (getter) QueueGone(*queue.Consumer) {}

// TimedOut closes the channel.
func (g getter) TimedOut(*queue.Consumer) {
	g.channel.conn.mu.Lock()
	defer g.channel.conn.mu.Unlock()
	g.channel.expel()
}

// cancel handles basic.cancel. There need not be such a consumer.
func (ch *channel) cancel(m *wire.BasicCancel) error {
	c := ch.conn
	c.mu.Lock()
	k := ch.consumers[m.ConsumerTag]
	delete(ch.consumers, m.ConsumerTag)
	c.mu.Unlock()
	switch {
	case k != nil:
		c.host.Cancel(&k.Consumer)
	case ch.reply != nil && ch.reply.tag == m.ConsumerTag:
		ch.dropReply()
	}
	if !m.NoWait {
		ch.send(&wire.BasicCancelOk{ConsumerTag: m.ConsumerTag})
	}
	return nil
}

// qos handles basic.qos: the limit of each consumer to come, or with global that of
// the channel, which RabbitMQ 4.3 offers only if told so.
// Source: https://www.rabbitmq.com/docs/consumer-prefetch.
func (ch *channel) qos(m *wire.BasicQos) error {
	if m.PrefetchSize != 0 {
		return wire.Errorf(wire.NotImplemented, "prefetch_size!=0 (%d)", m.PrefetchSize)
	}
	if m.Global {
		ch.conn.mu.Lock()
		ch.limit = int(m.PrefetchCount)
		ch.conn.mu.Unlock()
		ch.resumeHeld()
	} else {
		ch.conn.mu.Lock()
		ch.prefetch = int(m.PrefetchCount)
		ch.conn.mu.Unlock()
	}
	ch.send(&wire.BasicQosOk{})
	return nil
}

// get handles basic.get.
func (ch *channel) get(m *wire.BasicGet) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	c := ch.conn
	if err := c.mayQueue(access.Read, name); err != nil {
		return err
	}
	d, found, err := c.host.Get(c, name, &queue.Consumer{Sink: getter{ch}, NoAck: m.NoAck})
	if err != nil {
		return err
	}
	if !found {
		c.mu.Lock()
		ch.counts.GetEmpty++
		c.mu.Unlock()
		ch.send(&wire.BasicGetEmpty{})
		return nil
	}
	properties := d.Properties()
	c.mu.Lock()
	defer c.mu.Unlock()
	ch.counts.got(m.NoAck, d.Redelivered)
	c.out.method(ch.number, &wire.BasicGetOk{
		DeliveryTag: ch.tag(d, m.NoAck, true), Redelivered: d.Redelivered,
		Exchange: d.Message.Exchange, RoutingKey: d.Message.Keys[0], MessageCount: uint32(d.Remaining),
	})
	c.out.content(ch.number, c.frameMax, properties, d.Message)
	c.wakeWriter()
	c.awaitRoom()
	return nil
}
