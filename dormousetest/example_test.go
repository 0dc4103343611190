package dormousetest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse"
	"github.com/dormousemq/dormouse/dormousetest"
)

// A message that any AMQP client delays by 30 minutes is there when the test says that they have passed.
func ExampleBroker_Advance() {
	b, err := dormousetest.Start() // in a test: b := dormousetest.NewBroker(t)
	if err != nil {
		panic(err)
	}
	defer b.Close()
	conn, err := amqp.Dial(b.URL())
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		panic(err)
	}
	err = ch.ExchangeDeclare("reminders", "x-delayed-message", true, false, false, false, amqp.Table{"x-delayed-type": "direct"})
	if err != nil {
		panic(err)
	}
	if _, err := ch.QueueDeclare("inbox", true, false, false, false, nil); err != nil {
		panic(err)
	}
	if err := ch.QueueBind("inbox", "ann", "reminders", false, nil); err != nil {
		panic(err)
	}
	inbox, err := ch.Consume("inbox", "", true, false, false, false, nil)
	if err != nil {
		panic(err)
	}

	begin := b.Now()
	if err := ch.Confirm(false); err != nil {
		panic(err)
	}
	confirm, err := ch.PublishWithDeferredConfirm("reminders", "ann", false, false, amqp.Publishing{
		Headers: amqp.Table{"x-delay": (30 * time.Minute).Milliseconds()},
		Body:    []byte("take the cake out of the oven"),
	})
	if err != nil {
		panic(err)
	}
	confirm.Wait()

	b.Advance(29 * time.Minute)
	select {
	case <-inbox:
		panic("too early")
	default:
	}
	b.Advance(time.Minute)
	fmt.Printf("after %v: %s\n", b.Now().Sub(begin), (<-inbox).Body)
	// Output: after 30m0s: take the cake out of the oven
}

// A job that fails for a day is tried as its schedule says. The test waits for the end of each attempt,
// then moves the clock to the next one.
func ExampleBroker_Advance_retries() {
	b, err := dormousetest.Start() // in a test: b := dormousetest.NewBroker(t)
	if err != nil {
		panic(err)
	}
	defer b.Close()
	ctx := context.Background()
	ended := make(chan dormouse.AttemptEvent)
	client, err := dormouse.Connect(ctx, b.URL(), dormouse.Options{
		Logger: slog.New(slog.DiscardHandler),
		Hooks:  dormouse.Hooks{Attempt: func(e dormouse.AttemptEvent) { ended <- e }},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Shutdown(ctx) }()
	if err := client.Declare(ctx, dormouse.Topology{Queues: []dormouse.Queue{{Name: "invoices"}}}); err != nil {
		panic(err)
	}

	begin := b.Now()
	policy := dormouse.RetrySteps(time.Minute, 9*time.Minute, 50*time.Minute, 5*time.Hour, 18*time.Hour)
	_, err = client.Consume(ctx, "invoices", func(ctx context.Context, d *dormouse.Delivery) error {
		fmt.Printf("attempt %d after %v\n", d.Attempt, b.Now().Sub(begin))
		return errors.New("the printer is out of paper")
	}, dormouse.ConsumeOptions{Retry: policy})
	if err != nil {
		panic(err)
	}
	if err := client.Publish(ctx, dormouse.Message{RoutingKey: "invoices", Body: []byte("No. 42")}); err != nil {
		panic(err)
	}
	for _, delay := range policy.Schedule() {
		fmt.Println((<-ended).Outcome)
		b.Advance(delay)
	}
	fmt.Println((<-ended).Outcome)
	// Output:
	// attempt 1 after 0s
	// retried
	// attempt 2 after 1m0s
	// retried
	// attempt 3 after 10m0s
	// retried
	// attempt 4 after 1h0m0s
	// retried
	// attempt 5 after 6h0m0s
	// retried
	// attempt 6 after 24h0m0s
	// parked
}
