package vhost

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// unbound is how many bindings of what was deleted are removed at once under the topology lock. It takes a few milliseconds.
const unbound = 1000

// errLeaving is returned by a change that cannot be made before all bindings are removed of what had the same name.
var errLeaving = errors.New("its bindings are being removed")

// leaving is a queue or an exchange that was deleted, and that bindings still lead to or from.
type leaving struct {
	key      string             // of its definition
	bindings iter.Seq[*binding] // those that are left
}

// change makes a change of the topology as a unit of work. What it deletes loses its bindings in parts, so that
// nobody waits long for the lock; the first of them belongs to the same unit of work. A crash in between leaves definitions
// of bindings to or from what is not there, and recovery drops them.
//
// The unit of work ends under the lock, so that the store has changes in the order in which they were made.
func (h *Host) change(f func(*store.Tx) error) (written, error) {
	for {
		tx := h.store.Begin()
		h.mu.Lock()
		err := f(tx)
		done := make(written, 1)
		if err == nil {
			h.unbindSome(tx)
			tx.Commit(done, 0)
		} else {
			tx.End()
		}
		h.mu.Unlock()
		h.unbindAll()
		if !errors.Is(err, errLeaving) {
			return done, err
		}
	}
}

// changed is a change that is durable when it returns.
func (h *Host) changed(ctx context.Context, f func(*store.Tx) error) error {
	done, err := h.change(f)
	if err != nil {
		return err
	}
	return done.wait(ctx)
}

// unbindAll removes all bindings of what was deleted.
func (h *Host) unbindAll() {
	for more := true; more; {
		h.mu.RLock()
		more = len(h.left) > 0
		h.mu.RUnlock()
		if more {
			tx := h.store.Begin()
			h.mu.Lock()
			h.unbindSome(tx)
			tx.End()
			h.mu.Unlock()
		}
	}
}

// unbindSome removes some bindings of what was deleted, as a part of tx.
func (h *Host) unbindSome(tx *store.Tx) {
	for n := unbound; n > 0 && len(h.left) > 0; {
		some := slices.Collect(first(n, h.left[0].bindings))
		for _, b := range some {
			h.removeBinding(tx, b)
		}
		if n -= len(some); n > 0 {
			h.left = slices.Delete(h.left, 0, 1)
		}
	}
}

func first[V any](n int, all iter.Seq[V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for v := range all {
			if n--; n < 0 || !yield(v) {
				return
			}
		}
	}
}

// leave has the bindings removed of what has the definition of that key.
func (h *Host) leave(key string, bindings iter.Seq[*binding]) {
	h.left = append(h.left, leaving{key, bindings})
}

// leaves tells whether something has left that key and not all of its bindings are removed.
func (h *Host) leaves(key string) bool {
	return slices.ContainsFunc(h.left, func(l leaving) bool { return l.key == key })
}

// written is told when a unit of work is durable.
type written chan error

// Committed implements store.Waiter.
func (w written) Committed(_ uint64, err error) { w <- err }

func (w written) wait(ctx context.Context) error {
	var err error
	select {
	case err = <-w:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return wire.Errorf(wire.InternalError, "%v", err)
	}
	return nil
}
