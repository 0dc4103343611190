// Package dormousetest runs Dormouse's broker inside a test, on a clock that the test
// moves: a message that is delayed by 30 minutes is there as soon as the test says that
// 30 minutes have passed.
//
//	b := dormousetest.NewBroker(t)
//	client := connect(t, b.URL()) // any AMQP 0-9-1 client
//	…
//	b.Advance(30 * time.Minute)
//
// The clock is the broker's: message TTL, queue expiry and all that is built on them,
// such as the delays and retries of package dormouse. Heartbeats and the timeouts of
// connections go by the machine's clock.
//
// Inside a testing/synctest bubble use [NewBubbleBroker]: there all of Go's time is
// virtual, so the broker needs no clock of its own, and the client's timeouts move with it.
package dormousetest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/clock"
)

// epoch is the time that a Broker's clock shows at first.
var epoch = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// Broker is a broker in memory.
type Broker struct {
	broker  *broker.Broker
	clock   *clock.Virtual  // nil inside a bubble
	memory  *memoryListener // nil outside of one
	address string
	served  chan struct{} // closed when the broker has ended
}

// NewBroker starts a broker on a free loopback port, with a clock that stands still at
// 1 January 2030 until [Broker.Advance] moves it. It logs to the test, and is closed when the test ends.
func NewBroker(t testing.TB) *Broker {
	t.Helper()
	return run(t, start)
}

// Start starts a broker as [NewBroker] does for what has no testing.TB: examples, and a TestMain whose tests
// share one broker. It logs nothing. End it with [Broker.Close].
func Start() (*Broker, error) {
	return start(slog.New(slog.DiscardHandler))
}

// NewBubbleBroker starts a broker for a testing/synctest bubble, whose clock it goes by.
// It has no port, since a bubble cannot wait for the network: let the client connect
// with [Broker.Dial]. Close it with [Broker.Close] before the bubble ends.
func NewBubbleBroker(t testing.TB) *Broker {
	t.Helper()
	return run(t, func(log *slog.Logger) (*Broker, error) {
		l := newMemoryListener()
		return serve(&Broker{memory: l}, clock.Real(), l, log)
	})
}

func run(t testing.TB, start func(log *slog.Logger) (*Broker, error)) *Broker {
	t.Helper()
	b, err := start(slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func start(log *slog.Logger) (*Broker, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("dormousetest: %w", err)
	}
	v := clock.NewVirtual(epoch)
	return serve(&Broker{clock: v}, v, l, log)
}

func serve(b *Broker, c clock.Clock, l net.Listener, log *slog.Logger) (*Broker, error) {
	b.address = l.Addr().String()
	b.served = make(chan struct{})
	var err error
	o := broker.Options{Clock: c, Logger: log}
	if b.clock != nil {
		o.ConsumerTimeout = -1 // none
	}
	if b.broker, err = broker.New(o); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("dormousetest: %w", err)
	}
	go func() {
		defer close(b.served)
		_ = b.broker.Serve(l) // ErrClosed, after Close
	}()
	return b, nil
}

// URL is what a client connects to, with the user guest. For a bubble's broker the
// address means nothing, but the rest does.
func (b *Broker) URL() string {
	return "amqp://guest:guest@" + b.address + "/"
}

// Dial connects to the broker, whatever it is told; inside a bubble it is the only way.
// It suits the Dial of amqp091-go's Config.
func (b *Broker) Dial(network, _ string) (net.Conn, error) {
	if b.memory == nil {
		return (&net.Dialer{}).Dial(network, b.address)
	}
	return b.memory.dial()
}

// Now is the time that the broker's clock shows.
func (b *Broker) Now() time.Time {
	if b.clock == nil {
		return time.Now()
	}
	return b.clock.Now()
}

// Advance moves the broker's clock by d. Everything that is due in that time has
// happened, in order and each at its moment, when it returns: messages have expired,
// gone on, and been sent to the consumers that wait. Inside a bubble it sleeps for d.
//
// A consumer timeout is due only where a queue or a consumer asks for one (x-consumer-timeout):
// RabbitMQ's 30 minutes would pass in an Advance while an acknowledgement is still on its way.
func (b *Broker) Advance(d time.Duration) {
	if b.clock == nil {
		<-time.After(d)
		return
	}
	b.clock.Advance(d)
}

// Close ends the broker. [NewBroker] does it at the end of the test.
func (b *Broker) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = b.broker.Shutdown(ctx)
	<-b.served
}
