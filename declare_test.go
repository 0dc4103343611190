package dormouse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestDeclareIsIdempotentAndExplainsDifferences(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		x, q, w := b.name("x"), b.name("q"), b.name("w")
		topology := Topology{
			Exchanges:   []Exchange{{Name: x}},
			Queues:      []Queue{{Name: q, Bindings: []Binding{{Exchange: x, RoutingKey: "#"}}}},
			FixedDelays: []FixedDelay{{Queue: w, Delay: time.Minute, RoutingKey: q}},
		}
		for range 2 {
			b.declare(c, topology)
		}
		mismatch := func(change func(*Topology), want MismatchError) {
			t.Helper()
			other := topology
			change(&other)
			var got *MismatchError
			if err := c.Declare(t.Context(), other); !errors.As(err, &got) {
				t.Fatalf("want %v, got %v", &want, err)
			}
			got.Err = nil
			if *got != want {
				t.Errorf("%+v, want %+v", *got, want)
			}
		}
		mismatch(func(t *Topology) { t.FixedDelays = []FixedDelay{{Queue: w, Delay: time.Hour, RoutingKey: q}} },
			MismatchError{Kind: "queue", Name: w, Property: "x-message-ttl", Want: "3600000", Have: "60000"})
		mismatch(func(t *Topology) { t.Queues = []Queue{{Name: q, Type: Classic}} },
			MismatchError{Kind: "queue", Name: ParkedQueue(q), Property: "x-queue-type", Want: "classic", Have: "quorum"})
		mismatch(func(t *Topology) { t.Exchanges = []Exchange{{Name: x, Kind: "fanout"}} },
			MismatchError{Kind: "exchange", Name: x, Property: "type", Want: "fanout", Have: "topic"})
		mismatch(func(t *Topology) { t.LadderType = Classic },
			MismatchError{Kind: "queue", Name: testPrefix + ".unrouted", Property: "x-queue-type", Want: "classic", Have: "quorum"})
		if err := c.Declare(t.Context(), topology); err != nil {
			t.Error("after all that:", err)
		}
	})
}

func TestClassicLadder(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		prefix := testPrefix + ".classic"
		t.Cleanup(func() {
			if err := removeLadder(b.url, prefix); err != nil {
				t.Error(err)
			}
		})
		c := b.connect(func(o *Options) { o.Prefix, o.MaxDelay = prefix, 24*time.Hour })
		q := b.name("q")
		b.declare(c, Topology{LadderType: Classic, Queues: []Queue{{Name: q, Type: Classic}}})
		sent := time.Now()
		if err := c.Publish(t.Context(), Message{RoutingKey: q, After: 1100 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		receive(t, "message", b.consumeRaw(q))
		if took := time.Since(sent); took < 1100*time.Millisecond || took > 4*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// The classic pattern: one queue for each delay, and a worker whose rejected messages come back.
func TestFixedDelays(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		work, workQueue, delay, delayQueue, named := b.name("worker"), b.name("worker-queue"), b.name("delay"), b.name("delay-queue"), b.name("delayed_300")
		b.declare(c, Topology{
			WithoutLadder: true,
			Exchanges:     []Exchange{{Name: work, Alternate: "amq.fanout"}, {Name: delay, Alternate: "amq.fanout"}},
			Queues:        []Queue{{Name: workQueue, DeadLetterExchange: delay, Bindings: []Binding{{Exchange: work, RoutingKey: "#"}}}},
			FixedDelays: []FixedDelay{
				{Queue: delayQueue, Delay: 500 * time.Millisecond, Exchange: work, Bindings: []Binding{{Exchange: delay, RoutingKey: "#"}}},
				{Queue: named, Delay: 300 * time.Millisecond, Exchange: work, RoutingKey: "late"},
			},
		})
		sent := time.Now()
		if err := c.Publish(t.Context(), Message{RoutingKey: named, MessageID: "m"}); err != nil {
			t.Fatal(err)
		}
		ds, err := b.channel().Consume(workQueue, "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := 300 * time.Millisecond
		for i := range 4 {
			d := receive(t, "message", ds)
			if took := time.Since(sent); took < want || took > want+2*time.Second {
				t.Errorf("lap %d took %v, want %v", i, took, want)
			}
			if d.RoutingKey != "late" || d.MessageId != "m" {
				t.Errorf("lap %d: %q %q", i, d.RoutingKey, d.MessageId)
			}
			sent, want = time.Now(), 500*time.Millisecond
			if err := d.Reject(false); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A message with priority must not make others wait: in the quorum queues of RabbitMQ 4.0 to 4.2 it overtakes them, and only
// the head of a queue expires.
func TestPriorityDoesNotBlockLanes(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.workQueue(c, Quorum)
		first := time.Now()
		if err := c.Publish(t.Context(), Message{RoutingKey: q, After: 2 * time.Second, MessageID: "low"}); err != nil {
			t.Fatal(err)
		}
		if err := c.Publish(t.Context(), Message{RoutingKey: q, After: time.Second, MessageID: "tick"}); err != nil {
			t.Fatal(err)
		}
		got := b.consumeRaw(q)
		if d := receive(t, "tick", got); d.MessageId != "tick" {
			t.Fatalf("first came %s", d.MessageId)
		}
		if err := c.Publish(t.Context(), Message{RoutingKey: q, After: 2 * time.Second, MessageID: "high", Priority: 9}); err != nil {
			t.Fatal(err)
		}
		if d := receive(t, "low", got); d.MessageId != "low" || time.Since(first) > 2900*time.Millisecond {
			t.Errorf("%s after %v, want low after 2s", d.MessageId, time.Since(first))
		}
		receive(t, "high", got)
	})
}

func TestPublishWhileTheBrokerBlocks(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		c := b.connect()
		q := b.workQueue(c, Quorum)
		gate := &c.publish.current().gate
		gate.set(true, "low on memory")
		publishError(t, c.Publish(within(t, 50*time.Millisecond), Message{RoutingKey: q}), ErrNotSent, false)
		done := make(chan error, 1)
		go func() { done <- c.Publish(t.Context(), Message{RoutingKey: q}) }()
		gate.set(false, "")
		if err := receive(t, "publish", done); err != nil {
			t.Error(err)
		}
	})
}

// A user who may only publish and consume can do both where somebody else has declared everything.
func TestLeastPrivileges(t *testing.T) {
	onEachBroker(t, func(t *testing.T, b *testBroker) {
		admin := b.connect()
		q := b.workQueue(admin, Quorum)
		limited := b.limitedUser(".*", ".*", "")
		attempts := make(chan AttemptEvent, 10)
		c := b.connectTo(limited, withAttempts(attempts))
		k := mustConsume(t, c, q, ConsumeOptions{Retry: RetrySteps(100 * time.Millisecond)},
			func(context.Context, *Delivery) error { return errors.New("no") })
		if err := c.Publish(t.Context(), Message{RoutingKey: q, After: 100 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []Outcome{OutcomeRetried, OutcomeParked} {
			if e := receive(t, string(want), attempts); e.Outcome != want {
				t.Errorf("ended as %+v, want %s", e, want)
			}
		}
		if err := k.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		writeless := b.connectTo(b.limitedUser(".*", "", ".*"))
		e := publishError(t, writeless.Publish(t.Context(), Message{RoutingKey: q}), ErrRefused, false)
		if !isCode(e.Err, amqp.AccessRefused) {
			t.Error(e.Err)
		}
	})
}

// limitedUser creates a user over the management API and returns the URL to log in as that user.
func (b *testBroker) limitedUser(read, write, configure string) string {
	b.t.Helper()
	u, err := url.Parse(b.url)
	if err != nil {
		b.t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		b.t.Fatal(err)
	}
	api := "http://" + net.JoinHostPort(u.Hostname(), strconv.Itoa(port+10000)) + "/api/"
	name := b.name("user")
	call := func(method, path string, body any) {
		encoded, _ := json.Marshal(body)
		r, err := http.NewRequestWithContext(b.t.Context(), method, api+path, bytes.NewReader(encoded))
		if err != nil {
			b.t.Fatal(err)
		}
		password, _ := u.User.Password()
		r.SetBasicAuth(u.User.Username(), password)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			b.t.Skip("no management API:", err)
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 {
			b.t.Fatalf("%s %s: %s", method, path, resp.Status)
		}
	}
	call(http.MethodPut, "users/"+name, map[string]any{"password": "secret", "tags": ""})
	call(http.MethodPut, "permissions/%2F/"+name, map[string]any{"configure": configure, "write": write, "read": read})
	b.t.Cleanup(func() {
		r, _ := http.NewRequest(http.MethodDelete, api+"users/"+name, nil)
		r.SetBasicAuth("guest", "guest")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	})
	u.User = url.UserPassword(name, "secret")
	return u.String()
}
