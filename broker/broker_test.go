package broker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
)

// serve starts a broker on a free port. It is closed at the end of the test, and must
// leave no goroutine behind.
func serve(t *testing.T, o broker.Options) *broker.Broker {
	t.Helper()
	b, err := broker.New(o)
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
			t.Errorf("Close: %v", err)
		}
		if err := <-served; !errors.Is(err, broker.ErrClosed) {
			t.Errorf("Serve returned %v", err)
		}
		noGoroutines(t)
	})
	for b.Addr() == nil { // Serve has hardly begun
		runtime.Gosched()
	}
	return b
}

// noGoroutines fails the test if a goroutine of the broker is left.
func noGoroutines(t *testing.T) {
	t.Helper()
	var left string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		var b bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&b, 2)
		left = ""
		for g := range strings.SplitSeq(b.String(), "\n\n") {
			if strings.Contains(g, "dormouse/broker.(") || strings.Contains(g, "dormouse/internal/") {
				left = g
			}
		}
		if left == "" {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("a goroutine is left:\n%s", left)
}

// dial opens a connection and a channel that confirms.
func dial(t *testing.T, b *broker.Broker) (*amqp.Connection, *amqp.Channel) {
	t.Helper()
	c, err := amqp.Dial(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	ch := channel(t, c)
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return c, ch
}

func channel(t *testing.T, c *amqp.Connection) *amqp.Channel {
	t.Helper()
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func declare(t *testing.T, ch *amqp.Channel, name string, args amqp.Table) {
	t.Helper()
	if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

// publish publishes persistent messages and waits for their confirms.
func publish(t *testing.T, ch *amqp.Channel, exchange, key string, bodies ...string) {
	t.Helper()
	var confirms []*amqp.DeferredConfirmation
	for _, body := range bodies {
		c, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), exchange, key, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		if ack, err := c.WaitContext(t.Context()); !ack || err != nil {
			t.Fatalf("confirm %d: %v, %v", c.DeliveryTag, ack, err)
		}
	}
}

func next(t *testing.T, deliveries <-chan amqp.Delivery) amqp.Delivery {
	t.Helper()
	select {
	case d, ok := <-deliveries:
		if !ok {
			t.Fatal("the consumer has ended")
		}
		return d
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was delivered")
	}
	panic("unreachable")
}

func get(t *testing.T, ch *amqp.Channel, queue string) string {
	t.Helper()
	d, ok, err := ch.Get(queue, true)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "(empty)"
	}
	return string(d.Body)
}

func TestPublishConsumeAck(t *testing.T) {
	b := serve(t, broker.Options{})
	_, ch := dial(t, b)
	declare(t, ch, "q", nil)
	deliveries, err := ch.Consume("q", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, ch, "", "q", "a", "b", "c")
	for _, want := range []string{"a", "b", "c"} {
		d := next(t, deliveries)
		if string(d.Body) != want || d.DeliveryMode != amqp.Persistent || d.Redelivered {
			t.Errorf("got %q, mode %d, redelivered %v; want %q", d.Body, d.DeliveryMode, d.Redelivered, want)
		}
		if err := d.Ack(false); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t, ch, "q"); got != "(empty)" {
		t.Errorf("%q is left", got)
	}
}

func TestReturn(t *testing.T) {
	b := serve(t, broker.Options{})
	_, ch := dial(t, b)
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))
	c, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "amq.topic", "nobody", true, false, amqp.Publishing{Body: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	if ack, err := c.WaitContext(t.Context()); !ack || err != nil {
		t.Fatalf("confirm: %v, %v", ack, err)
	}
	// It comes before the confirm, so it must be there.
	select {
	case r := <-returns:
		if r.ReplyCode != amqp.NoRoute || r.Exchange != "amq.topic" || r.RoutingKey != "nobody" || string(r.Body) != "x" {
			t.Errorf("got %+v", r)
		}
	default:
		t.Error("nothing was returned before the confirm")
	}
}

func TestDeadLetterAfterTTL(t *testing.T) {
	b := serve(t, broker.Options{})
	_, ch := dial(t, b)
	declare(t, ch, "wait", amqp.Table{"x-message-ttl": int64(50), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"})
	declare(t, ch, "work", nil)
	deliveries, err := ch.Consume("work", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	publish(t, ch, "", "wait", "x")
	d := next(t, deliveries)
	if since := time.Since(begin); since < 50*time.Millisecond {
		t.Errorf("it came after %v", since)
	}
	deaths, _ := d.Headers["x-death"].([]any)
	if len(deaths) != 1 || deaths[0].(amqp.Table)["reason"] != "expired" || d.Headers["x-first-death-queue"] != "wait" {
		t.Errorf("headers %v", d.Headers)
	}
}

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	for name, end := range map[string]func(*broker.Broker) error{
		"Shutdown": func(b *broker.Broker) error { return b.Shutdown(t.Context()) },
		"Close":    func(b *broker.Broker) error { return b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			b := serve(t, broker.Options{Dir: dir})
			conn, ch := dial(t, b)
			if err := ch.ExchangeDeclare("x", "topic", true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
			declare(t, ch, "q", nil)
			if err := ch.QueueBind("q", "a.*", "x", false, nil); err != nil {
				t.Fatal(err)
			}
			publish(t, ch, "x", "a.b", "1", "2", "3")
			if got := get(t, ch, "q"); got != "1" {
				t.Errorf("got %q", got)
			}
			if _, _, err := channel(t, conn).Get("q", false); err != nil { // and no ack
				t.Fatal(err)
			}
			if err := end(b); err != nil {
				t.Fatal(err)
			}

			b = serve(t, broker.Options{Dir: dir})
			_, ch = dial(t, b)
			publish(t, ch, "x", "a.c", "4")
			d, ok, err := ch.Get("q", true)
			if err != nil || !ok || string(d.Body) != "2" || !d.Redelivered {
				t.Errorf("got %q, redelivered %v, %v", d.Body, d.Redelivered, err)
			}
			for _, want := range []string{"3", "4", "(empty)"} {
				if got := get(t, ch, "q"); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

func TestShutdownTellsClients(t *testing.T) {
	b := serve(t, broker.Options{})
	conn, ch := dial(t, b)
	declare(t, ch, "q", nil)
	deliveries, err := ch.Consume("q", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	if err := b.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := <-closed; e == nil || e.Code != amqp.ConnectionForced || e.Reason != "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'" {
		t.Errorf("the client was told %v", e)
	}
	if _, open := <-deliveries; open {
		t.Error("the consumer goes on")
	}
	if _, err := amqp.Dial(b.URL()); err == nil {
		t.Error("a connection was accepted after Shutdown")
	}
	if err := b.Shutdown(t.Context()); err != nil {
		t.Errorf("the second Shutdown returned %v", err)
	}
}

func TestShutdownDoesNotWaitForEver(t *testing.T) {
	b := serve(t, broker.Options{})
	c, err := net.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returned %v", err)
	}
}

func TestUsers(t *testing.T) {
	b := serve(t, broker.Options{Users: map[string]string{"ann": "p w/d"}})
	if strings.Contains(b.URL(), "@") {
		t.Errorf("URL %s has credentials", b.URL())
	}
	login := func(user, password string) error {
		c, err := amqp.DialConfig(b.URL(), amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{Username: user, Password: password}}})
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := login("ann", "p w/d"); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][2]string{{"ann", "x"}, {"ann", ""}, {"guest", "guest"}, {"", ""}} {
		if err := login(wrong[0], wrong[1]); err == nil {
			t.Errorf("%q may connect with the password %q", wrong[0], wrong[1])
		}
	}
}

func TestSeveralListeners(t *testing.T) {
	b := serve(t, broker.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(l) }()
	c, err := amqp.Dial(fmt.Sprintf("amqp://guest:guest@%s/", l.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if l.Addr().String() == b.Addr().String() {
		t.Error("Addr is not the first listener's")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; !errors.Is(err, broker.ErrClosed) {
		t.Errorf("Serve returned %v", err)
	}
	if err := b.Serve(l); !errors.Is(err, broker.ErrClosed) {
		t.Errorf("Serve after Close returned %v", err)
	}
}

func TestFullDiskBlocksPublishers(t *testing.T) {
	b := serve(t, broker.Options{Dir: t.TempDir(), DiskFreeLimit: 1 << 60})
	conn, ch := dial(t, b)
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	if _, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", "q", false, false, amqp.Publishing{}); err != nil {
		t.Fatal(err)
	}
	if got := <-blocked; !got.Active || got.Reason != "low on disk" {
		t.Errorf("got %+v", got)
	}
	b.Close() // a blocked connection is not read, so the client could not close it
}

func TestNewRefuses(t *testing.T) {
	if _, err := broker.New(broker.Options{Users: map[string]string{"": "x"}}); err == nil || !strings.Contains(err.Error(), "Users") {
		t.Errorf("a user without a name: %v", err)
	}
	dir := t.TempDir()
	serve(t, broker.Options{Dir: dir})
	if _, err := broker.New(broker.Options{Dir: dir}); err == nil {
		t.Error("two brokers have one data folder")
	} else {
		t.Log(err)
	}
}

func Example() {
	b, err := broker.New(broker.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = b.Serve(l) }()
	c, err := amqp.Dial("amqp://guest:guest@" + l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(c.Properties["implementation"])
	// Output: Dormouse
}
