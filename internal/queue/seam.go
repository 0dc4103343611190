package queue

import (
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

// Target is a queue of any type as those see it who have a message for it. The session
// and the other queues know queues as Target and Source only; what a queue is beyond
// that is between it and its virtual host.
type Target interface {
	// Enqueue adds m as a part of tx. Call Settle once tx has ended.
	Enqueue(tx *store.Tx, m *message.Message) Outcome
	// Settle does what follows from a unit of work that has ended. Call it holding none.
	Settle()
}

// Source is a queue of any type as a consumer sees it.
type Source interface {
	// Name is the queue's name.
	Name() string
	// Cancel removes a consumer, which keeps what it has unacknowledged. It returns
	// whether that was the queue's last one.
	Cancel(c *Consumer) (last bool)
	// Resume says that a consumer whose Sink has refused a delivery can take one again.
	Resume(c *Consumer)
	// Ack, Reject and Requeue settle entries that have been delivered, each once, as a
	// part of tx. failed tells a failed delivery from one that just did not happen.
	// Call Settle once tx has ended.
	Ack(tx *store.Tx, entries ...*Entry)
	Reject(tx *store.Tx, failed bool, entries ...*Entry)
	Requeue(tx *store.Tx, failed bool, entries ...*Entry)
	// Settle does what follows from a unit of work that has ended. Call it holding none.
	Settle()
}
