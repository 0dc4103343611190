package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/wire"
)

// Target is a broker that is to be measured, and how.
type Target struct {
	// URL is where it is, or several places separated by commas.
	URL string
	// Client makes the load.
	Client Client
	// Process is the broker's, if it is known.
	Process Process
	// Restarts are the ways to restart the broker, if there are any.
	Restarts []Restart
	// Patience is how long nothing may arrive, though everything is due, until what is missing counts as lost. 0 is 10 s.
	Patience time.Duration
	// Disposable says that the broker is only for this measurement: after an interrupt nothing need be cleaned up.
	Disposable bool
	// Progress is told how far a measurement has come. It must be set.
	Progress *Progress
}

// Restart is one way to restart a broker.
type Restart struct {
	Name string // "clean stop"
	// Do ends the broker and begins to start it. It returns where it will be, its process, and when the start began.
	Do func(ctx context.Context) (url string, p Process, began time.Time, err error)
}

// Progress is how far a measurement has come. It is safe for concurrent use.
type Progress struct {
	phase               atomic.Pointer[string]
	published, received atomic.Int64
}

// Now returns what is being done, and how many messages have been published and received since that began.
func (p *Progress) Now() (phase string, published, received int64) {
	if s := p.phase.Load(); s != nil {
		phase = *s
	}
	return phase, p.published.Load(), p.received.Load()
}

func (p *Progress) begin(phase string) {
	p.published.Store(0)
	p.received.Store(0)
	p.phase.Store(&phase)
}

// ErrNoDelayedExchange is wrapped by the error for a broker that lacks exchanges of the type x-delayed-message.
var ErrNoDelayedExchange = errors.New("no exchange type x-delayed-message")

// A site is what a measurement has declared on a broker. Its methods are for one goroutine.
type site struct {
	url              string
	name             string // what all its names begin with
	disposable       bool
	c                *connection
	queues, exchange []string
}

// cleanPatience bounds how long cleaning up may take.
const cleanPatience = 2 * time.Minute

func openSite(ctx context.Context, t Target) (*site, error) {
	c, err := connect(ctx, t.URL)
	if err != nil {
		return nil, err
	}
	return &site{url: t.URL, disposable: t.Disposable, name: fmt.Sprintf("dormouse.bench.%08x", rand.Uint32()), c: c}, nil
}

// declareQueue declares a durable queue of that type (classic or quorum) and returns its full name.
func (s *site) declareQueue(name, kind string, arguments wire.Table) (string, error) {
	name = s.name + "." + name
	s.queues = append(s.queues, name)
	arguments = append(wire.Table{{Name: "x-queue-type", Value: kind}}, arguments...)
	_, err := call[*wire.QueueDeclareOk](s.c, 1, &wire.QueueDeclare{Queue: name, Durable: true, Arguments: arguments})
	return name, err
}

// declareDelayed declares an exchange of type x-delayed-message that routes directly to queue, and returns its full name.
func (s *site) declareDelayed(queue string) (string, error) {
	name := s.name + ".delayed"
	s.exchange = append(s.exchange, name)
	_, err := call[*wire.ExchangeDeclareOk](s.c, 1, &wire.ExchangeDeclare{
		Exchange: name, Type: "x-delayed-message", Durable: true,
		Arguments: wire.Table{{Name: "x-delayed-type", Value: "direct"}},
	})
	if e, ok := errors.AsType[*amqp.Error](err); ok && strings.Contains(e.Reason, "x-delayed-message") {
		return "", fmt.Errorf("%s: %w", s.c.product, ErrNoDelayedExchange)
	}
	if err != nil {
		return "", err
	}
	_, err = call[*wire.QueueBindOk](s.c, 1, &wire.QueueBind{Queue: queue, Exchange: name, RoutingKey: queue})
	return name, err
}

// depth is how many messages are ready in a queue.
func (s *site) depth(queue string) (int64, error) {
	ok, err := call[*wire.QueueDeclareOk](s.c, 1, &wire.QueueDeclare{Queue: queue, Passive: true})
	if err != nil {
		return 0, err
	}
	return int64(ok.MessageCount), nil
}

// reopen takes a fresh connection, after a restart of the broker.
func (s *site) reopen(ctx context.Context, url string) error {
	c, err := connect(ctx, url)
	if err != nil {
		return err
	}
	s.c.close()
	s.url, s.c = url, c
	return nil
}

// clean deletes all that was declared, also when ctx has ended, and closes the connection.
func (s *site) clean(ctx context.Context) error {
	s.c.close()
	if len(s.queues)+len(s.exchange) == 0 || s.disposable && ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanPatience)
	defer cancel()
	c, err := connect(ctx, s.url)
	if err != nil {
		return s.left(err)
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.close)()
	for _, x := range s.exchange {
		if _, err := call[*wire.ExchangeDeleteOk](c, 1, &wire.ExchangeDelete{Exchange: x}); err != nil {
			return s.left(err)
		}
	}
	for _, q := range s.queues {
		if _, err := call[*wire.QueueDeleteOk](c, 1, &wire.QueueDelete{Queue: q}); err != nil {
			return s.left(err)
		}
	}
	return nil
}

func (s *site) left(err error) error {
	return fmt.Errorf("what the measurement has declared is left on the broker, its names begin with %s: %w", s.name, err)
}
