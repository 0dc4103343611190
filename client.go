package dormouse

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"
)

// Options are the settings of a [Client]. The zero value is usable.
type Options struct {
	// Prefix begins the name of every exchange and queue that Dormouse owns. Default "dormouse".
	Prefix string
	// MaxDelay is the longest delay that the ladder can make, between a day and ten years. Default 399 days
	// 23:59:59.9. Every program that declares under one prefix must use the same value.
	MaxDelay time.Duration
	// Resolution is what delays are rounded up to: 100 ms (the default) or 1 s.
	Resolution time.Duration
	// Name is shown for the connections in the broker's management page. Default: the program's name.
	Name string
	// TLS is used for amqps URLs. Default: the system's roots and the URL's host name.
	TLS *tls.Config
	// Heartbeat is how often both sides prove that they are alive; a dead peer is noticed after twice the time.
	// Default 10 s.
	Heartbeat time.Duration
	// MaxInFlight bounds the messages published and not yet confirmed; a publish beyond it waits. Default 1000.
	MaxInFlight int
	// Logger gets what no error can report, such as lost connections. Nil discards.
	Logger *slog.Logger
	// Hooks are called as things happen, for metrics.
	Hooks Hooks
}

// A Client is a pair of self-healing connections to a broker, one to publish and one to consume, so that a broker
// which blocks publishers still gets acknowledgements. It is safe for concurrent use.
type Client struct{}

// Connect connects to a broker. urls is one AMQP URL or several separated by commas, which are tried in turn, now and
// at every reconnect. Each is tried once: when none answers, the joined errors are returned. ctx bounds connecting only.
func Connect(ctx context.Context, urls string, o Options) (*Client, error) {
	return nil, errors.ErrUnsupported
}

// Shutdown ends the client in order: it stops all consumers as [Consumer.Shutdown] does, waits for the confirms of
// what was published, and closes the connections. It returns ctx's error when ctx ends first; the client is closed then
// too, and what was not settled comes back to its queue.
func (c *Client) Shutdown(ctx context.Context) error { return errors.ErrUnsupported }

// Close closes the connections at once. Handlers' contexts end; their messages come back to their queues.
func (c *Client) Close() error { return errors.ErrUnsupported }
