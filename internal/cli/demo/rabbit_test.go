package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse"
	"github.com/dormousemq/dormouse/broker"
)

// interrupting is a courier whose run is interrupted at its first delivery.
type interrupting struct {
	*Rabbit
	interrupt context.CancelCauseFunc
}

var errInterrupted = errors.New("interrupted")

func (c interrupting) Work(ctx context.Context, handle func(context.Context, Arrival) error) error {
	return c.Rabbit.Work(ctx, func(ctx context.Context, a Arrival) error {
		c.interrupt(errInterrupted)
		return handle(ctx, a)
	})
}

func TestInterruptedRunLeavesNothingOnTheBroker(t *testing.T) {
	url := startBroker(t)
	rabbit, err := Connect(t.Context(), Settings{URL: url, Run: "test", Kind: dormouse.Classic})
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancelCause(t.Context())
	plan := Plan(100, "test", rand.New(rand.NewPCG(1, 2)))
	for i := range plan {
		plan[i].Delay = min(plan[i].Delay, time.Second)
	}
	if _, err := New(interrupting{rabbit, interrupt}, plan).Do(ctx); !errors.Is(err, errInterrupted) {
		t.Errorf("error %v, want the interruption", err)
	}

	connection, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	for _, queue := range []string{rabbit.names.Orders, rabbit.names.Emails, rabbit.names.Orders + ".parked", rabbit.names.Emails + ".parked"} {
		if _, err := inspect(t, connection, queue); err == nil {
			t.Errorf("queue %s was left behind", queue)
		}
	}
	// What is still in a lane would find its queue gone.
	nowhere := []string{"dormouse.unrouted", "dormouse.delay.1s", "dormouse.delay.2s"}
	for tenths := range 9 {
		nowhere = append(nowhere, fmt.Sprintf("dormouse.delay.%d00ms", tenths+1))
	}
	for _, queue := range nowhere {
		if q, err := inspect(t, connection, queue); err != nil || q.Messages > 0 {
			t.Errorf("%d messages are left in %s, %v", q.Messages, queue, err)
		}
	}
}

func startBroker(t *testing.T) (url string) {
	b, err := broker.New(broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(listener) }()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, broker.ErrClosed) {
			t.Error(err)
		}
	})
	return "amqp://" + listener.Addr().String() + "/"
}

func inspect(t *testing.T, connection *amqp.Connection, queue string) (amqp.Queue, error) {
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	return channel.QueueDeclarePassive(queue, true, false, false, false, nil)
}
