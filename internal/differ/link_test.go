package differ

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// A link is one connection to a broker. What arrives is handed to its peer.
type link struct {
	conn   net.Conn
	mu     sync.Mutex // guards channels and what the peer has seen of them
	chans  map[uint16]*channel
	opened map[uint16]chan struct{}
	seen   *observed
	plain  func(string) string
	down   bool
	// counting says that the counts of queues are to be seen.
	counting bool
}

// A channel is what a client knows of an open channel.
type channel struct {
	waiting   int // answers that are to come
	confirms  bool
	published uint64
	open      map[uint64]bool // published and not confirmed
	unacked   []delivery
	settled   []delivery // in a transaction that is not committed
	tx        bool
}

// A delivery is a message that is to be settled.
type delivery struct {
	tag         uint64
	source      string // consumer or queue
	body        string
	redelivered bool
}

func (d delivery) key() string { return d.source + " " + d.body }

const dialPatience = 20 * time.Second

// dial opens a connection to a virtual host.
func dial(address, vhost string, seen *observed, plain func(string) string) (*link, error) {
	conn, err := net.DialTimeout("tcp", address, dialPatience)
	if err != nil {
		return nil, err
	}
	in := wire.NewReader(conn, 1<<20)
	l := &link{conn: conn, chans: map[uint16]*channel{}, opened: map[uint16]chan struct{}{}, seen: seen, plain: plain}
	if err := l.login(in, vhost); err != nil {
		conn.Close()
		return nil, err
	}
	go l.read(in)
	return l, nil
}

func (l *link) login(in *wire.Reader, vhost string) error {
	next := func() (wire.Method, error) {
		f, err := in.Next()
		if err != nil {
			return nil, err
		}
		id, args, _ := wire.SplitMethod(f.Payload)
		return wire.ParseMethod(id, args)
	}
	if err := l.conn.SetDeadline(time.Now().Add(dialPatience)); err != nil {
		return err
	}
	if _, err := l.conn.Write([]byte(wire.ProtocolHeader)); err != nil {
		return err
	}
	able := wire.Table{{Name: "consumer_cancel_notify", Value: true}, {Name: "basic.nack", Value: true}, {Name: "publisher_confirms", Value: true}}
	for _, answer := range [][]wire.Method{
		{&wire.ConnectionStartOk{Mechanism: "PLAIN", Response: "\x00guest\x00guest", Locale: "en_US", ClientProperties: wire.Table{{Name: "capabilities", Value: able}}}},
		{&wire.ConnectionTuneOk{ChannelMax: 100, FrameMax: 131072}, &wire.ConnectionOpen{VirtualHost: vhost}},
		nil,
	} {
		m, err := next()
		if err != nil {
			return err
		}
		if refused, is := m.(*wire.ConnectionClose); is {
			return fmt.Errorf("%d %s", refused.ReplyCode, refused.ReplyText)
		}
		for _, m := range answer {
			if _, err := l.conn.Write(wire.AppendMethod(nil, 0, m)); err != nil {
				return err
			}
		}
	}
	return l.conn.SetDeadline(time.Time{})
}

// channel is an open channel, opened if it is not.
func (l *link) channel(n uint16) error {
	l.mu.Lock()
	if l.chans[n] != nil {
		l.mu.Unlock()
		return nil
	}
	opened := make(chan struct{})
	l.opened[n] = opened
	l.mu.Unlock()
	if _, err := l.conn.Write(wire.AppendMethod(nil, n, &wire.ChannelOpen{})); err != nil {
		return err
	}
	select {
	case <-opened:
		return nil
	case <-time.After(dialPatience):
		return fmt.Errorf("channel %d does not open", n)
	}
}

// send sends what has been encoded, after which so many answers come.
func (l *link) send(n uint16, answers int, b []byte) error {
	l.mu.Lock()
	if ch := l.chans[n]; ch != nil {
		ch.waiting += answers
	}
	l.mu.Unlock()
	_, err := l.conn.Write(b)
	return err
}

// isDown tells whether the broker has closed the connection.
func (l *link) isDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

// idle tells whether nothing is on its way that must come.
func (l *link) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ch := range l.chans {
		if ch.waiting > 0 || len(ch.open) > 0 {
			return false
		}
	}
	return true
}

func (l *link) read(in *wire.Reader) {
	var method wire.Method
	var on uint16
	var header wire.ContentHeader
	var body []byte
	for {
		f, err := in.Next()
		if err != nil {
			l.mu.Lock()
			l.down, l.chans = true, map[uint16]*channel{}
			l.mu.Unlock()
			return
		}
		switch f.Type {
		case wire.FrameMethod:
			id, args, _ := wire.SplitMethod(f.Payload)
			m, err := wire.ParseMethod(id, args)
			if err != nil {
				l.note(f.Channel, "unreadable "+err.Error())
				continue
			}
			switch m.(type) {
			case *wire.BasicDeliver, *wire.BasicGetOk, *wire.BasicReturn:
				method, on, body = m, f.Channel, nil
			default:
				l.take(f.Channel, m)
			}
			continue
		case wire.FrameHeader:
			h, _ := wire.ParseContentHeader(f.Payload)
			h.Properties = append([]byte(nil), h.Properties...)
			header = h
		case wire.FrameBody:
			body = append(body, f.Payload...)
		}
		if method != nil && f.Type != wire.FrameHeartbeat && uint64(len(body)) == header.BodySize {
			properties, err := wire.ParseProperties(header.Properties)
			if err != nil {
				l.note(on, "unreadable properties "+err.Error())
			}
			l.content(on, method, properties, string(body))
			method = nil
		}
	}
}

func (l *link) note(n uint16, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen.add(fmt.Sprintf("channel %d", n), l.plain(what))
}

// take takes a method without content.
func (l *link) take(n uint16, m wire.Method) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := l.chans[n]
	if ch == nil {
		ch = &channel{}
	}
	what := fmt.Sprintf("channel %d", n)
	switch m := m.(type) {
	case *wire.ChannelOpenOk:
		l.chans[n] = &channel{open: map[uint64]bool{}}
		close(l.opened[n])
	case *wire.ChannelClose:
		l.seen.add(what, l.plain(fmt.Sprintf("closed: %d %s (%d,%d)", m.ReplyCode, m.ReplyText, m.ClassID, m.MethodID)))
		delete(l.chans, n)
		l.reply(wire.AppendMethod(nil, n, &wire.ChannelCloseOk{}))
	case *wire.ConnectionClose:
		l.seen.add("connection", l.plain(fmt.Sprintf("closed: %d %s (%d,%d)", m.ReplyCode, m.ReplyText, m.ClassID, m.MethodID)))
		l.chans, l.down = map[uint16]*channel{}, true
		l.reply(wire.AppendMethod(nil, 0, &wire.ConnectionCloseOk{}))
	case *wire.BasicAck:
		l.confirmed(ch, what, m.DeliveryTag, m.Multiple, "confirmed")
	case *wire.BasicNack:
		l.confirmed(ch, what, m.DeliveryTag, m.Multiple, "refused")
	case *wire.BasicCancel:
		l.seen.add(what, l.plain("cancelled "+m.ConsumerTag))
	case *wire.ExchangeDeclareOk: // also what a barrier is answered with
		ch.waiting--
	case *wire.ChannelCloseOk:
		delete(l.chans, n)
	case *wire.QueueDeclareOk:
		ch.waiting--
		if !l.counting { // they are looked at afterwards
			m.MessageCount, m.ConsumerCount = 0, 0
		}
		l.seen.add(what, l.plain(fmt.Sprintf("%v %+v", m.ID(), m)))
	default:
		ch.waiting--
		l.seen.add(what, l.plain(fmt.Sprintf("%v %+v", m.ID(), m)))
	}
}

// reply answers the broker, which may be gone.
func (l *link) reply(b []byte) {
	if _, err := l.conn.Write(b); err != nil {
		l.down = true
	}
}

func (l *link) confirmed(ch *channel, what string, tag uint64, multiple bool, how string) {
	for t := range ch.open {
		if t == tag || multiple && t <= tag {
			delete(ch.open, t)
			l.seen.addSet(what+" "+how, fmt.Sprint(t))
		}
	}
}

// content takes a method with content.
func (l *link) content(n uint16, m wire.Method, p wire.Properties, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := l.chans[n]
	if ch == nil {
		return
	}
	what := fmt.Sprintf("channel %d", n)
	text := l.plain(message(p, body))
	switch m := m.(type) {
	case *wire.BasicDeliver:
		d := delivery{tag: m.DeliveryTag, source: l.plain(m.ConsumerTag), body: body, redelivered: m.Redelivered}
		if !strings.HasSuffix(d.source, autoAck) {
			ch.unacked = append(ch.unacked, d)
		}
		l.seen.add(what+" "+d.source, l.plain(fmt.Sprintf("redelivered=%v %q/%q ", m.Redelivered, m.Exchange, m.RoutingKey))+text)
	case *wire.BasicGetOk:
		ch.waiting--
		if m.DeliveryTag > 0 && !l.seen.getsAcked {
			ch.unacked = append(ch.unacked, delivery{tag: m.DeliveryTag, source: "get", body: body, redelivered: m.Redelivered})
		}
		l.seen.add(what, l.plain(fmt.Sprintf("got redelivered=%v %q/%q left=%d ", m.Redelivered, m.Exchange, m.RoutingKey, m.MessageCount))+text)
	case *wire.BasicReturn:
		l.seen.add(what, l.plain(fmt.Sprintf("returned %d %s %q/%q ", m.ReplyCode, m.ReplyText, m.Exchange, m.RoutingKey))+text)
	}
}

// ask makes a request of which the answer, or the exception, is all that is to be seen.
func (l *link) ask(on uint16, m wire.Method) (string, error) {
	if err := l.channel(on); err != nil {
		return "", err
	}
	l.seen.clear()
	if err := l.send(on, 1, wire.AppendMethod(nil, on, m)); err != nil {
		return "", err
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(dialPatience); !l.idle(); <-again.C {
		if time.Now().After(deadline) {
			return "", fmt.Errorf("no answer to %v", m.ID())
		}
	}
	return strings.TrimSpace(l.seen.String()), nil
}
