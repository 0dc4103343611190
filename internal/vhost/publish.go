package vhost

import (
	"slices"
	"sync"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/route"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Outcome is what became of a published message.
type Outcome int

// The outcomes of Publish.
const (
	// Routed: it is in the queues, or with a consumer; its waiter is told when it is
	// as durable as it asked to be.
	Routed Outcome = iota
	// Unroutable: no queue is there for it. Its waiter is not told anything.
	Unroutable
	// Refused: one of the queues is full and has refused it, others may have it. Its
	// waiter is not told anything.
	Refused
)

// CheckPublish tells whether the exchange can be published to; the error says why not.
func (h *Host) CheckPublish(exchange string) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, err := h.publishable(exchange)
	return err
}

func (h *Host) publishable(exchange string) (*Exchange, error) {
	x, err := h.exchange(exchange)
	if err == nil && x.Internal {
		err = wire.Errorf(wire.AccessRefused, "cannot publish to internal %s", h.exchangeText(exchange))
	}
	return x, err
}

// Publish routes m and puts it into the queues. If w is not nil it is told by tag when
// that is durable.
func (h *Host) Publish(m *message.Message, w store.Waiter, tag uint64) (Outcome, error) {
	r := routings.Get().(*routing)
	defer r.release()
	tx := h.store.Begin()
	h.mu.RLock()
	x, err := h.publishable(m.Exchange)
	if err == nil && x.pending != nil {
		_, err = m.Delay()
	}
	if err == nil {
		h.route(x, m, r)
	}
	h.mu.RUnlock()
	if err != nil {
		tx.End()
		return Unroutable, err
	}
	x.publishedIn.Add(1)
	x.publishedOut.Add(uint64(len(r.queues)))
	outcome := h.enqueue(tx, m, r)
	if outcome == Routed && w != nil {
		tx.Commit(w, tag)
	} else {
		tx.End()
	}
	for _, q := range r.queues {
		q.Settle()
	}
	return outcome, nil
}

// enqueue puts m where it has been routed to.
func (h *Host) enqueue(tx *store.Tx, m *message.Message, r *routing) Outcome {
	outcome := Unroutable
	if r.delay(tx, m, h.clock.Now()) {
		outcome = Routed
	}
	for _, q := range r.queues {
		q.published.Add(1)
		switch q.Enqueue(tx, m) {
		case queue.Rejected:
			outcome = Refused
		case queue.Accepted:
			if outcome != Refused {
				outcome = Routed
			}
		}
	}
	return outcome
}

// DeadLetter publishes m, which has just died for reason, to its exchange. Queues that
// it would reach in a cycle without a rejection are left out.
// Source: https://www.rabbitmq.com/docs/dlx#cycles.
func (h *Host) DeadLetter(tx *store.Tx, reason string, m *message.Message) (reached []queue.Target, taken bool) {
	r := routings.Get().(*routing)
	defer r.release()
	h.mu.RLock()
	if x := h.exchanges[m.Exchange]; x != nil {
		h.route(x, m, r)
	}
	h.mu.RUnlock()
	taken = true
	delayed := r.delay(tx, m, h.clock.Now())
	for _, q := range r.queues {
		if m.Deaths.Cycle(q.Name(), reason) {
			h.logCycle(q, m)
			continue
		}
		taken = q.Enqueue(tx, m) == queue.Accepted && taken
		reached = append(reached, q)
	}
	return reached, taken && (delayed || len(reached) > 0)
}

// release sends a message on its way that was pending in x, as a part of tx.
func (h *Host) release(tx *store.Tx, x *Exchange, m *message.Message) (reached []queue.Target) {
	r := routings.Get().(*routing)
	defer r.release()
	if d, err := m.Delay(); err == nil {
		m = m.Delayed(d)
	}
	h.mu.RLock()
	h.route(x, m, r)
	h.mu.RUnlock()
	for _, q := range r.queues {
		q.Enqueue(tx, m)
		reached = append(reached, q)
	}
	return reached
}

func (h *Host) logCycle(q *Queue, m *message.Message) {
	source := m.Deaths.Deaths[0].Queue
	if _, logged := h.cycles.LoadOrStore([2]string{source, q.Name()}, true); !logged {
		h.log.Warn("a message was dropped because it would go round in a cycle of queues without being rejected; this is said once",
			"from", source, "to", q.Name(), "exchange", m.Exchange)
	}
}

// routing collects where a message goes.
type routing struct {
	queues    []*Queue
	exchanges []*Exchange // visited or to be visited
	delaying  []*Exchange // of these, which are to delay the message
	add       func(destination)
	found     bool // the exchange at hand has led somewhere
}

var routings = sync.Pool{New: func() any {
	r := &routing{}
	r.add = r.reach
	return r
}}

func (r *routing) release() {
	clear(r.queues)
	clear(r.exchanges)
	clear(r.delaying)
	r.queues, r.exchanges, r.delaying = r.queues[:0], r.exchanges[:0], r.delaying[:0]
	routings.Put(r)
}

func (r *routing) reach(d destination) {
	if d.gone() {
		return
	}
	r.found = true
	switch {
	case d.queue == nil:
		if !slices.Contains(r.exchanges, d.exchange) {
			r.exchanges = append(r.exchanges, d.exchange)
		}
	case !slices.Contains(r.queues, d.queue):
		r.queues = append(r.queues, d.queue)
	}
}

// delay gives m to the exchanges that delay it, and tells whether there are any.
func (r *routing) delay(tx *store.Tx, m *message.Message, now time.Time) bool {
	for _, x := range r.delaying {
		d, _ := m.Delay()
		x.pending.Add(tx, m, now.Add(d))
	}
	return len(r.delaying) > 0
}

// route finds the queues of m from x on: by all its keys, over exchanges bound to
// exchanges, and over the alternate exchange of each that leads nowhere.
func (h *Host) route(x *Exchange, m *message.Message, r *routing) {
	headers := func() route.Headers { return lookup(m.Headers()) }
	r.exchanges = append(r.exchanges, x)
	for visited := 0; visited < len(r.exchanges); {
		x := r.exchanges[visited]
		visited++
		if x.delays(m) {
			r.delaying = append(r.delaying, x)
			continue
		}
		r.found = false
		if x.single() {
			x.matcher.Match(x.hashed(m, headers), headers, r.add)
		} else {
			h.match(x, m.Keys, headers, r)
			h.match(x, m.BCC, headers, r)
		}
		if r.found || x.alternate == "" {
			continue
		}
		if a := h.exchanges[x.alternate]; a != nil {
			r.reach(destination{exchange: a})
		}
	}
}

func (h *Host) match(x *Exchange, keys []string, headers func() route.Headers, r *routing) {
	for _, key := range keys {
		if x.Name == "" {
			if q := h.queues[key]; q != nil {
				r.reach(destination{queue: q})
			}
			continue
		}
		x.matcher.Match(key, headers, r.add)
	}
}

// lookup finds headers by name; of two with one name the last counts. A timestamp is
// looked at in milliseconds, as RabbitMQ 4 does, so it never equals that of a binding,
// which is in seconds.
func lookup(t wire.Table) route.Headers {
	return func(name string) (any, bool) {
		for _, f := range slices.Backward(t) {
			if f.Name != name {
				continue
			}
			if at, ok := f.Value.(wire.Timestamp); ok {
				return at * 1000, true
			}
			return f.Value, true
		}
		return nil, false
	}
}
