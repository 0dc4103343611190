package session

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// env is a server with a virtual host in memory.
type env struct {
	t         testing.TB
	server    *Server
	host      *vhost.Host
	directory *access.Directory
	stop      func()
}

func newEnv(t testing.TB) *env {
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := store.OpenMemory(store.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := vhost.Open(vhost.Options{Store: s, Clock: clock.Real(), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	hosts.Start()
	e := &env{t: t, host: hosts.Host(vhost.Default)}
	e.directory, err = access.Open(access.Options{
		Store: s, Logger: log, VHost: func(name string) bool { return hosts.Host(name) != nil },
	})
	if err == nil {
		err = e.directory.Seed(t.Context(), map[string]string{"guest": "guest", "bob": "secret"}, vhost.Default)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.server = NewServer(Options{Host: hosts.Host, Directory: e.directory, Logger: log})
	e.stop = func() {
		e.server.Close()
		hosts.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	return e
}

// bubble runs a test in a synctest bubble with a server. There all time is virtual,
// and a goroutine that is left at the end fails the test.
func bubble(t *testing.T, f func(t *testing.T, e *env)) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t)
		defer e.stop()
		f(t, e)
	})
}

// peer is a client that does what a test says, right or wrong.
type peer struct {
	t      testing.TB
	conn   net.Conn
	frames *wire.Reader
	quiet  time.Duration // how long nothing must come to be sure that nothing will
	queue  string        // name of a queue, for those who need one
}

// dial connects a peer to the server. Nothing is buffered between them.
func (e *env) dial() *peer {
	here, there := net.Pipe()
	go func() { _ = e.server.Serve(there) }()
	return newPeer(e.t, here, time.Second)
}

func newPeer(t testing.TB, c net.Conn, quiet time.Duration) *peer {
	t.Cleanup(func() { c.Close() })
	return &peer{t: t, conn: c, frames: wire.NewReader(c, 1<<20), quiet: quiet, queue: testQueue}
}

// open connects a peer and opens channel 1.
func (e *env) open() *peer { return e.dial().open().channel(1) }

var allCapabilities = wire.Table{{Name: "capabilities", Value: wire.Table{
	{Name: "authentication_failure_close", Value: true}, {Name: "consumer_cancel_notify", Value: true},
	{Name: "basic.nack", Value: true}, {Name: "connection.blocked", Value: true},
}}}

func (p *peer) start() *peer {
	p.raw(wire.ProtocolHeader)
	p.skip(1)
	return p
}

func startOk() *wire.ConnectionStartOk {
	return &wire.ConnectionStartOk{ClientProperties: allCapabilities, Mechanism: "PLAIN", Response: "\x00guest\x00guest", Locale: "en_US"}
}

func (p *peer) login() *peer {
	p.start().send(0, startOk())
	p.skip(1)
	return p
}

func tuneOk() *wire.ConnectionTuneOk {
	return &wire.ConnectionTuneOk{ChannelMax: channelMax, FrameMax: frameMax, Heartbeat: heartbeat}
}

func (p *peer) open() *peer { return p.tuned(tuneOk()) }

func (p *peer) tuned(m *wire.ConnectionTuneOk) *peer {
	p.login().send(0, m)
	p.send(0, &wire.ConnectionOpen{VirtualHost: "/"})
	p.skip(1)
	return p
}

func (p *peer) channel(n uint16) *peer {
	p.send(n, &wire.ChannelOpen{})
	p.skip(1)
	return p
}

func (p *peer) raw(s string) {
	p.t.Helper()
	// What becomes of it is for the reading side to find out.
	_, _ = io.WriteString(p.conn, s)
}

// frame sends a frame.
func (p *peer) frame(typ uint8, channel uint16, payload string) {
	p.t.Helper()
	b := wire.AppendFrameHead(nil, typ, channel, len(payload))
	p.raw(string(append(append(b, payload...), wire.FrameEnd)))
}

// send sends methods on a channel.
func (p *peer) send(channel uint16, methods ...wire.Method) {
	p.t.Helper()
	var b []byte
	for _, m := range methods {
		b = wire.AppendMethod(b, channel, m)
	}
	p.raw(string(b))
}

// publish publishes a message on channel 1.
func (p *peer) publish(m wire.BasicPublish, properties wire.Properties, body string) {
	p.t.Helper()
	b := wire.AppendMethod(nil, 1, &m)
	b = wire.AppendHeader(b, 1, len(body), properties.AppendTo(nil))
	p.raw(string(wire.AppendBody(b, 1, frameMax, []byte(body))))
}

func to(queue string) wire.BasicPublish { return wire.BasicPublish{RoutingKey: []byte(queue)} }

// next returns the next frame as text: channel, method and arguments, or channel,
// "header" or "body" and what is in it. "nothing" and "end" say that no frame comes.
func (p *peer) next() string {
	_ = p.conn.SetReadDeadline(time.Now().Add(p.quiet))
	f, err := p.frames.Next()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "nothing"
	case err != nil:
		return "end"
	}
	switch f.Type {
	case wire.FrameMethod:
		id, args, _ := wire.SplitMethod(f.Payload)
		m, err := wire.ParseMethod(id, args)
		if err != nil {
			return err.Error()
		}
		text := strings.TrimPrefix(fmt.Sprintf("%+v", m), "&")
		text = strings.ReplaceAll(text, p.queue, testQueue)
		return generatedTag.ReplaceAllString(fmt.Sprintf("%d %v %s", f.Channel, id, text), "amq.ctag-*")
	case wire.FrameHeader:
		h, _ := wire.ParseContentHeader(f.Payload)
		return fmt.Sprintf("%d header %d %q", f.Channel, h.BodySize, h.Properties)
	case wire.FrameBody:
		if len(f.Payload) > 100 {
			return fmt.Sprintf("%d body of %d", f.Channel, len(f.Payload))
		}
		return fmt.Sprintf("%d body %s", f.Channel, f.Payload)
	}
	return "heartbeat"
}

// testQueue is what expected frames say for peer.queue.
const testQueue = "session-script"

var generatedTag = regexp.MustCompile(`amq\.ctag-[\w-]{22}`)

func (p *peer) skip(n int) {
	p.t.Helper()
	for range n {
		if s := p.next(); s == "nothing" || s == "end" {
			p.t.Fatalf("%s came where a frame was expected", s)
		}
	}
}

// expect reads frames and compares them with what is wanted, one line each.
func (p *peer) expect(want ...string) {
	p.t.Helper()
	for _, w := range want {
		if got := p.next(); got != w {
			p.t.Fatalf("got  %s\nwant %s", got, w)
		}
	}
}

// silence expects that nothing comes.
func (p *peer) silence() {
	p.t.Helper()
	p.expect("nothing")
}

// declare declares a queue that goes with the connection, and opens a gap of nothing
// behind it.
func (p *peer) declare(queue string, arguments wire.Table) {
	p.t.Helper()
	p.send(1, &wire.QueueDeclare{Queue: queue, Exclusive: true, Arguments: arguments})
	p.expect(fmt.Sprintf("1 queue.declare-ok {Queue:%s MessageCount:0 ConsumerCount:0}", strings.ReplaceAll(queue, p.queue, testQueue)))
}

// count returns how many messages a queue has ready.
func (p *peer) count(queue string) string {
	p.t.Helper()
	p.send(1, &wire.QueueDeclare{Queue: queue, Passive: true})
	return p.next()
}
