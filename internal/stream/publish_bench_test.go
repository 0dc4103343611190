package stream

import (
	"testing"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Publishing with confirms, 256 in flight, as internal/vhost measures it for queues.
func BenchmarkPublish(b *testing.B) {
	s := newBench(b, nil)
	defer s.shut()
	const inFlight = 256
	w, waiting := make(written, inFlight), 0
	m := text(string(make([]byte, 100)))
	b.ReportAllocs()
	for b.Loop() {
		tx := s.store.Begin()
		s.Enqueue(tx, m)
		tx.Commit(w, 0)
		if waiting++; waiting == inFlight {
			s.must(<-w)
			waiting--
		}
	}
	for ; waiting > 0; waiting-- {
		s.must(<-w)
	}
}

// Reading what is on disk only, with credit for 1000 and acks of every delivery.
func BenchmarkConsumeFromDisk(b *testing.B) {
	s := newBench(b, nil)
	defer func() { s.shut() }()
	const n = 100_000
	for range n / 1000 {
		s.fill(1000)
	}
	s.restart()
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		k := &counter{left: min(n, b.N-done), done: make(chan struct{})}
		done += k.left
		c := &queue.Consumer{Sink: k, Prefetch: 1000, Arguments: wire.Table{from("first")}}
		s.must(s.Consume(c))
		<-k.done
		c.Queue().Cancel(c)
	}
}

// counter acknowledges from another goroutine, as a session does.
type counter struct {
	left, unacked int
	done          chan struct{}
}

func (k *counter) Deliver(_ *queue.Consumer, d queue.Delivery) bool {
	if k.left == 0 {
		return false
	}
	_ = d.Properties()
	if k.unacked++; k.unacked == 500 {
		k.unacked = 0
		entries := make([]*queue.Entry, 500)
		go d.Queue.Ack(nil, entries...)
	}
	if k.left--; k.left == 0 {
		close(k.done)
	}
	return true
}

func (k *counter) QueueGone(*queue.Consumer) {}
func (k *counter) TimedOut(*queue.Consumer)  {}
