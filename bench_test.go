package dormouse

import (
	"context"
	"testing"
	"time"
)

// benchmarkClient is a client on the embedded broker with a work queue.
func benchmarkClient(b *testing.B, adjust ...func(*Options)) (*Client, string) {
	tb := &testBroker{t: b, url: brokerURLs()[0]}
	c := tb.connect(adjust...)
	const q = "dmroot.bench"
	tb.declare(c, Topology{Queues: []Queue{{Name: q}}})
	b.Cleanup(func() { _, _ = c.DiscardParked(context.Background(), q, Selection{}) })
	return c, q
}

func BenchmarkPublishAsync(b *testing.B) {
	for name, after := range map[string]time.Duration{"now": 0, "delayed": time.Hour} {
		b.Run(name, func(b *testing.B) {
			c, q := benchmarkClient(b)
			body := make([]byte, 200)
			handles := make(chan *Confirmation, 2000)
			done := make(chan error, 1)
			go func() {
				for h := range handles {
					if err := h.Wait(context.Background()); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
			b.ReportAllocs()
			for b.Loop() {
				handles <- c.PublishAsync(b.Context(), Message{RoutingKey: q, Body: body, After: after})
			}
			close(handles)
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}
