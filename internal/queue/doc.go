// Package queue is one queue: its ready messages in order, its consumers, what is
// out with them unacknowledged, TTL, length limits and dead letters.
//
// A queue is a state machine behind one short lock and has no goroutine of its own.
// It is driven by who publishes, acknowledges or reads, and by one timer for the next
// expiry. Three rules keep it free of deadlocks:
//
//   - a unit of work of the store (store.Tx) is begun before the lock is taken,
//     never while it is held;
//   - under the lock only a Sink is called, and a Sink calls nothing back;
//   - dead letters are published after the lock is released: they wait in an outbox
//     that one goroutine at a time empties, so that they leave in order, and move to
//     their targets and out of this queue in one unit of work.
//
// Messages in waiting do not grow the memory: see backlog.
package queue
