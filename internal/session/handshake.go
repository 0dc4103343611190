package session

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/wire"
)

// What is offered in connection.tune: RabbitMQ's defaults.
const (
	channelMax = 2047
	frameMax   = 131072
	heartbeat  = 60 // seconds
)

// Version is the version of RabbitMQ that the broker behaves as. It is told to
// clients as the server's version, because some of them look there to find out what
// a server can do.
const Version = "4.3.0"

// errRefused ends a connection that gets no answer, or had its answer.
var errRefused = errors.New("refused")

// handshake brings a connection from the protocol header to connection.open-ok.
//
// Where RabbitMQ waits three seconds and then cuts a client that fails before
// tune-ok, this cuts at once.
func (c *conn) handshake() error {
	certificate, err := c.secure()
	if err != nil {
		return err
	}
	header, err := c.frames.ProtocolHeader()
	switch {
	case errors.Is(err, io.EOF):
		c.log.Debug("connection closed before it began")
		return errRefused
	case err != nil:
		return err
	case string(header[:]) != wire.ProtocolHeader && string(header[:]) != protocolHeader09:
		c.log.Warn("connection refused: it does not begin with the header of AMQP 0-9-1", "header", fmt.Sprintf("%q", header))
		return c.refuseVersion()
	}
	start := &wire.ConnectionStart{
		VersionMajor: 0, VersionMinor: 9,
		ServerProperties: serverProperties(), Mechanisms: mechanisms(certificate), Locales: "en_US",
	}
	c.reply(0, start)
	startOk, err := await[*wire.ConnectionStartOk](c)
	if err != nil {
		return c.refuse("starting", err)
	}
	c.properties, c.mechanism = startOk.ClientProperties, startOk.Mechanism
	if v, ok := startOk.ClientProperties.Get("capabilities"); ok {
		c.capabilities, _ = v.(wire.Table)
	}
	if err := c.authenticate(startOk, certificate); err != nil {
		return err
	}
	c.reply(0, &wire.ConnectionTune{ChannelMax: channelMax, FrameMax: frameMax, Heartbeat: heartbeat})
	tuneOk, err := await[*wire.ConnectionTuneOk](c)
	if err != nil {
		return c.refuse("tuning", err)
	}
	if err := c.tune(tuneOk); err != nil {
		return err
	}
	open, err := await[*wire.ConnectionOpen](c)
	if err != nil {
		return err
	}
	if err := c.enter(open.VirtualHost); err != nil {
		return by(open.ID(), err)
	}
	c.reply(0, &wire.ConnectionOpenOk{})
	return nil
}

// protocolHeader09 is the header of AMQP 0-9, which RabbitMQ takes for 0-9-1 too.
const protocolHeader09 = "AMQP\x01\x01\x00\x09"

// refuseVersion answers a protocol header with the one that is expected, as section
// 4.2.2 of AMQP 0-9-1 says.
func (c *conn) refuseVersion() error {
	c.mu.Lock()
	c.out.end(append(c.out.begin(), wire.ProtocolHeader...))
	c.wakeWriter()
	c.mu.Unlock()
	return errRefused
}

// refuse logs why a handshake has failed.
func (c *conn) refuse(state string, err error) error {
	var e *wire.Exception
	if !errors.As(err, &e) || e.Code == wire.ConnectionForced {
		return err
	}
	c.log.Warn("connection refused: handshake failed", "state", state, "error", err)
	return errRefused
}

// await reads frames until a method arrives, which must be an M.
func await[M wire.Method](c *conn) (M, error) {
	var none M
	for {
		f, err := c.frames.Next()
		if err != nil {
			return none, err
		}
		if f.Channel != 0 {
			return none, f.Unexpected()
		}
		m, err := c.connectionMethod(f)
		if err != nil {
			return none, err
		}
		switch m := m.(type) {
		case nil:
		case M:
			return m, nil
		case *wire.ConnectionClose:
			return none, errClosed
		default:
			return none, by(m.ID(), wire.Errorf(wire.ChannelError, "unexpected method in connection state %s", waiting(none)))
		}
	}
}

// waiting is RabbitMQ's name for the state in which a method is awaited.
func waiting(m wire.Method) string {
	switch m.(type) {
	case *wire.ConnectionStartOk:
		return "starting"
	case *wire.ConnectionTuneOk:
		return "tuning"
	}
	return "opening"
}

// secure does the handshake of TLS, if the connection is to have it, and returns the
// client's certificate if that is verified.
func (c *conn) secure() (*x509.Certificate, error) {
	secured, ok := c.net.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	if err := secured.HandshakeContext(c.ctx); err != nil {
		c.log.Warn("connection refused: the TLS handshake failed", "error", err)
		return nil, errRefused
	}
	state := secured.ConnectionState()
	if len(state.VerifiedChains) == 0 {
		return nil, nil
	}
	return state.PeerCertificates[0], nil
}

const external = "EXTERNAL"

// mechanisms are those that are offered, in the order of RabbitMQ 4.3: a client with a
// certificate may log in by that.
func mechanisms(certificate *x509.Certificate) string {
	if certificate != nil {
		return external + " AMQPLAIN PLAIN ANONYMOUS"
	}
	return "AMQPLAIN PLAIN ANONYMOUS"
}

// authenticate checks the client's credentials. Whatever is wrong with them, the
// client is told no more than RabbitMQ tells.
func (c *conn) authenticate(m *wire.ConnectionStartOk, certificate *x509.Certificate) error {
	var user, password string
	var err error
	switch {
	case m.Mechanism == "PLAIN":
		user, password, err = plain(m.Response)
	case m.Mechanism == "AMQPLAIN":
		user, password, err = amqplain(m.Response)
	case m.Mechanism == "ANONYMOUS": // as whom RabbitMQ has it; with another password of guest it is refused
		user, password = access.Guest, "guest"
	case m.Mechanism == external && certificate != nil:
		var named bool
		if user, named = c.server.options.CertificateName.Of(certificate); !named {
			err = errors.New("the client's certificate has no name of a user")
		}
	default:
		err = fmt.Errorf("unknown authentication mechanism '%s'", m.Mechanism)
	}
	if err != nil {
		c.log.Warn("connection refused: bad credentials", "error", err)
		return errRefused
	}
	var identity *access.Identity
	if m.Mechanism == external {
		identity, err = c.server.options.Directory.Trust(user)
	} else {
		identity, err = c.server.options.Directory.Authenticate(user, password)
	}
	if err == nil && user == access.Guest && !isLoopback(c.net.RemoteAddr()) {
		err = errLoopbackOnly
	}
	if err == nil {
		c.mu.Lock()
		c.identity = identity
		c.mu.Unlock()
		return nil
	}
	c.log.Warn("connection refused: login failed", "user", user, "mechanism", m.Mechanism, "reason", err)
	if !c.can("authentication_failure_close") {
		return errRefused
	}
	return wire.Errorf(wire.AccessRefused, "Login was refused using authentication mechanism %s. For details see the broker logfile.", m.Mechanism)
}

// errLoopbackOnly: the password of the user guest is no secret. Source:
// https://www.rabbitmq.com/docs/access-control#loopback-users.
var errLoopbackOnly = errors.New("this user may connect from this machine only")

// enter opens a virtual host.
func (c *conn) enter(name string) error {
	h := c.server.options.Host(name)
	if h == nil {
		return wire.Errorf(wire.NotAllowed, "vhost %s not found", name)
	}
	c.mu.Lock()
	c.host = h
	c.mu.Unlock()
	// From here on the connection is closed when its user or virtual host is deleted, so
	// this is not too late to look.
	if !c.identity.MayEnter(name) || c.server.options.Host(name) != h {
		return wire.Errorf(wire.NotAllowed, "access to vhost '%s' refused for user '%s'", name, c.identity.Name())
	}
	return nil
}

// plain reads the response of the PLAIN mechanism (RFC 4616). As with RabbitMQ nobody may act for another.
func plain(response string) (user, password string, err error) {
	parts := strings.Split(response, "\x00")
	if len(parts) != 3 || parts[0] != "" {
		return "", "", errors.New("malformed response to PLAIN")
	}
	return parts[1], parts[2], nil
}

// amqplain reads the response of AMQPLAIN: the content of a field table.
func amqplain(response string) (user, password string, err error) {
	t, err := wire.ParseTable([]byte(response))
	if err != nil {
		return "", "", fmt.Errorf("malformed response to AMQPLAIN: %w", err)
	}
	login, _ := t.Get("LOGIN")
	secret, _ := t.Get("PASSWORD")
	user, haveUser := login.(string)
	password, havePassword := secret.(string)
	if !haveUser || !havePassword {
		return "", "", errors.New("AMQPLAIN without LOGIN or PASSWORD")
	}
	return user, password, nil
}

// tune takes over what the client has chosen, within what was offered.
func (c *conn) tune(m *wire.ConnectionTuneOk) error {
	for _, v := range []struct {
		name                 string
		chosen, least, offer uint32
	}{
		{"frame_max", m.FrameMax, wire.FrameMinSize, frameMax},
		{"channel_max", uint32(m.ChannelMax), 1, channelMax},
	} {
		bound, which, than := v.offer, "maximum", "higher"
		switch {
		case v.chosen != 0 && v.chosen < v.least:
			bound, which, than = v.least, "minimum", "lower"
		case v.chosen != 0 && v.chosen <= v.offer:
			continue
		}
		detail := ""
		if v.name == "channel_max" && v.chosen == 0 {
			detail = " (no limit)"
		}
		return by(wire.IDConnectionTune, wire.Errorf(wire.NotAllowed, "negotiated %s = %d%s is %s than the %s allowed value (%d)",
			v.name, v.chosen, detail, than, which, bound))
	}
	c.channelMax = int(m.ChannelMax)
	c.frameMax = m.FrameMax
	c.frames.SetFrameMax(m.FrameMax)
	c.mu.Lock()
	c.heartbeat = time.Duration(m.Heartbeat) * time.Second
	c.mu.Unlock()
	return nil
}

func serverProperties() wire.Table {
	capabilities := wire.Table{}
	for _, name := range []string{
		"publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify", "connection.blocked",
		"consumer_priorities", "authentication_failure_close", "per_consumer_qos", "direct_reply_to",
	} {
		capabilities = append(capabilities, wire.Field{Name: name, Value: true})
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "localhost"
	}
	return wire.Table{
		{Name: "capabilities", Value: capabilities},
		{Name: "cluster_name", Value: "dormouse@" + machine},
		{Name: "implementation", Value: "Dormouse"},
		{Name: "information", Value: "Licensed under the Apache License 2.0"},
		{Name: "platform", Value: runtime.Version()},
		// Clients look for this name to find out what a broker can do: Celery takes it for a broker whose prefetch limits
		// can be raised, and others run or skip their tests by it.
		{Name: "product", Value: "RabbitMQ"},
		{Name: "version", Value: Version},
	}
}
