package bench

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Library is the Client that uses amqp091-go.
type Library struct{}

type libraryPublisher struct {
	conn   *amqp.Connection
	ch     *amqp.Channel
	o      PublisherOptions
	sent   uint64
	window *window
}

// dialLibrary connects to the first of the addresses that answers.
func dialLibrary(urls string) (conn *amqp.Connection, ch *amqp.Channel, err error) {
	for one := range strings.SplitSeq(urls, ",") {
		if conn, err = amqp.Dial(one); err == nil {
			break
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if ch, err = conn.Channel(); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, ch, nil
}

// Publisher implements [Client].
func (Library) Publisher(_ context.Context, url string, o PublisherOptions) (Publisher, error) {
	conn, ch, err := dialLibrary(url)
	if err != nil {
		return nil, err
	}
	p := &libraryPublisher{conn: conn, ch: ch, o: o, window: newWindow()}
	if o.InFlight > 0 {
		if err := ch.Confirm(false); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		go p.read(ch.NotifyPublish(make(chan amqp.Confirmation, o.InFlight)), ch.NotifyClose(make(chan *amqp.Error, 1)))
	}
	return p, nil
}

// read takes the confirms.
func (p *libraryPublisher) read(confirms <-chan amqp.Confirmation, closed <-chan *amqp.Error) {
	for c := range confirms {
		if !c.Ack {
			p.window.end(errNacked)
			return
		}
		p.window.confirm(c.DeliveryTag, false)
	}
	if err := <-closed; err != nil {
		p.window.end(err)
		return
	}
	p.window.end(amqp.ErrClosed)
}

func (p *libraryPublisher) Publish(m Message) error {
	if p.o.InFlight > 0 {
		if err := p.window.await(p.sent, p.o.InFlight); err != nil {
			return err
		}
	}
	p.sent++
	publishing := amqp.Publishing{DeliveryMode: amqp.Transient, Body: m.Body}
	if p.o.Persistent {
		publishing.DeliveryMode = amqp.Persistent
	}
	if m.Expiration > 0 {
		publishing.Expiration = strconv.FormatInt(m.Expiration, 10)
	}
	if m.Delay > 0 {
		publishing.Headers = amqp.Table{"x-delay": m.Delay}
	}
	if m.Copy != "" {
		publishing.Headers = amqp.Table{"BCC": []any{m.Copy}}
	}
	err := p.ch.PublishWithContext(context.Background(), p.o.Exchange, p.o.Key, false, false, publishing)
	if errors.Is(err, amqp.ErrClosed) {
		return p.window.reason(err)
	}
	return err
}

func (p *libraryPublisher) Flush() error { return nil }

func (p *libraryPublisher) Wait() error {
	if p.o.InFlight == 0 {
		return nil
	}
	return p.window.await(p.sent, 1)
}

func (p *libraryPublisher) Close() { _ = p.conn.Close() }

type libraryConsumer struct {
	conn       *amqp.Connection
	o          ConsumerOptions
	deliveries <-chan amqp.Delivery
	lost       <-chan *amqp.Error
	closed     atomic.Bool
}

// Consumer implements [Client].
func (Library) Consumer(_ context.Context, url string, o ConsumerOptions) (Consumer, error) {
	conn, ch, err := dialLibrary(url)
	if err != nil {
		return nil, err
	}
	k := &libraryConsumer{conn: conn, o: o, lost: ch.NotifyClose(make(chan *amqp.Error, 1))}
	if o.Verdict != AckAuto && o.Prefetch > 0 {
		err = ch.Qos(o.Prefetch, 0, false)
	}
	if err == nil {
		k.deliveries, err = ch.Consume(o.Queue, "c", o.Verdict == AckAuto, false, false, false, nil)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return k, nil
}

// Run implements [Consumer].
func (k *libraryConsumer) Run(handle func(body []byte)) error {
	var gathered int
	for d := range k.deliveries {
		handle(d.Body)
		var err error
		switch k.o.Verdict {
		case AckEach:
			err = d.Ack(false)
		case RejectIt:
			err = d.Reject(false)
		case AckMany:
			if gathered++; gathered >= k.o.Prefetch/4 || len(k.deliveries) == 0 {
				gathered = 0
				err = d.Ack(true)
			}
		case AckAuto:
		}
		if err != nil && !k.closed.Load() {
			return err
		}
	}
	if k.closed.Load() {
		return nil
	}
	if err := <-k.lost; err != nil {
		return err
	}
	return errors.New("the broker has cancelled the consumer: its queue is gone")
}

// Close implements [Consumer].
func (k *libraryConsumer) Close() {
	k.closed.Store(true)
	_ = k.conn.Close()
}
