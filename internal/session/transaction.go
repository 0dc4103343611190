package session

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// transaction is what a channel in tx mode has gathered since the last commit. It is
// committed as one unit of work: a crash leaves all of it or nothing. RabbitMQ promises
// that for a single queue only.
type transaction struct {
	messages []outgoing
	size     int // of the messages, see sizeOf
	settled  []settled
}

// uncommitted is how much a transaction has gathered, for others to look at.
type uncommitted struct{ messages, acks atomic.Uint32 }

func (u *uncommitted) reset() {
	u.messages.Store(0)
	u.acks.Store(0)
}

type outgoing struct {
	vhost.Publication
	mandatory bool
}

type settled struct {
	verdict verdict
	list    []unacked
}

func (t *transaction) publish(h *vhost.Host, m *message.Message, mandatory bool) error {
	p := vhost.Publication{Message: m}
	if !isReply(m) {
		var err error
		if p, err = h.Route(m); err != nil {
			return err
		}
	}
	t.messages = append(t.messages, outgoing{p, mandatory})
	t.size += sizeOf(m)
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

// commit publishes and settles what was gathered, and answers when it is durable. When a
// queue refuses one of the messages the rest is done all the same, as in RabbitMQ. When one
// is gone nothing is done.
func (ch *channel) commit() error {
	t := ch.transaction
	if t == nil {
		return notTransactional()
	}
	ch.transaction = &transaction{}
	ch.uncommitted.reset()
	c := ch.conn
	c.let(t.size)
	c.publishing.Store(true)
	defer c.publishing.Store(false)
	for _, o := range t.messages {
		if err := c.host.CheckQueues(o.Publication); err != nil {
			return err
		}
	}
	tx := c.host.Begin()
	done := ch.perform(tx, t)
	durable := make(durability, 1)
	tx.Commit(durable, 0)
	for _, q := range done.queues {
		q.Settle()
	}
	ch.resumeHeld()
	for _, o := range done.unroutable {
		c.mu.Lock()
		ch.unroutable(o.Message, o.mandatory)
		c.wakeWriter()
		c.awaitRoom()
		c.mu.Unlock()
	}
	if err := durable.wait(c.ctx); err != nil {
		return err
	}
	if done.refused {
		return wire.Errorf(wire.PreconditionFailed, "partial tx completion")
	}
	ch.send(&wire.TxCommitOk{})
	return nil
}

// performed is what became of a transaction.
type performed struct {
	queues     []interface{ Settle() } // that it has changed
	unroutable []outgoing
	refused    bool // a queue has refused a message
}

// perform publishes and settles what was gathered, as a part of tx.
func (ch *channel) perform(tx *store.Tx, t *transaction) (p performed) {
	for _, o := range t.messages {
		outcome, reached := ch.publishIn(tx, o.Publication)
		for _, q := range reached {
			p.queues = append(p.queues, q)
		}
		p.refused = p.refused || outcome == vhost.Refused
		if outcome == vhost.Unroutable {
			p.unroutable = append(p.unroutable, o)
		}
	}
	for _, s := range t.settled {
		ch.conn.eachQueue(s.list, func(q queue.Source, entries []*queue.Entry) {
			s.verdict.apply(tx, q, entries)
			p.queues = append(p.queues, q)
		})
	}
	return p
}

// publishIn publishes a message of a transaction as a part of tx.
func (ch *channel) publishIn(tx *store.Tx, p vhost.Publication) (vhost.Outcome, []queue.Target) {
	if isReply(p.Message) {
		if ch.conn.server.replies.deliver(p.Message) {
			return vhost.Routed, nil
		}
		return vhost.Unroutable, nil
	}
	return ch.conn.host.PublishIn(tx, p)
}

func (ch *channel) rollback() error {
	t := ch.transaction
	if t == nil {
		return notTransactional()
	}
	ch.transaction = &transaction{}
	ch.uncommitted.reset()
	ch.conn.let(t.size)
	ch.conn.mu.Lock()
	ch.unacked.putBack(t.release(nil))
	ch.conn.mu.Unlock()
	ch.send(&wire.TxRollbackOk{})
	return nil
}

// durability tells when a unit of work is durable.
type durability chan error

// Committed says that it is, or why not.
func (d durability) Committed(_ uint64, err error) { d <- err }

func (d durability) wait(ctx context.Context) error {
	select {
	case err := <-d:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
