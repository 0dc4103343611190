package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"
)

// amqp091 is the client that Dormouse itself is built on.
func amqp091() suite {
	return suite{
		name:  "amqp091-go",
		about: "RabbitMQ's Go client 1.16.0, with its integration tests, under the race detector",
		prepare: func(ctx context.Context, dir string) error {
			return goModule(ctx, dir, "github.com/rabbitmq/amqp091-go", "v1.16.0")
		},
		run: func(ctx context.Context, dir string, to broker) (results, error) {
			return goTest(ctx, dir, []string{"AMQP_URL=" + to.url}, "-race", "-tags", "integration", ".")
		},
	}
}

// streadway is the client before it was RabbitMQ's, which many programs still use.
func streadway() suite {
	return suite{
		name:  "streadway-amqp",
		about: "the Go client github.com/streadway/amqp 1.1.0, with its integration tests",
		prepare: func(ctx context.Context, dir string) error {
			return goModule(ctx, dir, "github.com/streadway/amqp", "v1.1.0")
		},
		run: func(ctx context.Context, dir string, to broker) (results, error) {
			return goTest(ctx, dir, []string{"AMQP_URL=" + to.url}, "-tags", "integration", "-vet=off", ".")
		},
	}
}

// watermill runs a suite that Watermill has for publishers and subscribers of all kinds.
func watermill() suite {
	return suite{
		name:  "watermill-amqp",
		about: "Watermill's publisher and subscriber on AMQP 3.0.2, with Watermill's suite for those",
		prepare: func(ctx context.Context, dir string) error {
			return goModule(ctx, dir, "github.com/ThreeDotsLabs/watermill-amqp/v3", "v3.0.2")
		},
		run: func(ctx context.Context, dir string, to broker) (results, error) {
			return goTest(ctx, dir, []string{"WATERMILL_TEST_AMQP_URI=" + to.url}, "-short", "./pkg/amqp/")
		},
	}
}

func moduleDir(download []byte) (string, error) {
	var module struct{ Dir string }
	if err := json.Unmarshal(download, &module); err != nil || module.Dir == "" {
		return "", fmt.Errorf("go mod download has named no folder: %s", download)
	}
	return module.Dir, nil
}

// goTest runs the tests of a module in dir/src.
func goTest(ctx context.Context, dir string, env []string, args ...string) (results, error) {
	command := append([]string{"go", "test", "-json", "-count=1", "-timeout=15m"}, args...)
	out, ok, err := output(ctx, 16*time.Minute, filepath.Join(dir, "src"), env, command...)
	if err != nil {
		return nil, err
	}
	res := goResults(out)
	if len(res) == 0 {
		return nil, fmt.Errorf("no test has run (go test ended well: %t):\n%s", ok, last(out))
	}
	return res, nil
}

// goResults reads what go test -json prints.
func goResults(out []byte) results {
	res := results{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" {
			continue
		}
		switch event.Action {
		case "run":
			res.add(event.Test, skipped)
		case "pass":
			res.add(event.Test, passed)
		case "fail":
			res.add(event.Test, failed)
		}
	}
	return res
}
