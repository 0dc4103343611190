package session

import (
	"errors"
	"sync/atomic"

	"github.com/dormousemq/dormouse/internal/wire"
)

// state is where a channel is in its life.
type state int

const (
	opening state = iota // channel.open has not come
	running
	closing // channel.close was sent, everything but its answer is discarded
)

// channel is one channel of a connection.
type channel struct {
	conn   *conn
	number uint16

	// The reader's. What others look at it changes with conn.mu held.
	state       state
	content     content
	lastQueue   string // that was declared, stands for ""
	prefetch    int    // of consumers to come
	confirming  bool   // confirm.select
	published   uint64 // messages, while confirming
	publishes   atomic.Uint64
	transaction *transaction
	uncommitted uncommitted
	reply       *replyConsumer
	permit      permit

	// Guarded by conn.mu.
	transactional bool
	closed        bool // takes no deliveries
	nextTag       uint64
	unacked       ledger
	consumers     map[string]*consumer
	limit         int         // most messages that all consumers together have, 0 for no limit
	held          []*consumer // by that limit
	deleting      bool        // a queue, and the client has not been told yet that it is gone
	gone          []string    // consumers that went with it
	confirms      confirms
	dirty         bool   // is in conn.dirty
	counts        Counts // but for Publish
	unconfirmed   uint64 // publishes before confirm.select
}

func newChannel(c *conn, number uint16) *channel {
	ch := &channel{conn: c, number: number, nextTag: 1, consumers: map[string]*consumer{}}
	ch.confirms = newConfirms(ch.emitConfirm)
	return ch
}

// frame handles a frame on the channel.
func (ch *channel) frame(f wire.Frame) error {
	if f.Type != wire.FrameMethod {
		id, had := ch.content.method, cap(ch.content.bytes)
		complete, err := ch.content.add(f)
		if err == nil {
			err = ch.conn.hold(cap(ch.content.bytes) - had)
		}
		if complete && err == nil {
			ch.conn.let(cap(ch.content.bytes))
			err = ch.method(id, nil)
			ch.content.reset()
		}
		return ch.fail(id, err)
	}
	id, args, _ := wire.SplitMethod(f.Payload)
	if err := ch.content.ready(); err != nil {
		return by(ch.content.method, err)
	}
	if id.HasContent() {
		return by(id, ch.content.begin(id, args, &ch.conn.names))
	}
	return ch.fail(id, ch.method(id, args))
}

// fail closes the channel for an exception that concerns only it. Other errors it
// returns, with the method that caused them.
func (ch *channel) fail(id wire.MethodID, err error) error {
	e, ok := errors.AsType[*wire.Exception](err)
	if !ok || e.IsConnection() {
		return by(id, err)
	}
	ch.conn.log.Warn("channel closed with an exception", "channel", ch.number, "exception", e.Error(), "method", id)
	ch.release()
	ch.state = closing
	ch.send(&wire.ChannelClose{ReplyCode: e.Code, ReplyText: e.ReplyText(), ClassID: id.Class(), MethodID: id.Method()})
	return nil
}

// send sends a method on the channel.
func (ch *channel) send(m wire.Method) { ch.conn.reply(ch.number, m) }

// method handles a method. Those with content have it in ch.content.
func (ch *channel) method(id wire.MethodID, args []byte) error {
	switch {
	case ch.state == running:
		return ch.dispatch(id, args)
	case ch.state == closing:
		return ch.methodWhileClosing(id)
	case id != wire.IDChannelOpen:
		return wire.Errorf(wire.ChannelError, "expected 'channel.open'")
	}
	ch.state = running
	ch.send(&wire.ChannelOpenOk{})
	return nil
}

func (ch *channel) methodWhileClosing(id wire.MethodID) error {
	switch id {
	case wire.IDChannelClose:
		ch.send(&wire.ChannelCloseOk{})
	case wire.IDChannelCloseOk:
		ch.forget()
	}
	return nil
}

// forget takes the channel from its connection.
func (ch *channel) forget() {
	ch.conn.mu.Lock()
	defer ch.conn.mu.Unlock()
	delete(ch.conn.channels, ch.number)
}

// dispatch handles a method on an open channel: first what comes with every
// message, without allocating.
func (ch *channel) dispatch(id wire.MethodID, args []byte) error {
	if id == wire.IDBasicAck {
		var m wire.BasicAck
		if err := m.Parse(args); err != nil {
			return err
		}
		return ch.ack(m.DeliveryTag, m.Multiple)
	}
	ch.conn.settleAcks()
	switch id {
	case wire.IDBasicPublish:
		return ch.publish()
	case wire.IDBasicNack:
		var m wire.BasicNack
		if err := m.Parse(args); err != nil {
			return err
		}
		return ch.settle(m.DeliveryTag, m.Multiple, nacked(m.Requeue))
	case wire.IDBasicReject:
		var m wire.BasicReject
		if err := m.Parse(args); err != nil {
			return err
		}
		return ch.settle(m.DeliveryTag, false, rejected(m.Requeue))
	}
	if id.HasContent() {
		return unimplemented()
	}
	m, err := parse(id, args)
	if err != nil {
		return err
	}
	return ch.handle(m)
}

func (ch *channel) handle(m wire.Method) error {
	switch m := m.(type) {
	case *wire.ChannelOpen:
		return wire.Errorf(wire.ChannelError, "second 'channel.open' seen")
	case *wire.ChannelClose:
		ch.release()
		ch.forget()
		ch.send(&wire.ChannelCloseOk{})
	case *wire.ChannelFlow:
		if !m.Active {
			return wire.Errorf(wire.NotImplemented, "active=false")
		}
		ch.send(&wire.ChannelFlowOk{Active: true})
	case *wire.AccessRequest:
		ch.send(&wire.AccessRequestOk{Ticket: 1})
	case *wire.ExchangeDeclare:
		return ch.declareExchange(m)
	case *wire.ExchangeDelete:
		return ch.deleteExchange(m)
	case *wire.ExchangeBind:
		return ch.bindExchange(m)
	case *wire.ExchangeUnbind:
		return ch.unbindExchange(m)
	case *wire.QueueDeclare:
		return ch.declareQueue(m)
	case *wire.QueueBind:
		return ch.bindQueue(m)
	case *wire.QueueUnbind:
		return ch.unbindQueue(m)
	case *wire.QueuePurge:
		return ch.purgeQueue(m)
	case *wire.QueueDelete:
		return ch.deleteQueue(m)
	case *wire.BasicQos:
		return ch.qos(m)
	case *wire.BasicConsume:
		return ch.consume(m)
	case *wire.BasicCancel:
		return ch.cancel(m)
	case *wire.BasicGet:
		return ch.get(m)
	case *wire.BasicRecover:
		if err := ch.recover(m.Requeue); err != nil {
			return err
		}
		ch.send(&wire.BasicRecoverOk{})
	case *wire.BasicRecoverAsync:
		return ch.recover(m.Requeue)
	case *wire.ConfirmSelect:
		return ch.selectConfirm(m)
	case *wire.TxSelect:
		return ch.selectTx()
	case *wire.TxCommit:
		return ch.commit()
	case *wire.TxRollback:
		return ch.rollback()
	default:
		return unimplemented()
	}
	return nil
}

func unimplemented() error { return wire.Errorf(wire.CommandInvalid, "unimplemented method") }

// release ends what the channel has with queues: its consumers are cancelled, what
// it has unacknowledged goes back.
func (ch *channel) release() {
	c := ch.conn
	ch.cancelAll()
	c.mu.Lock()
	if ch.closed {
		c.mu.Unlock()
		return
	}
	ch.closed = true
	c.past.Add(ch.countsNow())
	c.server.churn.channelsClosed.Add(1)
	ch.flushConfirms()
	unsettled := ch.unacked.takeAll(nil)
	c.mu.Unlock()
	if ch.transaction != nil {
		c.let(ch.transaction.size)
		unsettled = ch.transaction.release(unsettled)
	}
	ch.dropReply()
	c.apply(rejectedRequeue, unsettled) // a lost channel counts as a failed delivery
}

// cancelAll cancels the channel's consumers.
func (ch *channel) cancelAll() {
	ch.conn.mu.Lock()
	consumers := ch.consumers
	ch.consumers = nil
	ch.conn.mu.Unlock()
	for _, k := range consumers {
		ch.conn.host.Cancel(&k.Consumer)
	}
}
