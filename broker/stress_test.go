package broker_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
)

// Connections that come and go in the middle of everything must lose nothing that
// was confirmed: each such message is acked at last.
func TestClientsComeAndGo(t *testing.T) {
	const messages, publishers, consumers = 300, 4, 4
	b := serve(t, broker.Options{Dir: t.TempDir()})
	_, ch := dial(t, b)
	declare(t, ch, "q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})

	var confirmed, acked sync.Map
	var done atomic.Bool
	var clients sync.WaitGroup
	for p := range publishers {
		clients.Go(func() {
			for n := 0; n < messages; {
				n += publishSome(b, rand.New(rand.NewPCG(1, uint64(p))), fmt.Sprintf("%d-%d", p, n), &confirmed)
			}
		})
	}
	var workers sync.WaitGroup
	for c := range consumers {
		workers.Go(func() {
			for r := rand.New(rand.NewPCG(2, uint64(c))); !done.Load(); {
				consumeSome(b, r, &acked, &done)
			}
		})
	}
	clients.Wait()
	for deadline := time.Now().Add(30 * time.Second); ; {
		missing := 0
		confirmed.Range(func(body, _ any) bool {
			if _, ok := acked.Load(body); !ok {
				missing++
			}
			return true
		})
		if missing == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d messages were confirmed and never came", missing)
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	done.Store(true)
	workers.Wait()
}

// publishSome publishes up to 20 messages on a connection of its own, and notes those
// that are confirmed.
func publishSome(b *broker.Broker, r *rand.Rand, id string, confirmed *sync.Map) (n int) {
	conn, err := amqp.Dial(b.URL())
	if err != nil {
		return 0
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil || ch.Confirm(false) != nil {
		return 0
	}
	n = 1 + r.IntN(20)
	for i := range n {
		body := fmt.Sprintf("%s-%d", id, i)
		c, err := ch.PublishWithDeferredConfirm("", "q", false, false, amqp.Publishing{DeliveryMode: uint8(1 + r.IntN(2)), Body: []byte(body)})
		if err != nil {
			return n
		}
		if r.IntN(3) > 0 && c.Wait() {
			confirmed.Store(body, true)
		}
	}
	return n
}

// consumeSome consumes some messages on a connection of its own, does this and that with
// them, and goes in one way or another.
func consumeSome(b *broker.Broker, r *rand.Rand, acked *sync.Map, done *atomic.Bool) {
	conn, err := amqp.Dial(b.URL())
	if err != nil {
		return
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil || ch.Qos(r.IntN(10), 0, r.IntN(4) == 0) != nil {
		return
	}
	deliveries, err := ch.Consume("q", "c", false, false, false, false, nil)
	if err != nil {
		return
	}
	for n := r.IntN(100); n > 0 && !done.Load(); n-- {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return
			}
			switch r.IntN(8) {
			case 0:
				err = d.Nack(false, true)
			case 1:
				err = d.Reject(false) // by way of the dead-letter exchange
			case 2:
				err = d.Nack(true, true)
			default:
				// Once the ack is on its way the broker may know of it or not, but a
				// message that comes again is acked again.
				err = d.Ack(false)
				acked.Store(string(d.Body), true)
			}
			if err != nil {
				return
			}
		case <-time.After(20 * time.Millisecond):
			return
		}
	}
	if r.IntN(2) == 0 {
		_ = ch.Cancel("c", false)
	}
}
