package vhost

import (
	"slices"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Begin opens a unit of work of the store for messages that are published or settled together.
func (h *Host) Begin() *store.Tx { return h.store.Begin() }

// Publication is a message that has been routed and waits for its transaction to be committed.
type Publication struct {
	Message  *message.Message
	queues   []*Queue
	delaying []*Exchange // that are to delay it
}

// Route finds the queues of a message that is published in a transaction. As in RabbitMQ, it goes to these, whatever is
// bound until the commit.
func (h *Host) Route(m *message.Message) (Publication, error) {
	r := routings.Get().(*routing)
	defer r.release()
	h.mu.RLock()
	defer h.mu.RUnlock()
	x, err := h.publishable(m.Exchange)
	if err == nil && x.pending != nil {
		_, err = m.Delay()
	}
	if err != nil {
		return Publication{}, err
	}
	h.route(x, m, r)
	x.publishedIn.Add(1)
	x.publishedOut.Add(uint64(len(r.queues)))
	return Publication{Message: m, queues: slices.Clone(r.queues), delaying: slices.Clone(r.delaying)}, nil
}

// CheckQueues tells whether the queues of a publication are still there. The error, with which RabbitMQ 4.3 closes the
// connection, names one that is not.
func (h *Host) CheckQueues(p Publication) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, q := range p.queues {
		if h.queues[q.Name()] == nil {
			return wire.Errorf(wire.ResourceError, "failed to deliver message: {not_found,\n                               {resource,<<\"%s\">>,queue,<<\"%s\">>}}", h.Name(), q.Name())
		}
	}
	return nil
}

// PublishIn puts a message into its queues, as a part of tx, and returns them. Settle them once tx has ended. A queue that
// has been replaced by another one of its name refuses it.
func (h *Host) PublishIn(tx *store.Tx, p Publication) (Outcome, []queue.Target) {
	r := routings.Get().(*routing)
	defer r.release()
	replaced := false
	h.mu.RLock()
	for _, q := range p.queues {
		if h.queues[q.Name()] == q {
			r.queues = append(r.queues, q)
		} else {
			replaced = true
		}
	}
	for _, x := range p.delaying {
		if h.exchanges[x.Name] == x {
			r.delaying = append(r.delaying, x)
		}
	}
	h.mu.RUnlock()
	outcome := h.enqueue(tx, p.Message, r)
	if replaced {
		outcome = Refused
	}
	touched := make([]queue.Target, len(r.queues))
	for i, q := range r.queues {
		touched[i] = q
	}
	return outcome, touched
}
