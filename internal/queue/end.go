package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/store"
)

// Purge drops the ready messages, those that wait for their next delivery, and the dead
// letters that an at-least-once queue still has. It returns how many they were, once
// that is durable.
func (q *Queue) Purge(ctx context.Context) (int, error) {
	tx := q.store.Begin()
	q.mu.Lock()
	n := q.ready() + len(q.delays.heap)
	if q.settings.AtLeastOnce {
		n += q.forgetDead(tx)
	}
	all := append(q.returned.clear(), q.delays.clear()...)
	for _, b := range q.levels {
		all = append(all, b.purge(tx)...)
	}
	for _, e := range all {
		q.remove(tx, e)
	}
	q.expire(tx, q.clock.Now())
	q.mu.Unlock()
	return n, tx.Wait(ctx)
}

// ErrDeleted is returned for a queue that has been deleted meanwhile.
var ErrDeleted = errors.New("queue: deleted")

// Delete ends the queue as a part of tx: its messages are dropped, its consumers are
// told. It returns how many messages were ready. check, called locked, may refuse.
func (q *Queue) Delete(tx *store.Tx, check func(Counts) error) (int, error) {
	q.mu.Lock()
	if q.deleted {
		q.mu.Unlock()
		return 0, ErrDeleted
	}
	n := q.ready()
	if check != nil {
		if err := check(q.counts()); err != nil {
			q.mu.Unlock()
			return 0, err
		}
	}
	gone := slices.Clone(q.consumers)
	q.end()
	for _, b := range q.levels {
		tx.DropQueue(b.id)
	}
	q.mu.Unlock()
	for _, c := range gone {
		c.Sink.QueueGone(c)
	}
	return n, nil
}

// Close ends the queue in memory only: what is stored stays. Close the store first.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.deleted {
		q.end()
	}
}

func (q *Queue) end() {
	q.deleted = true
	q.consumers, q.line, q.active, q.heir, q.outbox, q.held = nil, nil, nil, nil, nil, nil
	for _, b := range q.levels {
		b.clear()
	}
	q.returned.clear()
	q.delays.clear()
	q.holders = nil
	for _, timer := range []clock.Timer{q.expiry, q.retry, q.idle, q.lapse, q.delays.timer} {
		if timer != nil {
			timer.Stop()
		}
	}
}
