package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse"
)

const concurrency = 32 // handlers at once, for each queue

// Rabbit carries messages through a broker, by the client library.
type Rabbit struct {
	url   string
	names Names
	kind  dormouse.QueueType
	c     *dormouse.Client
}

// Settings are what a run needs of a broker.
type Settings struct {
	// URL is where the broker is, or several places separated by commas.
	URL string
	// Run is a name for the run that no other has.
	Run string
	// Kind is the type of the run's queues and of the ladder's lanes.
	Kind dormouse.QueueType
	// Prefix is what the names of the ladder begin with.
	Prefix string
}

// Connect connects to the broker.
func Connect(ctx context.Context, s Settings) (*Rabbit, error) {
	c, err := dormouse.Connect(ctx, s.URL, dormouse.Options{Name: "dormouse demo", Prefix: s.Prefix})
	if err != nil {
		return nil, err
	}
	return &Rabbit{url: s.URL, names: NewNames(s.Run), kind: s.Kind, c: c}, nil
}

// Close closes the connection at once.
func (r *Rabbit) Close() error { return r.c.Close() }

// Declare implements [Courier].
func (r *Rabbit) Declare(ctx context.Context) error {
	return r.c.Declare(ctx, dormouse.Topology{
		LadderType: r.kind,
		Exchanges:  []dormouse.Exchange{{Name: r.names.Exchange, Kind: amqp.ExchangeTopic}},
		Queues: []dormouse.Queue{
			{Name: r.names.Orders, Type: r.kind, Bindings: []dormouse.Binding{{Exchange: r.names.Exchange, RoutingKey: Binding}}},
			{Name: r.names.Emails, Type: r.kind},
		},
	})
}

// Publish implements [Courier].
func (r *Rabbit) Publish(ctx context.Context, m Message) error {
	return r.c.Publish(ctx, dormouse.Message{
		Exchange:    m.Exchange,
		RoutingKey:  m.Key,
		After:       m.Delay,
		MessageID:   m.ID,
		ContentType: "text/plain",
		Body:        fmt.Appendf(nil, "message %s, delayed by %s", m.ID, m.Delay),
	})
}

// Work implements [Courier].
func (r *Rabbit) Work(ctx context.Context, handle func(context.Context, Arrival) error) error {
	handler := func(ctx context.Context, d *dormouse.Delivery) error {
		return handle(ctx, Arrival{ID: d.MessageID, Queue: d.Queue, Key: d.RoutingKey, Attempt: d.Attempt})
	}
	var consumers []*dormouse.Consumer
	for _, queue := range []string{r.names.Orders, r.names.Emails} {
		consumer, err := r.c.Consume(ctx, queue, handler, dormouse.ConsumeOptions{
			Retry:       dormouse.RetrySteps(Waits()...),
			Concurrency: concurrency,
			Timeout:     Deadline,
			Grace:       Grace,
		})
		if err != nil {
			return err
		}
		consumers = append(consumers, consumer)
	}
	select {
	case <-consumers[0].Done():
		return errors.New("the consumer ended by itself")
	case <-consumers[1].Done():
		return errors.New("the consumer ended by itself")
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyUp)
	defer cancel()
	return errors.Join(consumers[0].Shutdown(ctx), consumers[1].Shutdown(ctx))
}

// Parked implements [Courier].
func (r *Rabbit) Parked(ctx context.Context) ([]Parked, error) {
	var parked []Parked
	for _, queue := range []string{r.names.Orders, r.names.Emails} {
		for m, err := range r.c.Parked(ctx, queue, dormouse.Selection{}) {
			if err != nil {
				return nil, err
			}
			parked = append(parked, Parked{
				ID: m.ID, Queue: m.Queue, Key: m.RoutingKey,
				Reason: string(m.Reason), Error: m.Error, Attempts: m.Attempts,
			})
		}
	}
	return parked, nil
}

// Remove implements [Courier]. It closes the connection first, which would declare everything again when it is lost.
func (r *Rabbit) Remove(ctx context.Context) error {
	if err := r.c.Close(); err != nil && !errors.Is(err, dormouse.ErrClosed) {
		return err
	}
	removed := make(chan error, 1)
	go func() { removed <- r.remove() }()
	select {
	case err := <-removed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Rabbit) remove() error {
	var connection *amqp.Connection
	var err error
	for one := range strings.SplitSeq(r.url, ",") {
		if connection, err = amqp.Dial(one); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	for _, queue := range []string{r.names.Orders, r.names.Emails} {
		for _, name := range []string{queue, queue + ".parked"} {
			if _, err := channel.QueueDelete(name, false, false, false); err != nil {
				return err
			}
		}
	}
	return channel.ExchangeDelete(r.names.Exchange, false, false)
}
