package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/wire"
)

// connectPatience bounds how long connecting and a call may take.
const connectPatience = 30 * time.Second

// defaultFrameMax is the largest frame, in bytes, where the broker names none.
const defaultFrameMax = 128 << 10

// connection is an AMQP connection by frames. Its methods are for one goroutine, but for close.
type connection struct {
	net      net.Conn
	frames   *wire.Reader
	frameMax uint32
	product  string // and version, as the broker says it
}

// connect opens a connection to the first of the addresses, which are separated by commas, that answers. There are no
// heartbeats: the connections of a measurement are busy or short-lived.
func connect(ctx context.Context, urls string) (*connection, error) {
	var failures []error
	for one := range strings.SplitSeq(urls, ",") {
		c, err := connectOne(ctx, one)
		if err == nil {
			return c, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

func connectOne(ctx context.Context, url string) (*connection, error) {
	uri, err := amqp.ParseURI(url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	address := net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))
	var nc net.Conn
	if uri.Scheme == "amqps" {
		nc, err = new(tls.Dialer).DialContext(ctx, "tcp", address)
	} else {
		nc, err = new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })()
	c := &connection{net: nc, frames: wire.NewReader(nc, defaultFrameMax)}
	if err := c.handshake(uri); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return c, nil
}

func (c *connection) handshake(uri amqp.URI) error {
	if _, err := c.net.Write([]byte(wire.ProtocolHeader)); err != nil {
		return err
	}
	start, err := expect[*wire.ConnectionStart](c, 0)
	if err != nil {
		return notAMQP(err)
	}
	product, ours := start.ServerProperties.Get("implementation")
	if !ours {
		product, _ = start.ServerProperties.Get("product")
	}
	version, _ := start.ServerProperties.Get("version")
	c.product = fmt.Sprint(product, " ", version)
	err = c.send(0, &wire.ConnectionStartOk{
		ClientProperties: wire.Table{
			{Name: "product", Value: "dormouse bench"},
			{Name: "capabilities", Value: wire.Table{
				{Name: "publisher_confirms", Value: true}, {Name: "basic.nack", Value: true},
				{Name: "consumer_cancel_notify", Value: true}, {Name: "authentication_failure_close", Value: true},
			}},
		},
		Mechanism: "PLAIN", Response: "\x00" + uri.Username + "\x00" + uri.Password, Locale: "en_US",
	})
	if err != nil {
		return err
	}
	tune, err := expect[*wire.ConnectionTune](c, 0)
	if err != nil {
		return credentials(err)
	}
	c.frameMax = tune.FrameMax
	if c.frameMax == 0 {
		c.frameMax = defaultFrameMax
	}
	c.frames.SetFrameMax(c.frameMax)
	if err := c.send(0, &wire.ConnectionTuneOk{ChannelMax: tune.ChannelMax, FrameMax: c.frameMax}); err != nil {
		return err
	}
	if _, err := call[*wire.ConnectionOpenOk](c, 0, &wire.ConnectionOpen{VirtualHost: uri.Vhost}); err != nil {
		return virtualHost(err)
	}
	return c.openChannel(1)
}

// notAMQP, credentials and virtualHost say what amqp091-go says when a broker refuses at this point, so that whoever
// explains errors need know one kind only.
func notAMQP(err error) error {
	if e, ok := errors.AsType[*wire.Exception](err); ok {
		return &amqp.Error{Code: amqp.FrameError, Reason: e.Text}
	}
	return err
}

func credentials(err error) error {
	if e, ok := errors.AsType[*amqp.Error](err); ok && e.Code == amqp.AccessRefused {
		return amqp.ErrCredentials
	}
	return err
}

func virtualHost(err error) error {
	if e, ok := errors.AsType[*amqp.Error](err); ok && (e.Code == amqp.NotAllowed || e.Code == amqp.AccessRefused) {
		return amqp.ErrVhost
	}
	return err
}

func (c *connection) openChannel(number uint16) error {
	_, err := call[*wire.ChannelOpenOk](c, number, &wire.ChannelOpen{})
	return err
}

func (c *connection) send(channel uint16, m wire.Method) error {
	_, err := c.net.Write(wire.AppendMethod(nil, channel, m))
	return err
}

// call sends a method and returns its answer.
func call[M wire.Method](c *connection, channel uint16, m wire.Method) (M, error) {
	if err := c.send(channel, m); err != nil {
		var none M
		return none, err
	}
	return expect[M](c, channel)
}

// expect reads frames until an M comes on the channel, and passes over others.
func expect[M wire.Method](c *connection, channel uint16) (M, error) {
	var none M
	for {
		f, err := c.frames.Next()
		if err != nil {
			return none, err
		}
		if f.Type != wire.FrameMethod {
			continue
		}
		id, args, _ := wire.SplitMethod(f.Payload)
		m, err := wire.ParseMethod(id, args)
		if err != nil {
			return none, err
		}
		if err := refusal(m); err != nil {
			return none, err
		}
		if answer, ok := m.(M); ok && f.Channel == channel {
			return answer, nil
		}
	}
}

// refusal is what a broker says that closes a channel or a connection, nil for other methods.
func refusal(m wire.Method) error {
	switch m := m.(type) {
	case *wire.ChannelClose:
		return &amqp.Error{Code: int(m.ReplyCode), Reason: m.ReplyText, Server: true, Recover: true}
	case *wire.ConnectionClose:
		return &amqp.Error{Code: int(m.ReplyCode), Reason: m.ReplyText, Server: true}
	}
	return nil
}

// refused is the refusal in a frame whose method nobody here waits for, nil if it is none.
func refused(id wire.MethodID, args []byte) error {
	if id != wire.IDChannelClose && id != wire.IDConnectionClose && id != wire.IDBasicCancel {
		return nil
	}
	m, err := wire.ParseMethod(id, args)
	if err != nil {
		return err
	}
	if _, cancelled := m.(*wire.BasicCancel); cancelled {
		return errors.New("the broker has cancelled the consumer: its queue is gone")
	}
	return refusal(m)
}

// close ends the connection without a word. It may be called by any goroutine.
func (c *connection) close() { _ = c.net.Close() }
