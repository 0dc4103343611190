package dormouse

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// workerEnv makes the test binary a worker process, which a test can kill. Its value is a job in JSON.
const workerEnv = "DORMOUSE_TEST_WORKER"

type job struct {
	URL, Queue  string
	Prefix      string
	Steps       []time.Duration
	Concurrency int
}

// runWorker consumes a queue and reports each handler's start on standard output. A message "poison" kills the process, "hang" never
// ends, any other is done.
func runWorker(encoded string) {
	var j job
	if err := json.Unmarshal([]byte(encoded), &j); err != nil {
		panic(err)
	}
	ctx := context.Background()
	c, err := Connect(ctx, j.URL, Options{Prefix: j.Prefix, Name: "dormouse test worker"})
	if err != nil {
		panic(err)
	}
	_, err = c.Consume(ctx, j.Queue, func(ctx context.Context, d *Delivery) error {
		fmt.Printf("%s %d\n", d.Body, d.Attempt)
		switch string(d.Body) {
		case "poison":
			os.Exit(137)
		case "hang":
			select {}
		}
		return nil
	}, ConsumeOptions{Retry: RetrySteps(j.Steps...), Concurrency: j.Concurrency})
	if err != nil {
		panic(err)
	}
	select {}
}

// A worker is a running worker process.
type worker struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
	ended chan error
}

func startWorker(t *testing.T, j job) *worker {
	t.Helper()
	encoded, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+string(encoded))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &worker{t: t, cmd: cmd, lines: make(chan string, 100), ended: make(chan error, 1)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			w.lines <- s.Text()
		}
		w.ended <- cmd.Wait()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return w
}

// kill is kill -9.
func (w *worker) kill() {
	w.t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	if err := receive(w.t, "the worker's end", w.ended); err == nil {
		w.t.Fatal("a killed worker ended well")
	}
}

func TestKilledWorker(t *testing.T) {
	bothTypes(t, func(t *testing.T, b *testBroker, typ QueueType) {
		attempts := make(chan AttemptEvent, 10)
		c := b.connect(withAttempts(attempts))
		q := b.workQueue(c, typ)
		w := startWorker(t, job{URL: b.url, Prefix: testPrefix, Queue: q, Steps: []time.Duration{time.Hour}, Concurrency: 1})
		if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte("hang"), MessageID: "m"}); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "the worker's handler", w.lines); got != "hang 1" {
			t.Fatalf("worker said %q", got)
		}
		w.kill()
		handled := make(chan *Delivery, 1)
		mustConsume(t, c, q, ConsumeOptions{Retry: RetrySteps(200*time.Millisecond, time.Hour)}, func(_ context.Context, d *Delivery) error {
			handled <- d
			return nil
		})
		// The crash is an attempt: nobody handles the message at once, and after the wait it is the second.
		if e := receive(t, "the crash", attempts); e.Attempt != 1 || e.Reason != ReasonCrash || e.Outcome != OutcomeRetried || e.MessageID != "m" {
			t.Errorf("crash seen as %+v", e)
		}
		if d := receive(t, "the second attempt", handled); d.Attempt != 2 || d.Redelivered || d.LastReason != ReasonCrash || !strings.Contains(d.LastError, "never settled") {
			t.Errorf("second attempt %+v", d)
		}
		if e := receive(t, "its end", attempts); e.Outcome != OutcomeDone {
			t.Errorf("ended as %+v", e)
		}
	})
}

// A message that kills its worker each time is parked after as many attempts as the policy allows, and its neighbour survives.
func TestPoisonMessageIsParked(t *testing.T) {
	bothTypes(t, func(t *testing.T, b *testBroker, typ QueueType) {
		c := b.connect()
		q := b.workQueue(c, typ)
		if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte("poison"), MessageID: "m"}); err != nil {
			t.Fatal(err)
		}
		j := job{URL: b.url, Prefix: testPrefix, Queue: q, Steps: []time.Duration{100 * time.Millisecond, 200 * time.Millisecond}, Concurrency: 1}
		for attempt := 1; attempt <= 3; attempt++ {
			w := startWorker(t, j)
			if got := receive(t, "the worker's handler", w.lines); got != fmt.Sprint("poison ", attempt) {
				t.Fatalf("worker said %q at attempt %d", got, attempt)
			}
			var exit *exec.ExitError
			if err := receive(t, "the worker's end", w.ended); !errors.As(err, &exit) || exit.ExitCode() != 137 {
				t.Fatalf("worker ended with %v", err)
			}
		}
		w := startWorker(t, j)
		d := receive(t, "parked message", b.consumeRaw(ParkedQueue(q)))
		if d.MessageId != "m" || d.Headers["retry-count"] != int64(3) || d.Headers["retry-reason"] != "crash" {
			t.Errorf("parked %s with %v", d.MessageId, d.Headers)
		}
		if err := c.Publish(t.Context(), Message{RoutingKey: q, Body: []byte("harmless")}); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "the worker's handler", w.lines); got != "harmless 1" {
			t.Errorf("worker said %q", got)
		}
		w.kill()
	})
}
