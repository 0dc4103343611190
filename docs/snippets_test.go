// Package docs_test compiles the Go code of the README and of the pages in this folder: each code block of theirs must
// stand in this file.
package docs_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dormousemq/dormouse"
	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/config"
	"github.com/dormousemq/dormouse/dormousetest"
)

func send(context.Context, []byte) error { return nil }

// README.md
func _(ctx context.Context) error {
	client, err := dormouse.Connect(ctx, "amqp://guest:guest@localhost:5672/", dormouse.Options{})
	if err != nil {
		return err
	}
	defer client.Close()

	err = client.Declare(ctx, dormouse.Topology{Queues: []dormouse.Queue{{Name: "email"}}})
	if err != nil {
		return err
	}

	// Arrives in half an hour.
	err = client.Publish(ctx, dormouse.Message{
		RoutingKey: "email",
		After:      30 * time.Minute,
		Body:       []byte("you left something in your basket"),
	})
	if err != nil {
		return err
	}

	// Four attempts, with growing waits in between; then the message is parked in email.parked.
	consumer, err := client.Consume(ctx, "email", func(ctx context.Context, d *dormouse.Delivery) error {
		return send(ctx, d.Body)
	}, dormouse.ConsumeOptions{
		Retry: dormouse.RetrySteps(10*time.Second, time.Minute, 10*time.Minute),
	})
	if err != nil {
		return err
	}

	<-ctx.Done() // the handlers run in the background until then
	return consumer.Shutdown(context.WithoutCancel(ctx))
}

func _(t *testing.T) {
	b := dormousetest.NewBroker(t) // connect any AMQP client to b.URL()
	b.Advance(30 * time.Minute)    // what is delayed by half an hour has arrived
}

func _() error {
	b, err := broker.New(broker.Options{Dir: "data"})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:5672")
	if err != nil {
		return err
	}
	return b.Serve(listener)
}

// delays.md
func _(ctx context.Context, client *dormouse.Client, body []byte) error {
	err := client.Publish(ctx, dormouse.Message{
		Exchange:   "orders",
		RoutingKey: "order.unpaid",
		After:      30 * time.Minute,
		Body:       body,
	})
	return err
}

// retries.md
func _(ctx context.Context, client *dormouse.Client) error {
	_, err := client.Consume(ctx, "email", func(ctx context.Context, d *dormouse.Delivery) error {
		return send(ctx, d.Body)
	}, dormouse.ConsumeOptions{
		Retry:       dormouse.RetrySteps(10*time.Second, time.Minute, 10*time.Minute),
		Concurrency: 8,
		Timeout:     30 * time.Second,
	})
	return err
}

func _(ctx context.Context, client *dormouse.Client, handle dormouse.Handler) error {
	_, err := client.Consume(ctx, "email", handle, dormouse.ConsumeOptions{
		Retry:   dormouse.RetryExponential(8, time.Second, time.Hour),
		Breaker: dormouse.Breaker{Failures: 20, Pause: 10 * time.Second, MaxPause: 5 * time.Minute},
	})
	return err
}

// configuration.md
func _(ctx context.Context, handle dormouse.Handler) error {
	file, err := config.Load("dormouse.yaml")
	if err != nil {
		return err
	}
	client, err := dormouse.Connect(ctx, "amqp://guest:guest@localhost:5672/", file.Options)
	if err != nil {
		return err
	}
	err = client.Declare(ctx, file.Topology)
	if err != nil {
		return err
	}
	_, err = client.Consume(ctx, "email", handle, file.Consumers["email"])
	return err
}

// The file that is shown is one that can be read.
func TestConfigurationInDocumentsIsRead(t *testing.T) {
	text, err := os.ReadFile("configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	source, _, found := strings.Cut(rest, "```")
	file, err := config.Read("configuration.md", strings.NewReader(source))
	if !found || err != nil || len(file.Topology.Queues) != 2 || len(file.Consumers) != 2 || len(file.Topology.FixedDelays) != 1 {
		t.Errorf("%+v, %v", file, err)
	}
}

func TestGoCodeInDocumentsIsCompiled(t *testing.T) {
	source, err := os.ReadFile("snippets_test.go")
	if err != nil {
		t.Fatal(err)
	}
	compiled := flat(string(source))
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```go\n")[1:] {
			code, _, _ := strings.Cut(block, "```")
			blocks++
			if !strings.Contains(compiled, flat(code)) {
				t.Errorf("%s: block %d of Go code is not in snippets_test.go:\n%s", page, i+1, code)
			}
		}
	}
	if blocks < 4 {
		t.Errorf("found %d blocks of Go code", blocks)
	}
}

// flat is the code without indentation.
func flat(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
