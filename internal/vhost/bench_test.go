package vhost

import (
	"log/slog"
	"strconv"
	"testing"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
)

// acker acknowledges in batches, as a client does.
type acker struct{ out []*queue.Entry }

func (a *acker) Deliver(_ *queue.Consumer, d queue.Delivery) bool {
	a.out = append(a.out, d.Entry)
	return true
}
func (*acker) QueueGone(*queue.Consumer) {}
func (*acker) TimedOut(*queue.Consumer)  {}

type confirms chan struct{}

func (c confirms) Committed(uint64, error) { c <- struct{}{} }

// A persistent message through an exchange to a consumer that acknowledges it, with its
// confirm, without the network.
func BenchmarkPublishConsumeConfirm(b *testing.B) {
	for name, kind := range map[string]string{"direct": "direct", "topic": "topic"} {
		b.Run(name, func(b *testing.B) {
			s, err := store.Open(b.TempDir(), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			hosts, err := Open(Options{Store: s, Clock: clock.Real(), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			defer hosts.Close()
			h := hosts.Host(Default)
			ctx := b.Context()
			if err := h.DeclareExchange(ctx, ExchangeDeclare{Name: "x", Type: kind, Durable: true}); err != nil {
				b.Fatal(err)
			}
			if _, err := h.DeclareQueue(ctx, nil, QueueDeclare{Name: "q", Durable: true}); err != nil {
				b.Fatal(err)
			}
			if err := h.BindQueue(ctx, nil, Bind{Source: "x", Destination: "q", Key: "some.key"}); err != nil {
				b.Fatal(err)
			}
			q := h.queues["q"].kind.(*queue.Queue)
			sink := &acker{}
			if err := h.Consume(nil, "q", &queue.Consumer{Sink: sink}); err != nil {
				b.Fatal(err)
			}
			const inFlight = 256
			w, waiting := make(confirms, inFlight), 0
			properties, body := []byte{0x10, 0, 2}, make([]byte, 100)
			b.ReportAllocs()
			for b.Loop() {
				m, err := message.New("x", "some.key", properties, body)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := h.Publish(m, w, 0); err != nil {
					b.Fatal(err)
				}
				if waiting++; waiting == inFlight {
					<-w
					waiting--
				}
				if len(sink.out) == 64 {
					tx := h.Begin()
					q.Ack(tx, sink.out...)
					tx.End()
					q.Settle()
					sink.out = sink.out[:0]
				}
			}
			for ; waiting > 0; waiting-- {
				<-w
			}
		})
	}
}

// A persistent message of 100 bytes with its confirm to a queue in which others wait, and the
// oldest of these to a consumer that acknowledges it.
func BenchmarkConsumerThatLags(b *testing.B) {
	for _, waiting := range []int{0, 1000, 5000, 20_000, 100_000} {
		b.Run(strconv.Itoa(waiting), func(b *testing.B) {
			s, err := store.Open(b.TempDir(), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			hosts, err := Open(Options{Store: s, Clock: clock.Real(), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			defer hosts.Close()
			h := hosts.Host(Default)
			if _, err := h.DeclareQueue(b.Context(), nil, QueueDeclare{Name: "q", Durable: true}); err != nil {
				b.Fatal(err)
			}
			const inFlight = 4096
			w, unconfirmed := make(confirms, inFlight), 0
			publish := func() {
				m, err := message.New("", "q", []byte{0x10, 0, 2}, make([]byte, 100))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := h.Publish(m, w, 0); err != nil {
					b.Fatal(err)
				}
				if unconfirmed++; unconfirmed == inFlight {
					<-w
					unconfirmed--
				}
			}
			for range waiting {
				publish()
			}
			q := h.queues["q"].kind.(*queue.Queue)
			var out []*queue.Entry
			b.ReportAllocs()
			for b.Loop() {
				publish()
				d, ok := q.Get(&queue.Consumer{})
				if !ok {
					b.Fatal("the queue is empty")
				}
				if out = append(out, d.Entry); len(out) == 64 {
					tx := h.Begin()
					q.Ack(tx, out...)
					tx.End()
					q.Settle()
					out = out[:0]
				}
			}
			for ; unconfirmed > 0; unconfirmed-- {
				<-w
			}
		})
	}
}
