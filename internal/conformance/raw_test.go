package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/wire"
)

// Raw is a connection without a client, for what a client cannot do: misbehave, or see the order of a table.
type Raw struct {
	c    *C
	conn net.Conn
	in   *wire.Reader
}

// Socket opens a TCP connection and nothing more.
func (c *C) Socket() *Raw {
	c.Helper()
	uri, err := amqp.ParseURI(c.url)
	c.OK(err)
	conn, err := net.Dial("tcp", net.JoinHostPort(uri.Host, fmt.Sprint(uri.Port)))
	c.OK(err)
	c.OK(conn.SetDeadline(time.Now().Add(patience)))
	c.Cleanup(func() { conn.Close() })
	return &Raw{c, conn, wire.NewReader(conn, 1<<20)}
}

// Started has had the broker's connection.start.
func (c *C) Started() *Raw {
	c.Helper()
	r := c.Socket()
	r.Write([]byte(wire.ProtocolHeader))
	r.Expect("connection.start")
	return r
}

// login is the start-ok of the user guest.
func login(password string) *wire.ConnectionStartOk {
	return &wire.ConnectionStartOk{Mechanism: "PLAIN", Response: "\x00guest\x00" + password, Locale: "en_US",
		ClientProperties: wire.Table{{Name: "capabilities", Value: wire.Table{
			{Name: "authentication_failure_close", Value: true}, {Name: "consumer_cancel_notify", Value: true},
		}}}}
}

// Tuned has had the broker's connection.tune.
func (c *C) Tuned() *Raw {
	c.Helper()
	r := c.Started()
	r.Send(0, login("guest"))
	r.Expect("connection.tune")
	return r
}

// Opened is an open connection with the open channel 1.
func (c *C) Opened() *Raw {
	c.Helper()
	r := c.Tuned()
	r.Send(0, &wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 8192}, &wire.ConnectionOpen{VirtualHost: "/"})
	r.Expect("connection.open-ok")
	r.Send(1, &wire.ChannelOpen{})
	r.Expect("channel.open-ok")
	return r
}

// Write sends octets.
func (r *Raw) Write(b []byte) {
	r.c.Helper()
	_, err := r.conn.Write(b)
	r.c.OK(err)
}

// Send sends methods.
func (r *Raw) Send(channel uint16, methods ...wire.Method) {
	r.c.Helper()
	var b []byte
	for _, m := range methods {
		b = wire.AppendMethod(b, channel, m)
	}
	r.Write(b)
}

// Publish sends a message on channel 1.
func (r *Raw) Publish(exchange, key string, p wire.Properties, body string) {
	r.c.Helper()
	b := wire.AppendMethod(nil, 1, &wire.BasicPublish{Exchange: []byte(exchange), RoutingKey: []byte(key)})
	b = wire.AppendHeader(b, 1, len(body), p.AppendTo(nil))
	r.Write(wire.AppendBody(b, 1, 8192, []byte(body)))
}

// Next tells what comes next: a method with its reply code and text where it has them, "header", "body", "heartbeat",
// the eight octets of a protocol header, or "end" when the broker has closed the socket.
func (r *Raw) Next() string {
	r.c.Helper()
	f := r.frame()
	switch {
	case f == nil:
		return "end"
	case f.Type == wire.FrameMethod:
		return r.c.plain(r.method(f))
	case f.Type == wire.FrameHeader:
		return "header"
	case f.Type == wire.FrameBody:
		return "body"
	}
	return "heartbeat"
}

// frame is the next frame, or nil at the end.
func (r *Raw) frame() *wire.Frame {
	r.c.Helper()
	f, err := r.in.Next()
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "reset by peer") {
			return nil
		}
		r.c.OK(err)
	}
	return &f
}

func (r *Raw) method(f *wire.Frame) string {
	r.c.Helper()
	if len(f.Payload) < 4 {
		r.c.Fatalf("short method frame %v", f.Payload)
	}
	id := wire.MethodID(binary.BigEndian.Uint32(f.Payload))
	m, err := wire.ParseMethod(id, f.Payload[4:])
	r.c.OK(err)
	switch m := m.(type) {
	case *wire.ConnectionClose:
		return fmt.Sprintf("%v %d %s (%d,%d)", id, m.ReplyCode, m.ReplyText, m.ClassID, m.MethodID)
	case *wire.ChannelClose:
		return fmt.Sprintf("%v %d %s (%d,%d)", id, m.ReplyCode, m.ReplyText, m.ClassID, m.MethodID)
	case *wire.BasicReturn:
		return fmt.Sprintf("%v %d %s", id, m.ReplyCode, m.ReplyText)
	}
	return id.String()
}

// Expect ends the case unless that comes next.
func (r *Raw) Expect(want string) {
	r.c.Helper()
	if got := r.Next(); got != want {
		r.c.Fatalf("got %s instead of %s", got, want)
	}
}

// Headers gets a message and returns its headers as they came.
func (r *Raw) Headers(queue string) wire.Table {
	r.c.Helper()
	return r.Properties(queue).Headers
}

// Properties gets a message and returns its properties.
func (r *Raw) Properties(queue string) wire.Properties {
	r.c.Helper()
	r.Send(1, &wire.BasicGet{Queue: queue, NoAck: true})
	return r.got().Properties
}

// Get gets a message, which is to be settled.
func (r *Raw) Get(queue string) delivered {
	r.c.Helper()
	r.Send(1, &wire.BasicGet{Queue: queue})
	return r.got()
}

// got reads the answer to basic.get.
func (r *Raw) got() delivered {
	r.c.Helper()
	f := r.frame()
	if f == nil || f.Type != wire.FrameMethod {
		r.c.Fatal("no answer to basic.get")
	}
	id, args, _ := wire.SplitMethod(f.Payload)
	m, err := wire.ParseMethod(id, args)
	r.c.OK(err)
	ok, is := m.(*wire.BasicGetOk)
	if !is {
		r.c.Fatalf("got %v instead of basic.get-ok", id)
	}
	d := delivered{exchange: r.c.plain(ok.Exchange), key: r.c.plain(ok.RoutingKey), redelivered: ok.Redelivered}
	header, _ := wire.ParseContentHeader(r.frame().Payload)
	d.Properties, err = wire.ParseProperties(header.Properties)
	r.c.OK(err)
	for left := header.BodySize; left > 0; {
		part := r.frame().Payload
		left -= uint64(len(part))
		d.body += string(part)
	}
	return d
}

func names(t wire.Table) string {
	var list []string
	for _, f := range t {
		list = append(list, f.Name)
	}
	return strings.Join(list, " ")
}
