package dormouse_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/dormousemq/dormouse"
	"github.com/dormousemq/dormouse/broker"
)

// The examples run on a broker in this process; any RabbitMQ from 3.10 on does as well.
func exampleBroker() (url string, stop func()) {
	b, err := broker.New(broker.Options{})
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { _ = b.Serve(l) }()
	return "amqp://guest:guest@" + l.Addr().String() + "/", func() { _ = b.Close() }
}

// Declare the delay ladder and a work queue, publish with a delay, consume with retries.
func Example() {
	url, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	client, err := dormouse.Connect(ctx, url, dormouse.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Shutdown(ctx) }()
	err = client.Declare(ctx, dormouse.Topology{
		Exchanges: []dormouse.Exchange{{Name: "orders"}},
		Queues:    []dormouse.Queue{{Name: "email", Bindings: []dormouse.Binding{{Exchange: "orders", RoutingKey: "order.*"}}}},
	})
	if err != nil {
		panic(err)
	}

	err = client.Publish(ctx, dormouse.Message{
		Exchange: "orders", RoutingKey: "order.new", Body: []byte("42"), After: 200 * time.Millisecond,
	})
	if err != nil {
		panic(err)
	}

	done := make(chan struct{})
	_, err = client.Consume(ctx, "email", func(ctx context.Context, d *dormouse.Delivery) error {
		fmt.Printf("attempt %d at order %s, published as %s\n", d.Attempt, d.Body, d.RoutingKey)
		if d.Attempt == 1 {
			return errors.New("mail server is busy")
		}
		close(done)
		return nil
	}, dormouse.ConsumeOptions{Retry: dormouse.RetrySteps(100*time.Millisecond, time.Second, time.Minute)})
	if err != nil {
		panic(err)
	}
	<-done
	// Output:
	// attempt 1 at order 42, published as order.new
	// attempt 2 at order 42, published as order.new
}

// An error says whether the message may be stored, so that the caller can decide to publish it again.
func ExampleClient_Publish() {
	url, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	client, err := dormouse.Connect(ctx, url, dormouse.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Shutdown(ctx) }()

	err = client.Publish(ctx, dormouse.Message{RoutingKey: "no-such-queue", Body: []byte("x")})
	if failed, ok := errors.AsType[*dormouse.PublishError](err); ok {
		fmt.Println("unroutable:", errors.Is(err, dormouse.ErrUnroutable), "- may be stored:", failed.MayBeStored())
	}
	// Output: unroutable: true - may be stored: false
}

// Many messages are published without waiting for each confirm.
func ExampleClient_PublishAsync() {
	url, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	client, err := dormouse.Connect(ctx, url, dormouse.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Shutdown(ctx) }()
	if err := client.Declare(ctx, dormouse.Topology{Queues: []dormouse.Queue{{Name: "bulk"}}}); err != nil {
		panic(err)
	}

	at := time.Now().Add(8 * time.Hour)
	var handles []*dormouse.Confirmation
	for i := range 1000 {
		handles = append(handles, client.PublishAsync(ctx, dormouse.Message{RoutingKey: "bulk", At: at, Body: fmt.Append(nil, i)}))
	}
	stored := 0
	for _, h := range handles {
		if err := h.Wait(ctx); err == nil {
			stored++
		}
	}
	fmt.Println(stored, "stored")
	// Output: 1000 stored
}

// A handler can say what is to become of a failed message.
func ExampleClient_Consume() {
	url, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	ended := make(chan dormouse.AttemptEvent)
	client, err := dormouse.Connect(ctx, url, dormouse.Options{
		Logger: slog.New(slog.DiscardHandler),
		Hooks:  dormouse.Hooks{Attempt: func(e dormouse.AttemptEvent) { ended <- e }},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Shutdown(ctx) }()
	if err := client.Declare(ctx, dormouse.Topology{Queues: []dormouse.Queue{{Name: "payments"}}}); err != nil {
		panic(err)
	}

	handler := func(ctx context.Context, d *dormouse.Delivery) error {
		switch string(d.Body) {
		case "malformed":
			return dormouse.Park(errors.New("not a payment"))
		case "duplicate":
			return dormouse.Discard(errors.New("seen before"))
		case "rate limited":
			return dormouse.RetryAfter(errors.New("the bank says when"), 90*time.Second)
		}
		return nil
	}
	consumer, err := client.Consume(ctx, "payments", handler, dormouse.ConsumeOptions{
		Retry: dormouse.RetryPolicy{
			MaxAttempts: 25, First: time.Second, Factor: 2, Max: time.Hour, Jitter: 0.2, Exhausted: dormouse.ExhaustedPark,
		},
		Concurrency: 10,
		Timeout:     30 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	for _, body := range []string{"fine", "malformed", "duplicate", "rate limited"} {
		if err := client.Publish(ctx, dormouse.Message{RoutingKey: "payments", Body: []byte(body)}); err != nil {
			panic(err)
		}
		fmt.Println(body, "is", (<-ended).Outcome)
	}

	drain, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := consumer.Shutdown(drain); err != nil {
		panic(err)
	}
	// Output:
	// fine is done
	// malformed is parked
	// duplicate is discarded
	// rate limited is retried
}

// Look into a parking lot, and send back what is worth another try.
func ExampleClient_Redrive() {
	url, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	parked := make(chan struct{}, 3)
	client, err := dormouse.Connect(ctx, url, dormouse.Options{
		Hooks: dormouse.Hooks{Attempt: func(dormouse.AttemptEvent) { parked <- struct{}{} }},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Shutdown(ctx) }()
	if err := client.Declare(ctx, dormouse.Topology{Queues: []dormouse.Queue{{Name: "email"}}}); err != nil {
		panic(err)
	}
	consumer, err := client.Consume(ctx, "email", func(ctx context.Context, d *dormouse.Delivery) error {
		return dormouse.Park(fmt.Errorf("no mailbox %s", d.Body))
	}, dormouse.ConsumeOptions{Retry: dormouse.RetrySteps()})
	if err != nil {
		panic(err)
	}
	for _, body := range []string{"ann", "bob", "cat"} {
		if err := client.Publish(ctx, dormouse.Message{RoutingKey: "email", Body: []byte(body)}); err != nil {
			panic(err)
		}
		<-parked
	}
	if err := consumer.Shutdown(ctx); err != nil {
		panic(err)
	}

	for m, err := range client.Parked(ctx, "email", dormouse.Selection{}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s after %d attempt(s)\n", m.Body, m.Error, m.Attempts)
	}
	bob := dormouse.Selection{Match: func(m *dormouse.ParkedMessage) bool { return string(m.Body) == "bob" }}
	tally, err := client.Redrive(ctx, "email", bob, dormouse.RedriveOptions{Rate: 100})
	if err != nil {
		panic(err)
	}
	fmt.Println(tally.Done, "sent back,", tally.Kept, "kept")
	tally, err = client.DiscardParked(ctx, "email", dormouse.Selection{Limit: 1})
	if err != nil {
		panic(err)
	}
	fmt.Println(tally.Done, "discarded")
	// Output:
	// ann: no mailbox ann after 1 attempt(s)
	// bob: no mailbox bob after 1 attempt(s)
	// cat: no mailbox cat after 1 attempt(s)
	// 1 sent back, 2 kept
	// 1 discarded
}

// A list of fixed delays, one queue each, and a worker pair whose rejected messages come back after a while.
func ExampleClient_Declare() {
	url, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	client, err := dormouse.Connect(ctx, url, dormouse.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Shutdown(ctx) }()

	levels := []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute}
	topology := dormouse.Topology{
		Exchanges: []dormouse.Exchange{{Name: "worker-exchange"}, {Name: "delay-exchange"}},
		Queues: []dormouse.Queue{{
			Name:               "worker-queue",
			Bindings:           []dormouse.Binding{{Exchange: "worker-exchange", RoutingKey: "#"}},
			DeadLetterExchange: "delay-exchange",
		}},
		FixedDelays: []dormouse.FixedDelay{{
			Queue: "delay-queue", Delay: 10 * time.Second, Exchange: "worker-exchange",
			Bindings: []dormouse.Binding{{Exchange: "delay-exchange", RoutingKey: "#"}},
		}},
	}
	for _, d := range levels {
		topology.FixedDelays = append(topology.FixedDelays, dormouse.FixedDelay{
			Queue: fmt.Sprintf("delayed_queue_%d", d.Milliseconds()), Delay: d, Exchange: "worker-exchange",
		})
	}
	if err := client.Declare(ctx, topology); err != nil {
		panic(err)
	}

	// The same name with another delay is an error that says what differs.
	topology.FixedDelays[0].Delay = time.Hour
	if mismatch, ok := errors.AsType[*dormouse.MismatchError](client.Declare(ctx, topology)); ok {
		fmt.Println(mismatch.Kind, mismatch.Name, mismatch.Property, mismatch.Have, "is not", mismatch.Want)
	}
	// Output: queue delay-queue x-message-ttl 10000 is not 3600000
}

// A schedule is a value that can be printed without running anything.
func ExampleRetryPolicy_Schedule() {
	policy := dormouse.RetryExponential(8, time.Second, time.Minute)
	fmt.Println(policy.Schedule())
	// Output: [1s 2s 4s 8s 16s 32s 1m0s]
}
