package session

import (
	"strings"
	"sync"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Direct reply-to: a client consumes from replyQueue, publishes requests with it as
// their reply-to, and gets replies without any queue in between. The broker puts the
// channel's own name into reply-to. Source:
// https://www.rabbitmq.com/docs/direct-reply-to.
const (
	replyQueue  = "amq.rabbitmq.reply-to"
	replyPrefix = replyQueue + "."
)

// replyConsumer is the one consumer of replies that a channel may have.
type replyConsumer struct {
	channel *channel
	tag     string
	name    string // replies are published to: replyPrefix and two parts in base64, in RabbitMQ a process and a padded key
}

// replies finds the consumer of replies by its name.
type replies struct {
	mu sync.RWMutex
	by map[string]*replyConsumer
}

func (r *replies) add(k *replyConsumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*replyConsumer{}
	}
	r.by[k.name] = k
}

// remove returns when no reply is on its way to k any more.
func (r *replies) remove(k *replyConsumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, k.name)
}

func (r *replies) has(name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.by[name] != nil
}

// deliver gives a reply to the consumer that it is addressed to. It returns false if
// there is none. A consumer that does not read loses replies: they are delivered at
// most once.
func (r *replies) deliver(m *message.Message) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k := r.by[m.Keys[0]]
	if k == nil {
		return false
	}
	ch := k.channel
	c := ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.closed || c.dead || c.out.size > replyLimit {
		return true
	}
	c.out.method(ch.number, &wire.BasicDeliver{
		ConsumerTag: k.tag, DeliveryTag: ch.nextTag, Exchange: m.Exchange, RoutingKey: m.Keys[0],
	})
	c.out.content(ch.number, c.frameMax, m.Properties, m)
	c.wakeWriter()
	return true
}

// consumeReplies handles basic.consume from replyQueue.
func (ch *channel) consumeReplies(m *wire.BasicConsume) error {
	switch {
	case ch.hasConsumer(m.ConsumerTag):
		return tagInUse(m.ConsumerTag)
	case !m.NoAck:
		return wire.Errorf(wire.PreconditionFailed, "reply consumer cannot acknowledge")
	case ch.reply != nil:
		return wire.Errorf(wire.PreconditionFailed, "reply consumer already set")
	}
	k := &replyConsumer{channel: ch, tag: m.ConsumerTag, name: replyPrefix + random() + "." + random() + "=="}
	if k.tag == "" {
		k.tag = consumerTag()
	}
	ch.reply = k
	if !m.NoWait {
		ch.send(&wire.BasicConsumeOk{ConsumerTag: k.tag})
	}
	ch.conn.server.replies.add(k)
	return nil
}

// dropReply ends the channel's consumer of replies, if it has one.
func (ch *channel) dropReply() {
	if ch.reply != nil {
		ch.conn.server.replies.remove(ch.reply)
		ch.reply = nil
	}
}

// setReplyTo puts the channel's own name into reply-to.
func (ch *channel) setReplyTo(properties []byte) ([]byte, error) {
	if ch.reply == nil {
		return nil, wire.Errorf(wire.PreconditionFailed, "fast reply consumer does not exist")
	}
	p, err := wire.ParseProperties(properties)
	if err != nil {
		return nil, err
	}
	p.ReplyTo = ch.reply.name
	return p.AppendTo(nil), nil
}

// declareReplyQueue is queue.declare of replyQueue or of a channel's own name, by
// which one who replies can find out whether somebody still waits.
func (ch *channel) declareReplyQueue(name string) (vhost.QueueOK, error) {
	name = strings.NewReplacer("\r", "", "\n", "").Replace(name)
	if name != replyQueue && !ch.conn.server.replies.has(name) {
		return vhost.QueueOK{}, wire.Errorf(wire.NotFound, "no queue '%s' in vhost '%s'", name, ch.conn.host.Name())
	}
	return vhost.QueueOK{Name: name, Consumers: 1}, nil
}
