package dormousetest_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/dormousetest"
)

// The longest delay of an x-delayed-message exchange is ten years of 365 days, to the millisecond.
func TestLongestDelay(t *testing.T) {
	const tenYears = 10 * 365 * 24 * time.Hour
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
	if err := ch.ExchangeDeclare("later", "x-delayed-message", true, false, false, false, amqp.Table{"x-delayed-type": "fanout"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("q", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("q", "", "later", false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	post := func(delay time.Duration) (confirmed bool) {
		t.Helper()
		c, err := ch.PublishWithDeferredConfirm("later", "", false, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-delay": delay.Milliseconds()},
		})
		if err != nil {
			t.Fatal(err)
		}
		return c.Wait()
	}

	if !post(tenYears) {
		t.Fatal("ten years are not confirmed")
	}
	b.Advance(tenYears - time.Millisecond)
	if _, ok, err := ch.Get("q", true); ok || err != nil {
		t.Fatalf("a millisecond before: a message %v, %v", ok, err)
	}
	b.Advance(time.Millisecond)
	d, ok, err := ch.Get("q", true)
	if !ok || err != nil {
		t.Fatalf("after ten years: a message %v, %v", ok, err)
	}
	if got := d.Headers["x-delay"]; got != -tenYears.Milliseconds() {
		t.Errorf("x-delay is %v (%T)", got, got)
	}

	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	if post(tenYears + time.Millisecond) {
		t.Error("more than ten years are confirmed")
	}
	const reason = "PRECONDITION_FAILED - header 'x-delay' is 315360000001, more than the longest delay of 315360000000 ms (ten years)"
	select {
	case e := <-closed:
		if e == nil || e.Code != amqp.PreconditionFailed || e.Reason != reason {
			t.Errorf("more than ten years: %v", e)
		}
	case <-time.After(10 * time.Second):
		t.Error("more than ten years are not refused")
	}
}
