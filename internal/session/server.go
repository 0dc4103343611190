package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// Options of a Server.
type Options struct {
	// Host returns the virtual host of that name, nil if there is none.
	Host func(name string) *vhost.Host
	// Directory knows the users. The user "guest" may connect from loopback addresses
	// only.
	Directory *access.Directory
	// CertificateName is what of a verified client certificate is the user name, for
	// the mechanism EXTERNAL.
	CertificateName access.CertificateName
	// MaxHeld is how many bytes of messages that are not complete or not committed yet
	// one connection may hold. More closes it with RESOURCE_ERROR. 0 means 128 MiB.
	MaxHeld int
	// Logger is told of connections and their errors; nil discards.
	Logger *slog.Logger
}

// Server serves AMQP connections.
type Server struct {
	options Options
	log     *slog.Logger
	replies replies
	alarm   atomic.Pointer[alarm] // nil if there is none

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
	past   map[string]Totals // of connections that have ended, by virtual host
	served sync.WaitGroup
	churn  churn
}

// ErrClosed is returned by Serve after Shutdown or Close.
var ErrClosed = errors.New("session: server closed")

// NewServer returns a server without connections.
func NewServer(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxHeld == 0 {
		o.MaxHeld = defaultMaxHeld
	}
	return &Server{options: o, log: o.Logger, conns: map[*conn]struct{}{}, past: map[string]Totals{}}
}

// Serve serves one connection until it ends, and closes it. All that the peer does
// wrong it answers itself; the only error is ErrClosed.
func (s *Server) Serve(nc net.Conn) error {
	c := newConn(s, nc)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = nc.Close()
		return ErrClosed
	}
	s.conns[c] = struct{}{}
	s.served.Add(1)
	s.mu.Unlock()
	defer s.served.Done()
	c.serve()
	s.mu.Lock()
	delete(s.conns, c)
	c.addTo(s.past)
	s.mu.Unlock()
	if !c.opened.IsZero() {
		s.churn.connectionsClosed.Add(1)
	}
	return nil
}

// Shutdown closes all connections with CONNECTION_FORCED and that reason, and waits
// until they have ended. When ctx ends first it cuts those that are left.
func (s *Server) Shutdown(ctx context.Context, reason string) error {
	for _, c := range s.stop() {
		c.interrupt(reason)
	}
	finish := context.AfterFunc(ctx, s.cut)
	s.served.Wait()
	if !finish() {
		return ctx.Err()
	}
	return nil
}

// Close cuts all connections and waits until they have ended.
func (s *Server) Close() {
	s.stop()
	s.cut()
	s.served.Wait()
}

// stop refuses new connections and returns those that are there.
func (s *Server) stop() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

func (s *Server) cut() {
	for _, c := range s.stop() {
		c.cut()
	}
}

// CloseUser closes the connections of a user who was deleted.
func (s *Server) CloseUser(name string) {
	s.interruptThose(fmt.Sprintf("user '%s' is deleted", name), func(c *conn) bool { return c.identity != nil && c.identity.Name() == name })
}

// CloseVHost closes the connections to a virtual host that was deleted. It does not
// block.
func (s *Server) CloseVHost(name string) {
	s.interruptThose(fmt.Sprintf("vhost '%s' is deleted", name), func(c *conn) bool { return c.host != nil && c.host.Name() == name })
}

// interruptThose closes connections, which are looked at with their lock held.
func (s *Server) interruptThose(reason string, which func(*conn) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.mu.Lock()
		concerned := which(c)
		c.mu.Unlock()
		if concerned {
			c.interrupt(reason)
		}
	}
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

const handshakeTimeout = 10 * time.Second
