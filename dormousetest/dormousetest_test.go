package dormousetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/dormousetest"
)

// delayQueue declares a queue "wait" whose messages go to the queue "work" after ttl,
// and consumes that.
func delayQueue(t *testing.T, ch *amqp.Channel, ttl time.Duration) <-chan amqp.Delivery {
	t.Helper()
	if _, err := ch.QueueDeclare("work", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("wait", true, false, false, false, amqp.Table{
		"x-message-ttl": ttl.Milliseconds(), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work",
	}); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume("work", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return deliveries
}

func publish(t *testing.T, ch *amqp.Channel, queue, body string) {
	t.Helper()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	confirm, err := ch.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{Body: []byte(body), DeliveryMode: amqp.Persistent})
	if err != nil {
		t.Fatal(err)
	}
	if !confirm.Wait() {
		t.Fatal("not confirmed")
	}
}

func TestAdvance(t *testing.T) {
	b := dormousetest.NewBroker(t)
	conn, err := amqp.Dial(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	deliveries := delayQueue(t, ch, 30*time.Minute)
	publish(t, ch, "wait", "remind me")
	b.Advance(30*time.Minute - time.Millisecond)
	publish(t, ch, "work", "not delayed")
	if d := <-deliveries; string(d.Body) != "not delayed" {
		t.Fatalf("%q came first", d.Body)
	}
	begin := b.Now()
	b.Advance(time.Millisecond)
	if d := <-deliveries; string(d.Body) != "remind me" {
		t.Fatalf("got %q", d.Body)
	}
	if moved := b.Now().Sub(begin); moved != time.Millisecond {
		t.Fatalf("the clock moved by %v", moved)
	}
}

func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dormousetest.NewBubbleBroker(t)
		conn, err := amqp.DialConfig(b.URL(), amqp.Config{Dial: b.Dial})
		if err != nil {
			t.Fatal(err)
		}
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		deliveries := delayQueue(t, ch, 24*time.Hour)
		begin := time.Now()
		publish(t, ch, "wait", "tomorrow")
		if d := <-deliveries; string(d.Body) != "tomorrow" {
			t.Fatalf("got %q", d.Body)
		}
		if waited := time.Since(begin); waited < 24*time.Hour || waited > 24*time.Hour+time.Second {
			t.Fatalf("it came after %v", waited)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		b.Close()
	})
}

// What a handler holds while the clock moves stays with it, unless the queue has a timeout of its own.
func TestAdvanceWithUnacknowledgedMessages(t *testing.T) {
	b := dormousetest.NewBroker(t)
	conn, err := amqp.Dial(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, q := range []struct {
		name  string
		args  amqp.Table
		ready int
	}{
		{"patient", amqp.Table{"x-queue-type": "quorum"}, 0},
		{"impatient", amqp.Table{"x-queue-type": "quorum", "x-consumer-timeout": time.Hour.Milliseconds()}, 1},
	} {
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare(q.name, true, false, false, false, q.args); err != nil {
			t.Fatal(err)
		}
		publish(t, ch, q.name, "work")
		if _, ok, err := ch.Get(q.name, false); !ok || err != nil {
			t.Fatal(ok, err)
		}
		b.Advance(24 * time.Hour)
		other, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		state, err := other.QueueDeclarePassive(q.name, true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if state.Messages != q.ready {
			t.Errorf("%s: %d messages are ready, want %d", q.name, state.Messages, q.ready)
		}
	}
}
