package session

import (
	"encoding/binary"
	"strings"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// publish handles basic.publish, whose content is complete. The order of the checks
// is RabbitMQ's.
func (ch *channel) publish() error {
	p := &ch.content
	if p.immediate {
		return wire.Errorf(wire.NotImplemented, "immediate=true")
	}
	if err := p.tooLarge(); err != nil {
		return err
	}
	ch.conn.publishing.Store(true)
	defer ch.conn.publishing.Store(false)
	ch.conn.awaitAlarm()
	if err := ch.mayPublish(p.exchange); err != nil {
		return err
	}
	m, err := ch.message(p)
	if err == nil {
		err = ch.mayPublishAs(m)
	}
	if err != nil {
		if missing := ch.conn.host.CheckPublish(p.exchange); missing != nil {
			return missing
		}
		return err
	}
	ch.publishes.Add(1)
	if ch.transaction != nil {
		if err := ch.transaction.publish(ch.conn.host, m, p.mandatory); err != nil {
			return err
		}
		ch.uncommitted.messages.Add(1)
		return ch.conn.hold(sizeOf(m))
	}
	var waiter store.Waiter
	if ch.confirming {
		ch.published++
		waiter = ch
	}
	outcome, err := ch.route(m, waiter, ch.published)
	if err != nil || outcome == vhost.Routed {
		return err
	}
	c := ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if outcome == vhost.Unroutable {
		ch.unroutable(m, p.mandatory)
	}
	if ch.confirming {
		ch.resolve(ch.published, outcome != vhost.Refused)
	}
	c.wakeWriter()
	c.awaitRoom()
	return nil
}

// message makes a message of the content.
func (ch *channel) message(p *content) (*message.Message, error) {
	properties, body := p.bytes[:p.properties:p.properties], p.bytes[p.properties:]
	if len(properties) >= 2 && binary.BigEndian.Uint16(properties)&wire.FlagReplyTo != 0 {
		view, err := wire.ViewProperties(properties)
		if err == nil && string(view.ReplyTo) == replyQueue {
			properties, err = ch.setReplyTo(properties)
		}
		if err != nil {
			return nil, err
		}
	}
	return message.New(p.exchange, p.key, properties, body)
}

// route publishes m. The waiter is told of it later if, and only if, it is routed.
func (ch *channel) route(m *message.Message, w store.Waiter, tag uint64) (vhost.Outcome, error) {
	if isReply(m) {
		if !ch.conn.server.replies.deliver(m) {
			return vhost.Unroutable, nil
		}
		if w != nil {
			w.Committed(tag, nil)
		}
		return vhost.Routed, nil
	}
	return ch.conn.host.Publish(m, w, tag)
}

// isReply tells whether m goes to a consumer of replies, past all queues.
func isReply(m *message.Message) bool {
	return m.Exchange == "" && strings.HasPrefix(m.Keys[0], replyPrefix)
}

// unroutable gives m back if it is mandatory. With conn.mu held.
func (ch *channel) unroutable(m *message.Message, mandatory bool) {
	c := ch.conn
	if !mandatory {
		ch.counts.DropUnroutable++
		return
	}
	ch.counts.ReturnUnroutable++
	ch.confirms.flush() // what was confirmed before is read before; some clients count acks up to a return
	c.out.method(ch.number, &wire.BasicReturn{ReplyCode: wire.NoRoute, ReplyText: "NO_ROUTE", Exchange: m.Exchange, RoutingKey: m.Keys[0]})
	c.out.content(ch.number, c.frameMax, m.Properties, m)
}

// Committed confirms a message. It is called by whoever finds it durable.
func (ch *channel) Committed(tag uint64, err error) {
	c := ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	ch.resolve(tag, err == nil)
	c.wakeWriter()
}

// resolve records the outcome of a message for its publisher. With conn.mu held.
func (ch *channel) resolve(tag uint64, ack bool) {
	if ch.closed {
		return
	}
	ch.counts.Confirm++
	ch.confirms.resolve(tag, ack)
	if !ch.dirty {
		ch.dirty = true
		ch.conn.dirty = append(ch.conn.dirty, ch)
	}
}

// flushConfirms writes the confirms that were gathered. With conn.mu held.
func (ch *channel) flushConfirms() {
	ch.dirty = false
	if !ch.closed {
		ch.confirms.flush()
	}
}

// emitConfirm writes a confirm. With conn.mu held.
func (ch *channel) emitConfirm(tag uint64, multiple, ack bool) {
	o := &ch.conn.out
	b, mark := wire.BeginMethod(o.begin(), ch.number)
	if ack {
		m := wire.BasicAck{DeliveryTag: tag, Multiple: multiple}
		b = m.AppendTo(b)
	} else {
		m := wire.BasicNack{DeliveryTag: tag, Multiple: multiple}
		b = m.AppendTo(b)
	}
	o.end(wire.EndMethod(b, mark))
}

// selectConfirm puts the channel into confirm mode.
func (ch *channel) selectConfirm(m *wire.ConfirmSelect) error {
	if ch.transaction != nil {
		return wire.Errorf(wire.PreconditionFailed, "cannot switch from tx to confirm mode")
	}
	ch.conn.mu.Lock()
	if !ch.confirming {
		ch.confirming, ch.unconfirmed = true, ch.publishes.Load()
	}
	ch.conn.mu.Unlock()
	if !m.NoWait {
		ch.send(&wire.ConfirmSelectOk{})
	}
	return nil
}
