package bench_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/bench"
	"github.com/dormousemq/dormouse/internal/rabbittest"
)

func start(t *testing.T) string {
	t.Helper()
	b, err := broker.New(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(l) }()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, broker.ErrClosed) {
			t.Error(err)
		}
	})
	return "amqp://guest:guest@" + l.Addr().String() + "/"
}

type workload interface {
	Name() string
	Run(ctx context.Context, t bench.Target) (bench.Result, error)
}

func throughput(mode bench.Mode, verdict bench.Verdict) bench.Throughput {
	return bench.Throughput{
		Mode: mode, Size: 100, Producers: 2, Consumers: 2, Queues: 1, QueueType: "classic",
		InFlight: 64, Prefetch: 64, Verdict: verdict, Messages: 1001,
	}
}

func delay(way bench.Way) bench.Delay {
	return bench.Delay{
		Way: way, Least: 100 * time.Millisecond, Most: 300 * time.Millisecond, Messages: 500, Rate: 5000, Size: 64,
		Consumers: 2, Prefetch: 64, InFlight: 64, Verdict: bench.AckEach, QueueType: "classic",
	}
}

func everywhere() []workload {
	big := throughput(bench.Confirmed, bench.AckMany)
	big.Size = 300_000 // more than a frame
	big.Messages = 20
	ahead := delay(bench.Ladder)
	ahead.Ahead = 50
	burst := delay(bench.Lane)
	burst.Burst, burst.Rate = true, 0
	burst.Most = 2 * time.Second
	return []workload{
		throughput(bench.Transient, bench.AckAuto), throughput(bench.Persistent, bench.AckMany), throughput(bench.Confirmed, bench.AckEach), big,
		delay(bench.Lane), burst, ahead,
		bench.Reject{Messages: 700, Size: 100, Consumers: 2, Prefetch: 50, QueueType: "classic"},
		bench.Backlog{Way: bench.Queue, Messages: 600, Size: 100, InFlight: 100, QueueType: "classic"},
		bench.Backlog{Way: bench.Lane, Messages: 600, Size: 100, InFlight: 100, QueueType: "classic", Most: time.Hour},
		bench.Idle{Queues: 20, Connections: 5, Channels: 12, Busy: throughput(bench.Confirmed, bench.AckEach)},
	}
}

func delayedExchange() []workload {
	burst := delay(bench.Delayed)
	burst.Burst, burst.Rate = true, 0
	burst.Most = 2 * time.Second
	ahead := delay(bench.Delayed)
	ahead.Ahead = 50
	return []workload{
		ahead, burst, bench.Backlog{Way: bench.Delayed, Messages: 600, Size: 100, InFlight: 100, QueueType: "classic", Most: time.Hour},
	}
}

// want is how many messages a workload publishes.
func want(w workload) int64 {
	switch w := w.(type) {
	case bench.Throughput:
		return w.Messages
	case bench.Delay:
		return w.Messages
	case bench.Reject:
		return w.Messages
	case bench.Backlog:
		return w.Messages
	case bench.Idle:
		return 2 * w.Busy.Messages
	}
	return -1
}

func check(t *testing.T, w workload, target bench.Target) {
	t.Helper()
	r, err := w.Run(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if r.Err() != nil || r.Published != want(w) || r.Received != want(w) {
		t.Errorf("published %d, received %d of %d: %v", r.Published, r.Received, want(w), r.Err())
	}
	if r.Case != w.Name() || len(r.Metrics) == 0 || r.Broker == "" {
		t.Errorf("%+v", r)
	}
	for _, m := range r.Metrics {
		if m.Value < 0 || m.Unit == "" {
			t.Errorf("%s is %v %s", m.Name, m.Value, m.Unit)
		}
	}
	if r.Lateness != nil {
		var counted int64
		for _, b := range r.Histogram {
			counted += b.Count
		}
		if _, two := w.(bench.Idle); !two && counted != r.Received {
			t.Errorf("the histogram has %d of %d", counted, r.Received)
		}
	}
}

func TestWorkloads(t *testing.T) {
	url := start(t)
	for _, client := range []bench.Client{bench.Raw{}, bench.Library{}} {
		for _, w := range append(everywhere(), delayedExchange()...) {
			t.Run(fmt.Sprintf("%T/%T %s", client, w, w.Name()), func(t *testing.T) {
				check(t, w, bench.Target{URL: url, Client: client, Progress: &bench.Progress{}})
			})
		}
	}
}

func TestWorkloadsOnRabbitMQ(t *testing.T) {
	rabbittest.Each(t, func(t *testing.T, b rabbittest.Broker) {
		url := b.Vhost(t)
		for _, w := range everywhere() {
			if d, ok := w.(bench.Delay); ok && d.Way == bench.Lane {
				continue // RabbitMQ cuts milliseconds off, so it may be early by one
			}
			t.Run(fmt.Sprintf("%T %s", w, w.Name()), func(t *testing.T) {
				check(t, w, bench.Target{URL: url, Client: bench.Raw{}, Progress: &bench.Progress{}})
			})
		}
		if b.AtLeast(4, 3) {
			_, err := delay(bench.Delayed).Run(t.Context(), bench.Target{URL: url, Client: bench.Raw{}, Progress: &bench.Progress{}})
			if !errors.Is(err, bench.ErrNoDelayedExchange) || !strings.Contains(err.Error(), "RabbitMQ "+b.Version) {
				t.Errorf("error %v", err)
			}
		}
	})
}

// A faulty client stands for a broker that loses, doubles or hurries messages.
type faulty struct {
	bench.Client
	hand func(body []byte, handle func([]byte))

	mu    sync.Mutex
	queue string // that is consumed
}

func (f *faulty) Consumer(ctx context.Context, url string, o bench.ConsumerOptions) (bench.Consumer, error) {
	f.mu.Lock()
	f.queue = o.Queue
	f.mu.Unlock()
	k, err := f.Client.Consumer(ctx, url, o)
	return faultyConsumer{k, f.hand}, err
}

type faultyConsumer struct {
	bench.Consumer
	hand func(body []byte, handle func([]byte))
}

func (k faultyConsumer) Run(handle func([]byte)) error {
	return k.Consumer.Run(func(body []byte) { k.hand(body, handle) })
}

func TestFaultsAreReported(t *testing.T) {
	url := start(t)
	is := func(body []byte, number uint64) bool {
		s, ok := bench.ReadStamp(body)
		return ok && s.Producer == 0 && s.Number == number
	}
	for name, c := range map[string]struct {
		hand func(body []byte, handle func([]byte))
		want string
		says func(r bench.Result) bool
	}{
		"lost": {
			func(body []byte, handle func([]byte)) {
				if !is(body, 7) {
					handle(body)
				}
			},
			"1 of 500 messages were lost",
			func(r bench.Result) bool { return r.Lost == 1 && r.Received == 499 },
		},
		"doubled": {
			func(body []byte, handle func([]byte)) {
				if is(body, 7) {
					handle(body)
				}
				handle(body)
			},
			"1 of 500 messages came twice",
			func(r bench.Result) bool { return r.Duplicates == 1 && r.Received == 500 },
		},
		"early": {
			func(body []byte, handle func([]byte)) {
				if s, _ := bench.ReadStamp(body); s.Number == 7 {
					s.Due = s.Due.Add(time.Hour) // it should not have come yet
					s.Put(body)
				}
				handle(body)
			},
			"1 of 500 messages came before their time",
			func(r bench.Result) bool { return r.Early == 1 && r.Lateness.Earliest < 0 },
		},
		"foreign": {
			func(body []byte, handle func([]byte)) {
				handle(body)
				if is(body, 7) {
					handle([]byte("short"))
				}
			},
			"1 of 500 messages were not of this measurement",
			func(r bench.Result) bool { return r.Foreign == 1 && r.Received == 500 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &faulty{Client: bench.Raw{}, hand: c.hand}
			r, err := delay(bench.Delayed).Run(t.Context(), bench.Target{URL: url, Client: client, Patience: time.Second, Progress: &bench.Progress{}})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Err(); err == nil || !strings.Contains(err.Error(), c.want) || !c.says(r) {
				t.Errorf("error %v of %+v, want %q", err, r, c.want)
			}
		})
	}
}

func TestInterruptCleansUp(t *testing.T) {
	url := start(t)
	for _, w := range append(everywhere(), delayedExchange()...) {
		t.Run(fmt.Sprintf("%T %s", w, w.Name()), func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			client := &faulty{Client: bench.Raw{}, hand: func([]byte, func([]byte)) { interrupt() }}
			if b, ok := w.(bench.Backlog); ok && b.Way != bench.Queue {
				return // consumes nothing
			}
			if _, err := w.Run(ctx, bench.Target{URL: url, Client: client, Progress: &bench.Progress{}}); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if client.queue == "" {
				t.Fatal("nothing was consumed")
			}
			if exists(t, url, client.queue) {
				t.Errorf("queue %s is left", client.queue)
			}
		})
	}
}

func exists(t *testing.T, url, queue string) bool {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	_, err = ch.QueueDeclarePassive(queue, false, false, false, false, nil)
	if refusal, ok := errors.AsType[*amqp.Error](err); ok && refusal.Code == amqp.NotFound {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

func TestBurstThatWasNotPublishedInTime(t *testing.T) {
	w := delay(bench.Delayed)
	w.Burst, w.Rate, w.Most, w.Messages = true, 100, 100*time.Millisecond, 100
	_, err := w.Run(t.Context(), bench.Target{URL: start(t), Client: bench.Raw{}, Progress: &bench.Progress{}})
	if err == nil || !strings.Contains(err.Error(), "longer --delay") {
		t.Errorf("error %v", err)
	}
}

func TestErrorsOfConnecting(t *testing.T) {
	url := start(t)
	for name, c := range map[string]struct {
		url  string
		want error
	}{
		"password":     {strings.Replace(url, "guest:guest", "guest:wrong", 1), amqp.ErrCredentials},
		"virtual host": {url + "none", amqp.ErrVhost},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := throughput(bench.Transient, bench.AckAuto).Run(t.Context(), bench.Target{URL: c.url, Client: bench.Raw{}, Progress: &bench.Progress{}})
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}
