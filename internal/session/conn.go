package session

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// conn is one connection.
type conn struct {
	server *Server
	net    net.Conn
	log    *slog.Logger
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	// Agreed in the handshake and constant after it.
	identity     *access.Identity // set with mu
	host         *vhost.Host      // set with mu
	channelMax   int
	frameMax     uint32
	heartbeat    time.Duration // 0 for none
	capabilities wire.Table    // the client's
	properties   wire.Table    // the client's, of which these are a part
	mechanism    string        // by which the user has logged in

	// The reader's. What others look at it changes with mu held.
	frames   *wire.Reader
	channels map[uint16]*channel
	names    names
	held     int            // see hold
	acks     []unacked      // by basic.ack, not told to the queues yet
	acksOf   *channel       // whose they are
	settling []unacked      // reused, as is the next
	entries  []*queue.Entry //

	publishing  atomic.Bool            // the reader is in the middle of a publish
	expelling   atomic.Bool            // expelled is not empty
	interrupted atomic.Pointer[string] // reason to close, from outside
	stopping    chan struct{}          // closed when interrupted is set
	wake        chan struct{}          // to the writer, when it is idle
	written     chan struct{}          // closed when the writer has ended

	mu      sync.Mutex
	blocked bool      // the client has been told so
	closing bool      // nothing but the answer to the last method is awaited
	room    sync.Cond // out was taken by the writer, or the connection was cut
	out     output
	idle    bool // the writer waits for wake
	ending  bool // the writer is to end when out is written
	dead    bool // nothing can be written any more
	dirty   []*channel
	stalled []*consumer
	opened  time.Time // zero before connection.open-ok
	past    Counts    // of channels that are closed

	received, sent traffic

	expelled []*channel // to be closed
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		server: s, net: nc,
		log:      s.log.With("peer", nc.RemoteAddr().String()),
		channels: map[uint16]*channel{},
		stopping: make(chan struct{}), wake: make(chan struct{}, 1), written: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.frames = wire.NewReader(reader{c}, initialFrameMax)
	c.room.L = &c.mu
	return c
}

const (
	// initialFrameMax is the largest frame before one is negotiated, as in RabbitMQ
	// since 4.1.
	initialFrameMax = 8192
	// closingTimeout is how long a client has to answer connection.close, unless its
	// heartbeat is shorter.
	closingTimeout = 30 * time.Second
	// drainTimeout is how long the last frames to a client have to be written.
	drainTimeout = 3 * time.Second
)

// serve is the reader's goroutine.
func (c *conn) serve() {
	go c.write()
	deadline := time.AfterFunc(handshakeTimeout, c.cut)
	err := c.handshake()
	deadline.Stop()
	if err == nil {
		c.log.Info("connection opened", "user", c.identity.Name(), "vhost", c.host.Name())
		c.mu.Lock()
		c.opened = time.Now()
		c.mu.Unlock()
		c.server.churn.connectionsCreated.Add(1)
		err = c.run()
	}
	c.closeChannels()
	if c.host != nil {
		c.host.Disconnected(c)
	}
	c.say(c.goodbye(err))
	c.mu.Lock()
	c.ending = true
	c.wakeWriter()
	c.mu.Unlock()
	_ = c.net.SetWriteDeadline(time.Now().Add(drainTimeout))
	<-c.written
	c.cancel()
	_ = c.net.Close()
}

// run handles frames until the connection is to end, and returns why.
func (c *conn) run() error {
	for {
		if len(c.acks) > 0 && !c.frames.Ready() {
			c.settleAcks()
		}
		f, err := c.frames.Next()
		if err == nil {
			err = c.frame(f)
		}
		if err != nil {
			return err
		}
	}
}

// frame handles one frame of an open connection.
func (c *conn) frame(f wire.Frame) error {
	if f.Channel == 0 {
		return c.connectionFrame(f)
	}
	switch {
	case !f.WellFormed():
		return f.Unknown()
	case f.Type == wire.FrameHeartbeat:
		return f.Unexpected()
	}
	ch := c.channels[f.Channel]
	if ch == nil {
		if len(c.channels) >= c.channelMax {
			return wire.Errorf(wire.NotAllowed, "number of channels opened (%d) has reached the negotiated channel_max (%d)", len(c.channels), c.channelMax)
		}
		ch = newChannel(c, f.Channel)
		c.mu.Lock()
		c.channels[f.Channel] = ch
		c.mu.Unlock()
		c.server.churn.channelsCreated.Add(1)
	}
	return ch.frame(f)
}

// errClosed ends a connection that both sides have agreed to close.
var errClosed = errors.New("closed by the client")

func (c *conn) connectionFrame(f wire.Frame) error {
	m, err := c.connectionMethod(f)
	if m == nil || err != nil {
		return err
	}
	switch m := m.(type) {
	case *wire.ConnectionClose:
		return errClosed
	case *wire.ConnectionUpdateSecret:
		// A password does not expire, so there is nothing to renew; RabbitMQ's internal
		// users are not checked again either.
		c.reply(0, &wire.ConnectionUpdateSecretOk{})
		return nil
	default:
		return by(m.ID(), wire.Errorf(wire.ChannelError, "unexpected method in connection state running"))
	}
}

// connectionMethod returns the method of a frame on channel 0, nil for a heartbeat.
func (c *conn) connectionMethod(f wire.Frame) (wire.Method, error) {
	switch {
	case !f.WellFormed():
		return nil, f.Unknown()
	case f.Type == wire.FrameHeartbeat:
		return nil, nil
	case f.Type != wire.FrameMethod:
		return nil, f.Unexpected()
	}
	id, args, _ := wire.SplitMethod(f.Payload)
	return parse(id, args)
}

// parse parses a method. Like RabbitMQ it does not say of which method a name is no text.
func parse(id wire.MethodID, args []byte) (wire.Method, error) {
	m, err := wire.ParseMethod(id, args)
	if e, ok := errors.AsType[*wire.Exception](err); ok && e.Text == wire.MalformedText {
		id = 0
	}
	return m, by(id, err)
}

// reader reads from the peer as heartbeats demand: a peer that was silent for twice
// the heartbeat is gone.
type reader struct{ c *conn }

func (r reader) Read(p []byte) (int, error) {
	c := r.c
	if c.closing {
		return c.net.Read(p)
	}
	for {
		n, err := r.read(p)
		if !c.woken(n, err) {
			return n, err
		}
		if c.heartbeat == 0 {
			_ = c.net.SetReadDeadline(time.Time{})
		}
		if err := c.closeExpelled(); err != nil {
			return 0, err
		}
	}
}

func (r reader) read(p []byte) (int, error) {
	c := r.c
	if c.heartbeat > 0 {
		_ = c.net.SetReadDeadline(time.Now().Add(2 * c.heartbeat))
	}
	if reason := c.interrupted.Load(); reason != nil {
		return 0, forced(*reason)
	}
	if c.expelling.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := c.net.Read(p)
	c.received.add(n)
	if reason := c.interrupted.Load(); reason != nil && err != nil {
		err = forced(*reason)
	}
	return n, err
}

func forced(reason string) error {
	return &wire.Exception{Code: wire.ConnectionForced, Text: reason}
}

// interrupt makes the reader close the connection with CONNECTION_FORCED, or give
// up waiting for the client's last word.
func (c *conn) interrupt(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interrupted.CompareAndSwap(nil, &reason) {
		close(c.stopping)
	}
	_ = c.net.SetReadDeadline(time.Unix(1, 0))
	c.room.Broadcast()
}

// cut ends the connection at once.
func (c *conn) cut() {
	c.cancel()
	_ = c.net.Close()
	c.mu.Lock()
	c.dead = true
	c.room.Broadcast()
	c.wakeWriter()
	c.mu.Unlock()
}

// closeChannels closes all channels without a word to the client. What one gives back does not go to another.
func (c *conn) closeChannels() {
	c.settleAcks()
	for _, ch := range c.channels {
		ch.cancelAll()
	}
	for _, ch := range c.channels {
		ch.release()
	}
	c.mu.Lock()
	clear(c.channels)
	c.mu.Unlock()
}

// can tells whether the client has said that it can do something.
func (c *conn) can(capability string) bool {
	v, _ := c.capabilities.Get(capability)
	able, _ := v.(bool)
	return able
}
