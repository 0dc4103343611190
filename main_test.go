package dormouse

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/ladder"
)

// testPrefix keeps the ladder of this run apart from a real one, and from that of another run, on the same broker.
var testPrefix = "dmroot." + rand.Text()[:6]

const (
	// patience is how long a test waits for an event before it fails.
	patience = 30 * time.Second
)

func TestMain(m *testing.M) {
	if work := os.Getenv(workerEnv); work != "" {
		runWorker(work)
		return
	}
	embedded, err := broker.New(broker.Options{DiskFreeLimit: -1})
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { _ = embedded.Serve(listener) }()
	// The worker processes of the tests get it by the environment, too.
	urls := "amqp://guest:guest@" + listener.Addr().String() + "/"
	if others := os.Getenv(brokersEnv); others != "" {
		urls += "," + others
	}
	if err := os.Setenv(brokersEnv, urls); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, u := range brokerURLs() {
		if err := removeLadder(u, testPrefix); err != nil {
			fmt.Fprintln(os.Stderr, "cleaning up:", err)
		}
	}
	_ = embedded.Close()
	os.Exit(code)
}

// brokersEnv lists AMQP URLs of further brokers to test on, separated by commas.
const brokersEnv = "DORMOUSE_TEST_AMQP"

// brokerURLs lists the brokers to test on, the embedded one first.
func brokerURLs() []string { return strings.Split(os.Getenv(brokersEnv), ",") }

// onEachBroker runs a test on every broker there is.
func onEachBroker(t *testing.T, test func(t *testing.T, b *testBroker)) {
	t.Helper()
	for _, u := range brokerURLs() {
		parsed, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		name := parsed.Host
		if u == brokerURLs()[0] {
			name = "embedded"
		}
		t.Run(name, func(t *testing.T) {
			conn, err := amqp.Dial(u)
			if err != nil {
				t.Fatalf("%s: %v", parsed.Redacted(), err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			test(t, &testBroker{t: t, url: u, conn: conn})
		})
	}
}

// A testBroker is a broker as one test sees it, with a connection beside the client's to look at things and to spoil them.
type testBroker struct {
	t    testing.TB
	url  string
	conn *amqp.Connection
}

// channel opens a channel for the test's own doings.
func (b *testBroker) channel() *amqp.Channel {
	b.t.Helper()
	ch, err := b.conn.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = ch.Close() })
	return ch
}

// name makes up a name and removes the queues and exchanges that are called so, or begin so as declared here, at the end.
func (b *testBroker) name(what string) string {
	name := "dmroot." + what + "." + rand.Text()[:8]
	b.t.Cleanup(func() { b.remove(name) })
	return name
}

func (b *testBroker) remove(name string) {
	for _, q := range []string{name, ParkedQueue(name)} {
		if ch, err := b.conn.Channel(); err == nil {
			_, _ = ch.QueueDelete(q, false, false, false)
			_ = ch.Close()
		}
	}
	if ch, err := b.conn.Channel(); err == nil {
		_ = ch.ExchangeDelete(name, false, false)
		_ = ch.Close()
	}
}

// ready counts the messages in a queue.
func (b *testBroker) ready(queue string) int {
	b.t.Helper()
	ch, err := b.conn.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := ch.Close(); err != nil {
		b.t.Fatal(err)
	}
	return q.Messages
}

// until asks again and again whether something has come about that no event tells of.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s: not in %v", what, patience)
		}
	}
}

// connect connects a client with a ladder declared. Options may be nil.
func (b *testBroker) connect(adjust ...func(*Options)) *Client {
	b.t.Helper()
	return b.connectTo(b.url, adjust...)
}

func (b *testBroker) connectTo(urls string, adjust ...func(*Options)) *Client {
	b.t.Helper()
	o := Options{Prefix: testPrefix, Name: "dormouse test"}
	if testing.Verbose() {
		o.Logger = slog.New(slog.NewTextHandler(b.t.Output(), nil))
	}
	for _, f := range adjust {
		f(&o)
	}
	c, err := Connect(b.t.Context(), urls, o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// declare declares a topology, which always brings the ladder.
func (b *testBroker) declare(c *Client, t Topology) {
	b.t.Helper()
	if err := c.Declare(b.t.Context(), t); err != nil {
		b.t.Fatal(err)
	}
}

// workQueue declares a work queue of the given type.
func (b *testBroker) workQueue(c *Client, t QueueType) string {
	b.t.Helper()
	name := b.name("work")
	b.declare(c, Topology{Queues: []Queue{{Name: name, Type: t}}})
	return name
}

// consumeRaw delivers what arrives in a queue, without Dormouse.
func (b *testBroker) consumeRaw(queue string) <-chan amqp.Delivery {
	b.t.Helper()
	ds, err := b.channel().Consume(queue, "", true, false, false, false, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return ds
}

func receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-ch:
		if !ok {
			t.Fatalf("waiting for %s: channel closed", what)
		}
		return v
	case <-time.After(patience):
		t.Fatalf("waiting for %s: nothing in %v", what, patience)
	}
	panic("unreachable")
}

// removeLadder deletes a ladder.
func removeLadder(u, prefix string) error {
	conn, err := amqp.Dial(u)
	if err != nil {
		return err
	}
	defer conn.Close()
	l, err := ladder.New(ladder.Settings{Prefix: prefix, Max: ladder.GreatestMax})
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	exchanges := append(l.Exchanges(), l.Due(), l.Unrouted())
	for _, x := range exchanges {
		err = cmp.Or(err, ch.ExchangeDelete(x, false, false))
	}
	for _, lane := range l.Lanes() {
		_, e := ch.QueueDelete(lane.Queue, false, false, false)
		err = cmp.Or(err, e)
	}
	_, e := ch.QueueDelete(l.Unrouted(), false, false, false)
	return cmp.Or(err, e)
}

// A proxy stands between a client and a broker, to cut their connections.
type proxy struct {
	t        testing.TB
	listener net.Listener
	target   string
	mu       sync.Mutex
	conns    []net.Conn
	refusing bool
	// replies, when set, is asked before anything that the broker sends is passed on.
	replies func()
}

func newProxy(t testing.TB, brokerURL string) *proxy {
	t.Helper()
	u, err := url.Parse(brokerURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: l, target: u.Host}
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
	})
	go p.accept()
	return p
}

// url is the broker's URL through the proxy.
func (p *proxy) url(brokerURL string) string {
	u, _ := url.Parse(brokerURL)
	u.Host = p.listener.Addr().String()
	return u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		p.mu.Lock()
		if err != nil || p.refusing {
			p.mu.Unlock()
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		go func() {
			_, _ = io.Copy(gated{client, p}, server)
			_ = client.Close()
		}()
	}
}

// gated asks the proxy's replies function before each write.
type gated struct {
	net.Conn
	p *proxy
}

func (g gated) Write(b []byte) (int, error) {
	g.p.mu.Lock()
	ask := g.p.replies
	g.p.mu.Unlock()
	if ask != nil {
		ask()
	}
	return g.Conn.Write(b)
}

// ReadFrom would bypass Write.
func (g gated) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{g}, r)
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// refuse makes the proxy refuse new connections, or accept them again.
func (p *proxy) refuse(refuse bool) {
	p.mu.Lock()
	p.refusing = refuse
	p.mu.Unlock()
}

// holdReplies holds back whatever the broker sends until the returned function is called.
func (p *proxy) holdReplies() (release func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	p.replies = func() { <-gate }
	p.mu.Unlock()
	return sync.OnceFunc(func() {
		p.mu.Lock()
		p.replies = nil
		p.mu.Unlock()
		close(gate)
	})
}

// within is a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
