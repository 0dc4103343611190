package stream

import "github.com/dormousemq/dormouse/internal/queue"

// Inspect returns what the stream looks like. It reads nothing from disk. The bytes are
// those of the records.
func (s *Stream) Inspect() queue.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := queue.Info{
		Counts:     queue.Counts{Ready: int(s.next - s.first), Consumers: len(s.readers)},
		Served:     queue.Served{Deliver: s.delivered.Load(), Ack: s.settled.Load()},
		ReadyBytes: int64(s.segments.bytes + s.current.bytes),
		InMemory:   len(s.tail.list), Memory: int64(s.tail.bytes),
		Stored: int(s.store.Counters(s.id).Messages),
	}
	for _, r := range s.readers {
		i.Waiting = i.Waiting || r.idle()
	}
	return i
}

// Consumers are the stream's consumers in the order of their subscription.
func (s *Stream) Consumers() []*queue.Consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*queue.Consumer, len(s.readers))
	for i, r := range s.readers {
		all[i] = r.consumer
	}
	return all
}

// idle tells whether the consumer could take another message now.
func (r *reader) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready()
}
