package session

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// ends tells how long it takes until the server ends the connection.
func (p *peer) ends() time.Duration {
	begin := time.Now()
	p.quiet = time.Hour
	for p.next() != "end" {
	}
	return time.Since(begin)
}

func TestServerSendsHeartbeats(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		m := tuneOk()
		m.Heartbeat = 10
		p := e.dial().tuned(m)
		p.quiet = 6 * time.Second
		for range 3 {
			begin := time.Now()
			p.expect("heartbeat")
			if d := time.Since(begin); d != 5*time.Second {
				t.Errorf("a heartbeat came after %v, want half of the interval", d)
			}
			p.raw(string(wire.AppendHeartbeat(nil)))
		}
		time.Sleep(3 * time.Second)
		p.channel(1)
		begin := time.Now()
		p.expect("heartbeat")
		if d := time.Since(begin); d != 5*time.Second {
			t.Errorf("after other traffic a heartbeat came after %v", d)
		}
	})
}

func TestSilentClientIsCut(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		m := tuneOk()
		m.Heartbeat = 10
		p := e.dial().tuned(m)
		time.Sleep(19 * time.Second)
		p.raw(string(wire.AppendHeartbeat(nil)))
		if d := p.ends(); d != 20*time.Second {
			t.Errorf("ended after %v, want two intervals", d)
		}
	})
}

func TestNoHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		m := tuneOk()
		m.Heartbeat = 0
		p := e.dial().tuned(m)
		p.quiet = 10 * time.Minute
		p.silence()
		p.channel(1)
	})
}

func TestHandshakeTakesTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		if d := e.dial().start().ends(); d != handshakeTimeout {
			t.Errorf("ended after %v", d)
		}
		if d := e.dial().ends(); d != handshakeTimeout {
			t.Errorf("without a word it ended after %v", d)
		}
	})
}

func TestForeignProtocols(t *testing.T) {
	for _, header := range []string{"AMQP\x00\x00\x09\x00", "AMQP\x03\x01\x00\x00", "AMQP\x00\x01\x00\x00", "GET / HT", "\x16\x03\x01\x02\x00\x01\x00\x01"} {
		bubble(t, func(t *testing.T, e *env) {
			p := e.dial()
			p.raw(header)
			answer, err := p.frames.ProtocolHeader()
			if err != nil || string(answer[:]) != wire.ProtocolHeader {
				t.Errorf("%q was answered by %q, %v", header, answer, err)
			}
			p.expect("end")
		})
	}
}

// remote is a connection that claims to come from elsewhere.
type remote struct{ net.Conn }

func (remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5} }

func TestGuestOnlyFromThisMachine(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		far := func() *peer {
			here, there := net.Pipe()
			go func() { _ = e.server.Serve(remote{there}) }()
			return newPeer(t, here, time.Second)
		}
		p := far().start()
		p.send(0, startOk())
		p.expect(loginFailed)
		p = far().start()
		bob := startOk()
		bob.Response = "\x00bob\x00secret"
		p.send(0, bob)
		p.expect(tune)
	})
}

func TestClientWithoutCloseOk(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.send(1, &wire.ChannelOpen{})
		p.skip(1)
		if d := p.ends(); d != closingTimeout {
			t.Errorf("a client that does not answer connection.close was cut after %v", d)
		}
		p = e.open()
		p.send(1, &wire.ChannelOpen{})
		p.skip(1)
		p.send(0, &wire.ConnectionCloseOk{})
		if d := p.ends(); d != 0 {
			t.Errorf("a client that answers connection.close was cut after %v", d)
		}
		p = e.open()
		p.send(0, &wire.ConnectionClose{})
		p.expect("0 connection.close-ok {}")
		if d := p.ends(); d != closingTimeout {
			t.Errorf("a client that does not hang up after close-ok was cut after %v", d)
		}
	})
}

func TestShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		polite, rude := e.open(), e.open()
		result := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			result <- e.server.Shutdown(ctx, "gone fishing")
		}()
		const forced = closedByServer + "320 ReplyText:CONNECTION_FORCED - gone fishing ClassID:0 MethodID:0}"
		rude.expect(forced)
		polite.expect(forced)
		polite.send(0, &wire.ConnectionCloseOk{})
		polite.expect("end")
		begin := time.Now()
		if err := <-result; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown returned %v", err)
		}
		if d := time.Since(begin); d != 5*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
		here, there := net.Pipe()
		defer here.Close()
		if err := e.server.Serve(there); !errors.Is(err, ErrClosed) {
			t.Errorf("Serve after Shutdown returned %v", err)
		}
	})
}

func TestShutdownDuringHandshake(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.dial().start()
		go func() { _ = e.server.Shutdown(context.Background(), "bye") }()
		p.expect(closedByServer + "320 ReplyText:CONNECTION_FORCED - bye ClassID:0 MethodID:0}")
		p.send(0, &wire.ConnectionCloseOk{})
		p.expect("end")
	})
}

// What a connection leaves behind: nothing that was only its own, and everything
// that it had not settled.
func TestLostConnection(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p, other := e.open(), e.open()
		p.declare("exclusive", nil)
		other.send(1, &wire.QueueDeclare{Queue: "shared", Durable: true})
		other.skip(1)
		for range 3 {
			other.publish(to("shared"), wire.Properties{}, "x")
		}
		p.send(1, &wire.BasicConsume{Queue: "shared", ConsumerTag: "c"})
		p.skip(1 + 3*3)
		p.send(1, &wire.BasicAck{DeliveryTag: 2})
		synctest.Wait()
		p.conn.Close()
		synctest.Wait()
		if got := other.count("shared"); got != "1 queue.declare-ok {Queue:shared MessageCount:2 ConsumerCount:0}" {
			t.Error(got)
		}
		other.send(1, &wire.BasicGet{Queue: "shared"})
		other.expect("1 basic.get-ok {DeliveryTag:1 Redelivered:true Exchange: RoutingKey:shared MessageCount:1}")
		other.skip(2)
		if got := other.count("exclusive"); !strings.Contains(got, "NOT_FOUND") {
			t.Error(got)
		}
	})
}

func TestClosedChannelGivesBack(t *testing.T) {
	for name, end := range map[string]wire.Method{
		"closed": &wire.ChannelClose{}, "exception": &wire.BasicAck{DeliveryTag: 99},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *env) {
				p := e.open().channel(2)
				p.declare("q", nil)
				p.publish(to("q"), wire.Properties{}, "x")
				p.send(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "c"})
				p.skip(4)
				p.send(1, end)
				p.skip(1)
				p.send(2, &wire.BasicGet{Queue: "q"})
				p.expect("2 basic.get-ok {DeliveryTag:1 Redelivered:true Exchange: RoutingKey:q MessageCount:0}", `2 header 1 "\x00\x00"`, "2 body x")
				p.send(2, &wire.QueueDeclare{Queue: "q", Passive: true})
				p.expect("2 queue.declare-ok {Queue:q MessageCount:0 ConsumerCount:0}")
			})
		})
	}
}
