package broker

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/clock"
)

// After a restart a consumer begins where it asks to in a stream whose messages came an hour apart, and goes on with what
// is published then. Source: https://www.rabbitmq.com/docs/streams#consuming.
func TestStreamOffsetsAfterRestart(t *testing.T) {
	const before, after = 5, 7
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := clock.NewVirtual(begin)
	o := Options{Dir: t.TempDir(), Clock: now}
	publish := func(ch *amqp.Channel, number int) {
		t.Helper()
		c, err := ch.PublishWithDeferredConfirm("", "s", false, false, amqp.Publishing{Body: fmt.Append(nil, number)})
		if err != nil {
			t.Fatal(err)
		}
		if !c.Wait() {
			t.Fatalf("message %d is not confirmed", number)
		}
	}
	confirming := func() (*Broker, *amqp.Channel) {
		t.Helper()
		b, ch := opened(t, o)
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		return b, ch
	}

	b, ch := confirming()
	if _, err := ch.QueueDeclare("s", true, false, false, false, amqp.Table{"x-queue-type": "stream"}); err != nil {
		t.Fatal(err)
	}
	for number := range before {
		publish(ch, number)
		now.Advance(time.Hour)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	_, ch = confirming()
	if err := ch.Qos(100, 0, false); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		from  amqp.Table
		first int64
	}{
		{nil, 5},
		{from("first"), 0}, {from("last"), 4}, {from("next"), 5},
		{from(0), 0}, {from(3), 3}, {from(int64(4)), 4}, {from(5), 5}, {from(6), 6},
		{from(begin.Add(-time.Hour)), 0}, {from(begin), 0}, {from(begin.Add(time.Second)), 1},
		{from(begin.Add(2 * time.Hour)), 2}, {from(begin.Add(4*time.Hour + time.Second)), 5},
		// It is five hours after the beginning.
		{from("1Y"), 0}, {from("5h"), 0}, {from("3h"), 2}, {from("90m"), 4}, {from("3599s"), 5},
	}
	consumers := make([]<-chan amqp.Delivery, len(cases))
	for i, c := range cases {
		var err error
		if consumers[i], err = ch.Consume("s", "", false, false, false, false, c.from); err != nil {
			t.Fatalf("%v: %v", c.from, err)
		}
	}
	for number := before; number < after; number++ {
		publish(ch, number)
	}
	for i, c := range cases {
		for want := c.first; want < after; want++ {
			select {
			case d, ok := <-consumers[i]:
				if got := string(d.Body); !ok || got != fmt.Sprint(want) || d.Headers["x-stream-offset"] != want {
					t.Errorf("%v: got %q with %v (%v), want number %d", c.from, got, d.Headers, ok, want)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%v: number %d does not come", c.from, want)
			}
		}
	}
}

func from(offset any) amqp.Table { return amqp.Table{"x-stream-offset": offset} }
