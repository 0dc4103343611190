package broker_test

import (
	"runtime"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
)

// Messages that are not acknowledged are in memory. Past the limit publishers wait, and
// consumers go on until there is room.
func TestMemoryLimit(t *testing.T) {
	const size = 1 << 20
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	b := serve(t, broker.Options{Dir: t.TempDir(), MemoryLimit: int64(before.HeapAlloc) + 128<<20})
	conn, ch := dial(t, b)
	blockings := conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	_, consumer := dial(t, b)
	declare(t, ch, "q", nil)
	deliveries, err := consumer.Consume("q", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	published, blocked := 0, false
	for !blocked {
		if published > 1000 {
			t.Fatal("not blocked with 1000 MiB unacknowledged")
		}
		body := make([]byte, size)
		err := ch.PublishWithContext(t.Context(), "", "q", false, false, amqp.Publishing{Body: body})
		if err != nil {
			t.Fatal(err)
		}
		published++
		select {
		case got := <-blockings:
			if !got.Active || got.Reason != "low on memory" {
				t.Fatalf("blocked: %+v", got)
			}
			blocked = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	var last amqp.Delivery
	for range published - 5 { // the last ones may be on their way
		last = <-deliveries
	}
	if err := last.Ack(true); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-blockings:
		if got.Active {
			t.Fatalf("blocked: %+v", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still blocked although all is acknowledged")
	}
}
