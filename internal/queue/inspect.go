package queue

import "slices"

// Served counts what a queue has given out since the broker was started.
type Served struct {
	Deliver, DeliverNoAck uint64 // to consumers, with and without acknowledgement
	Get, GetNoAck         uint64 // by basic.get, with and without acknowledgement
	GetEmpty              uint64 // basic.get that found nothing
	Redeliver             uint64 // of all these, with the redelivered flag
	Ack                   uint64
}

// delivered counts that e goes to a consumer.
func (s *Served) delivered(e *Entry, noAck bool) {
	if noAck {
		s.DeliverNoAck++
	} else {
		s.Deliver++
	}
	s.countAgain(e)
}

// got counts that e is the answer to a get.
func (s *Served) got(e *Entry, noAck bool) {
	if noAck {
		s.GetNoAck++
	} else {
		s.Get++
	}
	s.countAgain(e)
}

func (s *Served) countAgain(e *Entry) {
	if e.redelivered {
		s.Redeliver++
	}
}

// Info is what a queue looks like at one moment.
type Info struct {
	Counts
	Served Served

	// ReadyBytes and UnackedBytes are the lengths of the bodies, in a quorum queue with the properties. Of a ready message
	// that is on disk only, the whole record counts.
	ReadyBytes, UnackedBytes int64
	// InMemory is how many ready messages are in memory, and Memory about how much
	// they take, in bytes.
	InMemory int
	Memory   int64
	// Stored is how many messages are written in the store.
	Stored int
	// Returned is how many of the ready messages came back from consumers.
	Returned int
	// DeadLetters is how many messages wait to be dead-lettered.
	DeadLetters int
	// Priorities are the ready messages by priority, without those that came back.
	Priorities map[int]int
	// Waiting tells whether a consumer could take another message now.
	Waiting bool
	// Exclusive is the one consumer that has the queue for itself, and Active the one
	// that a queue with a single active consumer serves, or nil.
	Exclusive, Active *Consumer
}

// Inspect returns what the queue looks like. It reads nothing from disk.
func (q *Queue) Inspect() Info {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := Info{
		Counts: q.counts(),
		Served: q.served, ReadyBytes: q.readyBytes(), UnackedBytes: q.lent,
		Returned: q.returned.len(), InMemory: q.returned.len(), DeadLetters: len(q.outbox) + len(q.held),
		Waiting: len(q.line) > 0, Active: q.active,
	}
	for _, b := range q.levels {
		i.InMemory += b.head.len() + b.tail.len()
		i.Memory += b.headBytes + b.tailBytes
		if n := b.len(); n > 0 {
			if i.Priorities == nil {
				i.Priorities = map[int]int{}
			}
			i.Priorities[int(b.id-q.id)] = n
		}
		i.Stored += int(q.store.Counters(b.id).Messages)
	}
	if len(q.consumers) == 1 && q.consumers[0].Exclusive {
		i.Exclusive = q.consumers[0]
	}
	return i
}

// Consumers are the queue's consumers in the order of their subscription.
func (q *Queue) Consumers() []*Consumer {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.consumers)
}
