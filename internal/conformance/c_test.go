package conformance

import (
	"crypto/rand"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// patience is how long a case waits for something that must happen. A case that passes never waits that long.
const patience = 20 * time.Second

// The kinds of queue.
const (
	classic = "classic"
	quorum  = "quorum"
)

// C is what a case works with: a connection of its own, names that nobody else uses, and helpers that end the case
// when the broker does what it must not.
type C struct {
	*testing.T
	target
	prefix string
	conn   *amqp.Connection
	ch     *amqp.Channel // for what must succeed
	pub    *publisher

	leftovers []func(ch *amqp.Channel) error
	seen      *result
}

func newC(t *testing.T, to target, seen *result) *C {
	c := &C{T: t, target: to, prefix: "conf." + rand.Text()[:8] + ".", seen: seen}
	c.Cleanup(func() { seen.passed = !c.Failed() && !c.Skipped() })
	c.Cleanup(c.cleanUp) // registered first, so it runs when the case's connections are closed
	c.conn = c.Dial()
	c.ch = c.Channel()
	return c
}

// Deviates tells whether this is the embedded broker, where it differs from RabbitMQ 4.3 on purpose. The reason is for
// users to read.
func (c *C) Deviates(reason string) bool {
	c.Helper()
	if reason == "" {
		c.Fatal("a deviation without a reason")
	}
	if c.embedded {
		c.seen.deviation = reason
	}
	return c.embedded
}

// Skip ends a case that means nothing on this broker.
func (c *C) Skip(reason string) {
	c.Helper()
	c.seen.skipped = reason
	c.T.Skip(reason)
}

// Dial opens another connection.
func (c *C) Dial() *amqp.Connection {
	c.Helper()
	return c.dial(c.url)
}

func (c *C) dial(url string) *amqp.Connection {
	c.Helper()
	conn, err := amqp.DialConfig(url, amqp.Config{
		Heartbeat:  30 * time.Second,
		Properties: amqp.Table{"connection_name": c.Name()},
	})
	c.OK(err)
	c.Cleanup(func() {
		if err := conn.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) {
			c.Logf("close: %v", err)
		}
	})
	return conn
}

// Channel opens another channel on the case's connection.
func (c *C) Channel() *amqp.Channel {
	c.Helper()
	return c.ChannelOn(c.conn)
}

// ChannelOn opens a channel on the given connection.
func (c *C) ChannelOn(conn *amqp.Connection) *amqp.Channel {
	c.Helper()
	ch, err := conn.Channel()
	c.OK(err)
	return ch
}

// OK ends the case when err is an error.
func (c *C) OK(err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("unexpected: %s", c.plain(err.Error()))
	}
}

// Unique makes a name of this case alone. Observations show it without what makes it unique.
func (c *C) Unique(alias string) string { return c.prefix + alias }

// plain takes out what makes names unique.
func (c *C) plain(s string) string { return strings.ReplaceAll(s, c.prefix, "") }

// Queue declares a durable queue. Its full name is returned.
func (c *C) Queue(alias, kind string, args amqp.Table) string {
	c.Helper()
	name := c.Unique(alias)
	c.deleteLater(func(ch *amqp.Channel) error { return deleteQueue(ch, name) })
	_, err := c.ch.QueueDeclare(name, true, false, false, false, kindArgs(kind, args))
	c.OK(err)
	return name
}

// kindArgs adds the queue type to the arguments.
func kindArgs(kind string, args amqp.Table) amqp.Table {
	if kind == classic {
		return args
	}
	with := maps.Clone(args)
	if with == nil {
		with = amqp.Table{}
	}
	with[amqp.QueueTypeArg] = kind
	return with
}

func deleteQueue(ch *amqp.Channel, name string) error {
	_, err := ch.QueueDelete(name, false, false, false)
	return err
}

// Exchange declares a durable exchange. Its full name is returned.
func (c *C) Exchange(alias, kind string, args amqp.Table) string {
	c.Helper()
	name := c.Unique(alias)
	c.deleteLater(func(ch *amqp.Channel) error { return ch.ExchangeDelete(name, false, false) })
	c.OK(c.ch.ExchangeDeclare(name, kind, true, false, false, false, args))
	return name
}

// deleteLater has something done on a fresh channel when the case is over.
func (c *C) deleteLater(del func(ch *amqp.Channel) error) { c.leftovers = append(c.leftovers, del) }

func (c *C) cleanUp() {
	if len(c.leftovers) == 0 {
		return
	}
	conn, err := amqp.Dial(c.url)
	if err != nil {
		c.Errorf("clean up: %v", err)
		return
	}
	defer conn.Close()
	for _, del := range c.leftovers {
		ch, err := conn.Channel()
		if err == nil {
			err = del(ch)
		}
		if err != nil {
			c.Errorf("clean up: %s", c.plain(err.Error()))
			return
		}
		ch.Close()
	}
}

// Bind binds a queue.
func (c *C) Bind(queue, key, exchange string, args amqp.Table) {
	c.Helper()
	c.OK(c.ch.QueueBind(queue, key, exchange, false, args))
}

// Refused runs do on a channel of its own, waits until the broker has dealt with it, and returns the exception, or
// "" if there was none.
func (c *C) Refused(do func(ch *amqp.Channel) error) string {
	c.Helper()
	return c.refusedOn(c.conn, do)
}

// Closed is like Refused, with a connection of its own, for exceptions that close the connection.
func (c *C) Closed(do func(ch *amqp.Channel) error) string {
	c.Helper()
	return c.refusedOn(c.Dial(), do)
}

func (c *C) refusedOn(conn *amqp.Connection, do func(ch *amqp.Channel) error) string {
	c.Helper()
	ch := c.ChannelOn(conn)
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	err := do(ch)
	if err == nil {
		err = ch.Qos(0, 0, false) // answered only after what came before it
	}
	if errors.Is(err, amqp.ErrClosed) {
		// The client noticed only that the channel is closed; the broker's own words are in closed.
		select {
		case e := <-closed:
			err = e
		case <-time.After(patience):
		}
	}
	if err == nil {
		c.OK(ch.Close())
		return ""
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok && e.Server {
		return c.plain(errorText(e))
	}
	c.Fatalf("no answer of the broker but: %v", err)
	return ""
}
