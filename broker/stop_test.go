package broker

import (
	"fmt"
	"net"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/clock"
)

// A broker that stops while messages expire, die and become due keeps each of them in
// exactly one place.
func TestStopWhileMessagesMove(t *testing.T) {
	for round := range 4 {
		kind := []string{"classic", "quorum"}[round%2]
		t.Run(fmt.Sprintf("%d %s", round, kind), func(t *testing.T) { stopWhileMessagesMove(t, kind) })
	}
}

func stopWhileMessagesMove(t *testing.T, kind string) {
	const each = 1500
	o := Options{Dir: t.TempDir()}
	now := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	o.Clock = now
	b, ch := opened(t, o)
	lane := amqp.Table{"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "done"}
	if kind == "quorum" {
		lane["x-dead-letter-strategy"], lane["x-overflow"] = "at-least-once", "reject-publish"
	}
	for name, args := range map[string]amqp.Table{"done": nil, "wait": lane} {
		if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
			t.Fatal(err)
		}
	}
	if err := ch.ExchangeDeclare("later", "x-delayed-message", true, false, false, false, amqp.Table{"x-delayed-type": "direct"}); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("done", "k", "later", false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	var confirms []*amqp.DeferredConfirmation
	publish := func(exchange, key string, m amqp.Publishing) {
		t.Helper()
		m.DeliveryMode = amqp.Persistent
		c, err := ch.PublishWithDeferredConfirm(exchange, key, false, false, m)
		if err != nil {
			t.Fatal(err)
		}
		confirms = append(confirms, c)
	}
	for i := range each {
		publish("", "wait", amqp.Publishing{MessageId: fmt.Sprint("ttl ", i), Expiration: "1000"})
		publish("later", "k", amqp.Publishing{MessageId: fmt.Sprint("delay ", i), Headers: amqp.Table{"x-delay": int32(1000)}})
	}
	for _, c := range confirms {
		if !c.Wait() {
			t.Fatal("not confirmed")
		}
	}
	moving := make(chan struct{})
	go func() {
		defer close(moving)
		now.Advance(time.Second)
	}()
	for done := 0; done == 0; {
		q, err := ch.QueueDeclarePassive("done", true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		done = q.Messages
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	<-moving

	_, ch = opened(t, o)
	deliveries, err := ch.Consume("done", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for len(seen) < 2*each {
		select {
		case d := <-deliveries:
			if seen[d.MessageId]++; seen[d.MessageId] > 1 {
				t.Errorf("%s came twice", d.MessageId)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%d of %d messages came", len(seen), 2*each)
		}
	}
}

// opened starts a broker and connects to it; both end with the test.
func opened(t *testing.T, o Options) (*Broker, *amqp.Channel) {
	t.Helper()
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = b.Serve(l) }()
	t.Cleanup(func() { _ = b.Close() })
	conn, err := amqp.Dial("amqp://guest:guest@" + l.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return b, ch
}
