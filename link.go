package dormouse

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	dialTimeout    = 30 * time.Second
	leastBackoff   = 100 * time.Millisecond
	longestBackoff = 10 * time.Second
)

// A connection is one live connection and what is known about it.
type connection struct {
	*amqp.Connection
	raw  *rawConn
	user string
	// keepsPriority is false on the brokers whose quorum lanes a message with priority would block.
	keepsPriority bool
	gone          chan struct{} // closed when the connection is lost or closed
	gate          gate
}

// kill ends the connection without a word to the broker. Unlike a close it cannot be held up by a blocked write.
func (c *connection) kill() { _ = c.raw.Close() }

// A rawConn closes itself on the first read error. amqp091-go waits for a publish in progress before it closes the
// socket, and that publish may be stuck writing to a peer that is gone; closing the socket here sets it free.
type rawConn struct{ net.Conn }

func (c *rawConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		_ = c.Conn.Close()
	}
	return n, err
}

// A gate is shut while the broker blocks publishers.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while open
	reason string
}

func (g *gate) set(shut bool, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.opened == nil:
		g.opened, g.reason = make(chan struct{}), reason
	case !shut && g.opened != nil:
		close(g.opened)
		g.opened = nil
	}
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context, gone <-chan struct{}) error {
	for {
		g.mu.Lock()
		opened, reason := g.opened, g.reason
		g.mu.Unlock()
		if opened == nil {
			return nil
		}
		select {
		case <-opened:
		case <-gone:
			return amqp.ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("the broker blocks publishers (%s): %w", reason, context.Cause(ctx))
		}
	}
}

// A link is a connection that heals itself: when it is lost it connects again, trying the URLs in turn, and does not
// hand out the new connection before its topology is restored.
type link struct {
	name      string // "publish" or "consume"
	urls      []string
	title     string                                          // shown by the broker
	dialer    func(network, address string) (net.Conn, error) // nil: TCP
	tls       *tls.Config
	heartbeat time.Duration
	log       *slog.Logger
	hooks     Hooks
	restore   func(context.Context, *connection) error

	ctx    context.Context // ends with the client
	ended  chan struct{}   // closed when the link has stopped healing
	mu     sync.Mutex
	conn   *connection
	change chan struct{} // closed and replaced when conn changes
	next   int           // the URL to try first
}

// start makes the first connection and begins to watch it. Each URL is tried once.
func (l *link) start(ctx context.Context) error {
	l.change = make(chan struct{})
	l.ended = make(chan struct{})
	conn, err := l.connect(ctx)
	if err != nil {
		return err
	}
	l.set(conn)
	go l.heal(conn)
	return nil
}

func (l *link) set(conn *connection) {
	l.mu.Lock()
	l.conn = conn
	close(l.change)
	l.change = make(chan struct{})
	l.mu.Unlock()
}

func (l *link) current() *connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

// wait returns the live connection, waiting for it if need be.
func (l *link) wait(ctx context.Context) (*connection, error) {
	for {
		l.mu.Lock()
		conn, change := l.conn, l.change
		l.mu.Unlock()
		if conn != nil && !conn.IsClosed() {
			return conn, nil
		}
		select {
		case <-change:
		case <-l.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("no connection to the broker: %w", context.Cause(ctx))
		}
	}
}

// heal watches the connection and replaces it when it is lost, until the client ends.
func (l *link) heal(conn *connection) {
	defer close(l.ended)
	for {
		var cause error
		select {
		case e, ok := <-conn.NotifyClose(make(chan *amqp.Error, 1)):
			if ok {
				cause = e
			}
		case <-l.ctx.Done():
			return
		}
		l.set(nil)
		if l.ctx.Err() != nil {
			return
		}
		l.report(ReconnectEvent{Connection: l.name, Err: cause})
		if conn = l.reconnect(); conn == nil {
			return
		}
		l.set(conn)
	}
}

// reconnect tries until it succeeds; nil means that the client ended.
func (l *link) reconnect() *connection {
	backoff := leastBackoff
	for try := 1; ; try++ {
		conn, err := l.connect(l.ctx)
		if l.ctx.Err() != nil {
			if conn != nil {
				conn.kill()
			}
			return nil
		}
		l.report(ReconnectEvent{Connection: l.name, Connected: err == nil, Try: try, Err: err})
		if err == nil {
			return conn
		}
		// Half of the wait is random, so that not all clients of a restarted broker come back at once.
		if !sleep(l.ctx, backoff/2+rand.N(backoff/2+1)) {
			return nil
		}
		backoff = min(2*backoff, longestBackoff)
	}
}

func (l *link) report(e ReconnectEvent) {
	switch {
	case e.Connected:
		l.log.Info("connected again", "connection", l.name, "try", e.Try)
	case e.Try == 0:
		l.log.Warn("connection lost", "connection", l.name, "error", e.Err)
	default:
		l.log.Warn("cannot connect", "connection", l.name, "try", e.Try, "error", e.Err)
	}
	if l.hooks.Reconnect != nil {
		l.hooks.Reconnect(e)
	}
}

// connect tries each URL once, beginning with the one after the last that worked, and restores the topology.
func (l *link) connect(ctx context.Context) (*connection, error) {
	var errs []error
	for range l.urls {
		u := l.urls[l.next%len(l.urls)]
		l.next++
		conn, err := l.dial(ctx, u)
		if err == nil {
			stop := context.AfterFunc(ctx, conn.kill)
			if err = l.restore(ctx, conn); err != nil {
				conn.kill()
				err = fmt.Errorf("declaring the topology again: %w", err)
			}
			stop()
		}
		if err == nil {
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", redact(u), err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "unreadable URL"
	}
	return u.Redacted()
}

// errURL stands for the error of the parser, which would show the password.
var errURL = errors.New("not of the form amqp://user:password@host:port/vhost; in user, password and vhost, characters other than letters and digits are written as % and two hexadecimal digits")

func (l *link) dial(ctx context.Context, rawURL string) (*connection, error) {
	uri, err := amqp.ParseURI(rawURL)
	if err != nil {
		return nil, errURL
	}
	conn := &connection{user: uri.Username, gone: make(chan struct{})}
	stop := func() bool { return true }
	config := amqp.Config{
		Heartbeat:  l.heartbeat,
		Properties: amqp.NewConnectionProperties(),
		Dial: func(network, address string) (net.Conn, error) {
			c, err := l.open(ctx, network, address)
			if err != nil {
				return nil, err
			}
			conn.raw = &rawConn{c}
			stop = context.AfterFunc(ctx, conn.kill)
			return conn.raw, nil
		},
	}
	config.Properties.SetClientConnectionName(l.title + " (" + l.name + ")")
	if l.tls != nil {
		config.TLSClientConfig = l.tls.Clone()
	}
	conn.Connection, err = amqp.DialConfig(rawURL, config)
	stop()
	if err != nil {
		return nil, err
	}
	version, _ := conn.Properties["version"].(string)
	conn.keepsPriority = keepsPriority(version)
	go l.watchBlocked(conn)
	return conn, nil
}

// open makes the network connection. Its deadline is for the handshake; amqp091-go clears it afterwards.
func (l *link) open(ctx context.Context, network, address string) (c net.Conn, err error) {
	if l.dialer != nil {
		c, err = l.dialer(network, address)
	} else {
		dialer := net.Dialer{Timeout: dialTimeout}
		c, err = dialer.DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// keepsPriority reports whether messages with a priority may go through quorum lanes of a broker of this version. From 4.0 to
// 4.2 they overtake all others there, and since only the head of a queue expires, the others wait for them.
func keepsPriority(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return true
	}
	return major != 4 || minor >= 3
}

// watchBlocked opens and shuts the connection's gate. It must keep reading: amqp091-go stops at a listener that does not.
func (l *link) watchBlocked(conn *connection) {
	defer close(conn.gone)
	for b := range conn.NotifyBlocked(make(chan amqp.Blocking, 1)) {
		conn.gate.set(b.Active, b.Reason)
		l.log.Warn("broker blocks publishers", "blocked", b.Active, "reason", b.Reason)
		if l.hooks.Blocked != nil {
			l.hooks.Blocked(BlockedEvent{Blocked: b.Active, Reason: b.Reason})
		}
	}
}

// close ends the link, whose context must have ended: politely, waiting for the broker's answer until ctx ends.
func (l *link) close(ctx context.Context) error {
	<-l.ended
	conn := l.current()
	if conn == nil || conn.IsClosed() {
		return nil
	}
	stop := context.AfterFunc(ctx, conn.kill)
	defer stop()
	if err := conn.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) && ctx.Err() == nil {
		return err
	}
	return nil
}

// sleep waits for d and reports whether ctx was still going on then.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
