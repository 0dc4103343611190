package session

import (
	"cmp"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Connection is an open connection as people see it.
type Connection struct {
	Name           string // "127.0.0.1:52356 -> 127.0.0.1:5672"
	User           string
	Host           string // virtual host
	Mechanism      string // by which the user has logged in
	Properties     wire.Table
	Local, Peer    net.Addr
	ConnectedAt    time.Time
	ChannelMax     int
	FrameMax       uint32
	Heartbeat      time.Duration
	TLS            uint16 // its version, as of crypto/tls; 0 if the connection is not encrypted
	Blocked        bool   // it wants to publish and may not
	Pending        int    // bytes that wait to be written
	Received, Sent Traffic
	Channels       []Channel // by number
}

// Channel is an open channel as people see it.
type Channel struct {
	Number        uint16
	Confirm       bool
	Transactional bool
	Prefetch      int // of consumers to come
	Limit         int // of the channel, 0 for none
	Consumers     int
	Unacked       int
	Unconfirmed   int
	// Uncommitted and UncommittedAcks are what a transaction has gathered.
	Uncommitted, UncommittedAcks int
	Counts                       Counts
}

// Connections are the open connections by name.
func (s *Server) Connections() []Connection {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	all := make([]Connection, 0, len(conns))
	for _, c := range conns {
		if seen, open := c.inspect(); open {
			all = append(all, seen)
		}
	}
	slices.SortFunc(all, func(a, b Connection) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// CloseConnection closes the connection of that name with CONNECTION_FORCED and that
// reason, and tells whether there is one.
func (s *Server) CloseConnection(name, reason string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.name() == name {
			c.interrupt(reason)
			return true
		}
	}
	return false
}

// Totals are what the connections to each virtual host have done.
func (s *Server) Totals() map[string]Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.past)
	for c := range s.conns {
		c.addTo(all)
	}
	return all
}

// addTo adds what c has done to the totals of its virtual host.
func (c *conn) addTo(all map[string]Totals) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened.IsZero() {
		return
	}
	t := Totals{Counts: c.past, Received: c.received.now(), Sent: c.sent.now()}
	for _, ch := range c.channels {
		if !ch.closed {
			t.Counts.Add(ch.countsNow())
		}
	}
	sum := all[c.host.Name()]
	sum.Add(t)
	all[c.host.Name()] = sum
}

// Churn is how many connections and channels came and went.
func (s *Server) Churn() Churn {
	return Churn{
		ConnectionsCreated: s.churn.connectionsCreated.Load(), ConnectionsClosed: s.churn.connectionsClosed.Load(),
		ChannelsCreated: s.churn.channelsCreated.Load(), ChannelsClosed: s.churn.channelsClosed.Load(),
	}
}

type churn struct {
	connectionsCreated, connectionsClosed, channelsCreated, channelsClosed atomic.Uint64
}

// Subscription is a consumer's side of a subscription.
type Subscription struct {
	Connection string
	Channel    uint16
	Peer       net.Addr
	User       string
	Arguments  wire.Table
}

// Describe tells whose a queue's consumer is; false if it is none of a connection's.
func Describe(c *queue.Consumer) (Subscription, bool) {
	k, ok := c.Sink.(*consumer)
	if !ok {
		return Subscription{}, false
	}
	of := k.channel.conn
	return Subscription{
		Connection: of.name(), Channel: k.channel.number, Peer: of.net.RemoteAddr(), User: of.identity.Name(), Arguments: k.Arguments,
	}, true
}

// NameOf is the name and the peer of the connection that owns an exclusive queue; false
// if owner is no connection.
func NameOf(owner any) (name string, peer net.Addr, ok bool) {
	c, ok := owner.(*conn)
	if !ok {
		return "", nil, false
	}
	return c.name(), c.net.RemoteAddr(), true
}

// name is the connection's name, as RabbitMQ makes it of its two ends.
func (c *conn) name() string {
	return c.net.RemoteAddr().String() + " -> " + c.net.LocalAddr().String()
}

// inspect returns what c looks like; false if it is not open yet.
func (c *conn) inspect() (Connection, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened.IsZero() {
		return Connection{}, false
	}
	seen := Connection{
		Name: c.name(), User: c.identity.Name(), Host: c.host.Name(), Mechanism: c.mechanism, Properties: c.properties,
		Local: c.net.LocalAddr(), Peer: c.net.RemoteAddr(), ConnectedAt: c.opened,
		ChannelMax: c.channelMax, FrameMax: c.frameMax, Heartbeat: c.heartbeat,
		Blocked: c.blocked, Pending: c.out.size, Received: c.received.now(), Sent: c.sent.now(),
	}
	if secured, ok := c.net.(*tls.Conn); ok {
		seen.TLS = secured.ConnectionState().Version
	}
	for _, ch := range c.channels {
		if !ch.closed {
			seen.Channels = append(seen.Channels, ch.inspect())
		}
	}
	slices.SortFunc(seen.Channels, func(a, b Channel) int { return cmp.Compare(a.Number, b.Number) })
	return seen, true
}

// inspect is called with conn.mu held.
func (ch *channel) inspect() Channel {
	seen := Channel{
		Number: ch.number, Confirm: ch.confirming, Transactional: ch.transactional, Prefetch: ch.prefetch, Limit: ch.limit,
		Consumers: len(ch.consumers), Unacked: ch.unacked.live, Counts: ch.countsNow(),
	}
	if ch.confirming {
		seen.Unconfirmed = int(ch.publishes.Load() - ch.unconfirmed - ch.confirms.resolved())
	}
	seen.Uncommitted, seen.UncommittedAcks = int(ch.uncommitted.messages.Load()), int(ch.uncommitted.acks.Load())
	return seen
}

// countsNow is called with conn.mu held.
func (ch *channel) countsNow() Counts {
	now := ch.counts
	now.Publish = ch.publishes.Load()
	return now
}

// traffic counts reads or writes.
type traffic struct{ octets, count atomic.Uint64 }

func (t *traffic) add(octets int) {
	t.octets.Add(uint64(octets))
	t.count.Add(1)
}

func (t *traffic) now() Traffic { return Traffic{Octets: t.octets.Load(), Count: t.count.Load()} }
