package session

import (
	"context"
	"slices"
	"sync"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// transaction is what a channel in tx mode has gathered since the last commit. It is
// atomic as far as RabbitMQ's is: a crash in the middle of a commit may leave a part
// of it.
type transaction struct {
	messages []outgoing
	settled  []settled
}

type outgoing struct {
	message   *message.Message
	mandatory bool
}

type settled struct {
	verdict verdict
	list    []unacked
}

func (t *transaction) publish(h *vhost.Host, m *message.Message, mandatory bool) error {
	if err := h.CheckPublish(m.Exchange); err != nil {
		return err
	}
	t.messages = append(t.messages, outgoing{m, mandatory})
	return nil
}

func (t *transaction) settle(v verdict, list []unacked) {
	t.settled = append(t.settled, settled{v, slices.Clone(list)})
}

// release appends to list what was settled but not committed.
func (t *transaction) release(list []unacked) []unacked {
	for _, s := range t.settled {
		list = append(list, s.list...)
	}
	return list
}

func (ch *channel) selectTx() error {
	if ch.confirming {
		return wire.Errorf(wire.PreconditionFailed, "cannot switch from confirm to tx mode")
	}
	if ch.transaction == nil {
		ch.transaction = &transaction{}
		ch.conn.mu.Lock()
		ch.transactional = true
		ch.conn.mu.Unlock()
	}
	ch.send(&wire.TxSelectOk{})
	return nil
}

func notTransactional() error {
	return wire.Errorf(wire.PreconditionFailed, "channel is not transactional")
}

// commit publishes and settles what was gathered, and answers when it is durable.
func (ch *channel) commit() error {
	t := ch.transaction
	if t == nil {
		return notTransactional()
	}
	ch.transaction = &transaction{}
	c := ch.conn
	c.publishing.Store(true)
	defer c.publishing.Store(false)
	all := newGathering()
	for _, o := range t.messages {
		all.add()
		outcome, err := ch.route(o.message, all, 0)
		switch {
		case err == nil && outcome == vhost.Routed:
			continue
		case outcome == vhost.Refused:
			all.Committed(0, wire.Errorf(wire.PreconditionFailed, "partial tx completion"))
			continue
		default:
			c.mu.Lock()
			ch.unroutable(o.message, o.mandatory)
			c.awaitRoom()
			c.mu.Unlock()
		}
		all.Committed(0, nil)
	}
	for _, s := range t.settled {
		c.apply(s.verdict, s.list)
	}
	ch.resumeHeld()
	if err := all.wait(c.ctx); err != nil {
		return err
	}
	ch.send(&wire.TxCommitOk{})
	return nil
}

func (ch *channel) rollback() error {
	t := ch.transaction
	if t == nil {
		return notTransactional()
	}
	ch.transaction = &transaction{}
	ch.conn.mu.Lock()
	ch.unacked.putBack(t.release(nil))
	ch.conn.mu.Unlock()
	ch.send(&wire.TxRollbackOk{})
	return nil
}

// gathering waits until a number of messages are durable.
type gathering struct {
	mu   sync.Mutex
	left int // and one for the waiting itself
	err  error
	done chan struct{}
}

func newGathering() *gathering { return &gathering{left: 1, done: make(chan struct{})} }

func (g *gathering) add() {
	g.mu.Lock()
	g.left++
	g.mu.Unlock()
}

// Committed says that one of the messages is durable, or why it is not.
func (g *gathering) Committed(_ uint64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
	}
	if g.left--; g.left == 0 {
		close(g.done)
	}
}

// wait returns the first error.
func (g *gathering) wait(ctx context.Context) error {
	g.Committed(0, nil)
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
