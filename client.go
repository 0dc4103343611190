package dormouse

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/ladder"
)

// Options are the settings of a [Client]. The zero value is usable.
type Options struct {
	// Prefix begins the name of every exchange and queue that Dormouse owns. Default "dormouse".
	Prefix string
	// MaxDelay is the longest delay that the ladder can make, between a day and ten years. Default 399 days
	// 23:59:59.9. Every program that declares under one prefix must use the same value.
	MaxDelay time.Duration
	// Resolution is what delays are rounded up to: 100 ms (the default) or 1 s. It must be the same everywhere, too.
	Resolution time.Duration
	// Name is shown for the connections in the broker's management page. Default: the program's name.
	Name string
	// TLS is used for amqps URLs. Default: the system's roots and the URL's host name.
	TLS *tls.Config
	// Dial makes the network connections. Default: TCP, with a time limit of 30 s.
	Dial func(network, address string) (net.Conn, error)
	// Heartbeat is how often both sides prove that they are alive; a dead peer is noticed after three times as long.
	// Default 10 s, least 1 s.
	Heartbeat time.Duration
	// MaxInFlight bounds the messages published and not yet confirmed; a publish beyond it waits. Default 1000.
	MaxInFlight int
	// CountHeader is the header that counts failed attempts. Default "retry-count".
	CountHeader string
	// Logger gets what no error can report, such as lost connections. Nil discards.
	Logger *slog.Logger
	// Hooks are called as things happen, for metrics.
	Hooks Hooks
}

// Validate names the first setting that is wrong.
func (o Options) Validate() error {
	_, err := o.complete()
	return err
}

// complete fills in the defaults and names the first setting that is wrong.
func (o *Options) complete() (*ladder.Ladder, error) {
	if o.Name == "" {
		o.Name = filepath.Base(os.Args[0])
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 10 * time.Second
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 1000
	}
	if o.CountHeader == "" {
		o.CountHeader = headerCount
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Heartbeat < time.Second:
		return nil, fmt.Errorf("Heartbeat is %v, must be at least 1s", o.Heartbeat)
	case o.MaxInFlight < 1:
		return nil, fmt.Errorf("MaxInFlight is %d, must be at least 1", o.MaxInFlight)
	}
	l, err := ladder.New(ladder.Settings{Prefix: o.Prefix, Max: o.MaxDelay, Resolution: o.Resolution})
	if err != nil {
		return nil, fmt.Errorf("delay ladder: %w", err)
	}
	return l, nil
}

// A Client is a pair of self-healing connections to a broker, one to publish and one to consume, so that a broker
// which blocks publishers still gets acknowledgements. It is safe for concurrent use.
type Client struct {
	ladder  *ladder.Ladder
	log     *slog.Logger
	hooks   Hooks
	counter string // the header that counts failed attempts
	end     context.CancelFunc
	pub     *publisher
	publish *link
	consume *link

	mu        sync.Mutex
	declared  []Topology // to declare again
	consumers map[*Consumer]struct{}
	closed    bool
}

// Connect connects to a broker. urls is one AMQP URL or several separated by commas, which are tried in turn, now and
// at every reconnect. Each is tried once: when none answers, the joined errors are returned. ctx bounds connecting only.
func Connect(ctx context.Context, urls string, o Options) (*Client, error) {
	l, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("dormouse: options: %w", err)
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c := &Client{ladder: l, log: o.Logger, hooks: o.Hooks, counter: o.CountHeader, end: end, consumers: map[*Consumer]struct{}{}}
	newLink := func(name string) *link {
		return &link{
			name: name, urls: strings.Split(urls, ","), title: o.Name, dialer: o.Dial, tls: o.TLS, heartbeat: o.Heartbeat,
			log: o.Logger, hooks: o.Hooks, ctx: life, restore: c.restore,
		}
	}
	c.publish, c.consume = newLink("publish"), newLink("consume")
	if err := c.consume.start(ctx); err != nil {
		end()
		return nil, fmt.Errorf("dormouse: connect: %w", err)
	}
	if err := c.publish.start(ctx); err != nil {
		end()
		return nil, errors.Join(fmt.Errorf("dormouse: connect: %w", err), c.consume.close(ctx))
	}
	c.pub = newPublisher(c.publish, l, o.MaxInFlight, o.Hooks)
	return c, nil
}

// Shutdown ends the client in order: it stops all consumers as [Consumer.Shutdown] does, waits for the confirms of
// what was published, and closes the connections. It returns ctx's error when ctx ends first; the client is closed then
// too, and what was not settled comes back to its queue.
func (c *Client) Shutdown(ctx context.Context) error {
	consumers := c.stop()
	errs := make([]error, len(consumers), len(consumers)+3)
	var wg sync.WaitGroup
	for i, k := range consumers {
		wg.Go(func() { errs[i] = k.Shutdown(ctx) })
	}
	wg.Wait()
	errs = append(errs, c.pub.flush(ctx))
	c.end()
	return errors.Join(append(errs, c.consume.close(ctx), c.publish.close(ctx))...)
}

// Close closes the connections at once. Handlers' contexts end; their messages come back to their queues.
func (c *Client) Close() error {
	consumers := c.stop()
	c.end()
	for _, l := range []*link{c.consume, c.publish} {
		<-l.ended
		if conn := l.current(); conn != nil {
			conn.kill()
		}
	}
	for _, k := range consumers {
		k.abandon()
	}
	return nil
}

// stop refuses new consumers and returns those there are.
func (c *Client) stop() []*Consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	consumers := make([]*Consumer, 0, len(c.consumers))
	for k := range c.consumers {
		consumers = append(consumers, k)
	}
	return consumers
}

// onChannel runs do on a channel of its own. When ctx ends the channel is closed, which ends do.
func onChannel(ctx context.Context, conn *connection, do func(*amqp.Channel) error) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = ch.Close() })
	err = do(ch)
	if !stop() && err != nil {
		return context.Cause(ctx)
	}
	if closing := ch.Close(); err == nil && closing != nil && !errors.Is(closing, amqp.ErrClosed) {
		err = closing
	}
	return err
}
