package management

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/dormousemq/dormouse/internal/session"
)

// connections are those that a user sees: his own, or all.
func (h *Handler) connections(r *request) []session.Connection {
	all := h.Sessions.Connections()
	return slices.DeleteFunc(all, func(c session.Connection) bool {
		return !sees(r.user) && c.User != r.user.Name() || r.host != nil && c.Host != r.host.Name()
	})
}

func listConnections(h *Handler, r *request) (any, error) {
	p := h.samples.now()
	return listing[session.Connection]{
		items: h.connections(r),
		name:  func(c session.Connection) string { return c.Name },
		show:  func(c session.Connection) object { return shownConnection(c, p) },
	}.answer(r)
}

// ends are the address and port of one end of a connection. Not all have a port.
func ends(a net.Addr) (host string, port any) {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.IP.String(), tcp.Port
	}
	return a.String(), nil
}

func shownPeer(name string, peer net.Addr) object {
	host, port := ends(peer)
	return object{{"name", name}, {"peer_host", host}, {"peer_port", port}}
}

func shownConnection(c session.Connection, p *period) object {
	host, port := ends(c.Local)
	peerHost, peerPort := ends(c.Peer)
	a, b := p.from.traffic[c.Name], p.to.traffic[c.Name]
	state := "running"
	if c.Blocked {
		state = "blocked"
	}
	o := object{
		{"auth_mechanism", c.Mechanism}, {"channel_max", c.ChannelMax}, {"channels", len(c.Channels)},
		{"client_properties", shown(c.Properties)}, {"connected_at", c.ConnectedAt.UnixMilli()}, {"frame_max", int(c.FrameMax)},
		{"host", host}, {"name", c.Name}, {"node", nodeName()},
		{"peer_host", peerHost}, {"peer_port", peerPort}, {"port", port}, {"protocol", "AMQP 0-9-1"},
		{"recv_cnt", c.Received.Count},
	}
	counted(&o, "recv_oct", c.Received.Octets, a.received.Octets, b.received.Octets, p)
	o.add("send_cnt", c.Sent.Count)
	counted(&o, "send_oct", c.Sent.Octets, a.sent.Octets, b.sent.Octets, p)
	o = append(o, object{
		{"send_pend", c.Pending}, {"ssl", c.TLS != 0}, {"state", state}, {"timeout", int(c.Heartbeat / time.Second)},
		{"type", "network"}, {"user", c.User},
	}...)
	o = append(o, secured(c)...)
	if name, ok := c.Properties.Get("connection_name"); ok {
		o.add("user_provided_name", shownValue(name))
	}
	return append(o, object{{"user_who_performed_action", c.User}, {"vhost", c.Host}}...)
}

// secured is how a connection is encrypted. What Go's TLS does not tell stays null, as all
// does without TLS.
func secured(c session.Connection) object {
	o := object{
		{"peer_cert_issuer", nil}, {"peer_cert_serial_number", nil}, {"peer_cert_subject", nil}, {"peer_cert_validity", nil},
		{"ssl_cipher", nil}, {"ssl_hash", nil}, {"ssl_key_exchange", nil},
	}
	if c.TLS == 0 {
		return append(o, member{"ssl_protocol", nil})
	}
	return append(o, member{"ssl_protocol", strings.ToLower(strings.ReplaceAll(tls.VersionName(c.TLS), " ", "v"))})
}

// namedConnection is the connection that a path names.
func (h *Handler) namedConnection(r *request) (session.Connection, error) {
	all := h.connections(r)
	i := slices.IndexFunc(all, func(c session.Connection) bool { return c.Name == r.variables["connection"] })
	if i < 0 {
		return session.Connection{}, notFound()
	}
	return all[i], nil
}

func getConnection(h *Handler, r *request) (any, error) {
	c, err := h.namedConnection(r)
	if err != nil {
		return nil, err
	}
	return shownConnection(c, h.samples.now()), nil
}

// closingReason is what a client is told whose connection is closed.
func closingReason(r *request) string {
	if reason := r.http.Header.Get("X-Reason"); reason != "" {
		return reason
	}
	return "Closed via management plugin"
}

func closeConnection(h *Handler, r *request) (any, error) {
	c, err := h.namedConnection(r)
	if err != nil {
		return nil, err
	}
	h.Sessions.CloseConnection(c.Name, closingReason(r))
	return nil, nil
}

func connectionsOfUser(h *Handler, r *request) (any, error) {
	p := h.samples.now()
	all := slices.DeleteFunc(h.connections(r), func(c session.Connection) bool { return c.User != r.variables["user"] })
	return plain(r, all, func(c session.Connection) object { return shownConnection(c, p) })
}

func closeConnectionsOfUser(h *Handler, r *request) (any, error) {
	for _, c := range h.connections(r) {
		if c.User == r.variables["user"] {
			h.Sessions.CloseConnection(c.Name, closingReason(r))
		}
	}
	return nil, nil
}

// open is a channel and its connection.
type open struct {
	session.Channel
	of session.Connection
}

func channelName(connection string, number uint16) string {
	return fmt.Sprintf("%s (%d)", connection, number)
}

func (c open) name() string { return channelName(c.of.Name, c.Number) }

func channelsOf(connections []session.Connection) (all []open) {
	for _, c := range connections {
		for _, ch := range c.Channels {
			all = append(all, open{ch, c})
		}
	}
	return all
}

func listChannels(h *Handler, r *request) (any, error) {
	p := h.samples.now()
	return listing[open]{
		items: channelsOf(h.connections(r)), name: open.name, show: func(c open) object { return shownChannel(c, p) },
	}.answer(r)
}

func channelsOfConnection(h *Handler, r *request) (any, error) {
	c, err := h.namedConnection(r)
	if err != nil {
		return nil, err
	}
	p := h.samples.now()
	return plain(r, channelsOf([]session.Connection{c}), func(c open) object { return shownChannel(c, p) })
}

func shownChannel(c open, p *period) object {
	key := channelKey{c.of.Name, c.Number}
	return object{
		{"connection_details", shownPeer(c.of.Name, c.of.Peer)}, {"confirm", c.Confirm}, {"consumer_count", c.Consumers},
		{"global_prefetch_count", c.Limit},
		{"message_stats", channelStats(c.Counts, p.from.channels[key], p.to.channels[key], p)},
		{"acks_uncommitted", c.UncommittedAcks}, {"messages_uncommitted", c.Uncommitted}, {"messages_unacknowledged", c.Unacked}, {"messages_unconfirmed", c.Unconfirmed},
		{"name", c.name()}, {"node", nodeName()}, {"number", int(c.Number)}, {"prefetch_count", c.Prefetch}, {"state", "running"},
		{"transactional", c.Transactional}, {"user", c.of.User}, {"user_who_performed_action", c.of.User}, {"vhost", c.of.Host},
	}
}

// channelStats are the message_stats of channels, with rates from a to b. As in
// RabbitMQ, those of publishing are there only if there are any, and so are the others.
func channelStats(now, a, b session.Counts, p *period) object {
	o := object{}
	if now.Publish > 0 || now.Confirm > 0 {
		counted(&o, "confirm", now.Confirm, a.Confirm, b.Confirm, p)
		counted(&o, "drop_unroutable", now.DropUnroutable, a.DropUnroutable, b.DropUnroutable, p)
		counted(&o, "publish", now.Publish, a.Publish, b.Publish, p)
		counted(&o, "return_unroutable", now.ReturnUnroutable, a.ReturnUnroutable, b.ReturnUnroutable, p)
	}
	if handed(now) > 0 || now.GetEmpty > 0 || now.Ack > 0 {
		counted(&o, "ack", now.Ack, a.Ack, b.Ack, p)
		counted(&o, "deliver", now.Deliver, a.Deliver, b.Deliver, p)
		counted(&o, "deliver_get", handed(now), handed(a), handed(b), p)
		counted(&o, "deliver_no_ack", now.DeliverNoAck, a.DeliverNoAck, b.DeliverNoAck, p)
		counted(&o, "get", now.Get, a.Get, b.Get, p)
		counted(&o, "get_empty", now.GetEmpty, a.GetEmpty, b.GetEmpty, p)
		counted(&o, "get_no_ack", now.GetNoAck, a.GetNoAck, b.GetNoAck, p)
		counted(&o, "redeliver", now.Redeliver, a.Redeliver, b.Redeliver, p)
	}
	return o
}

func handed(c session.Counts) uint64 { return c.Deliver + c.DeliverNoAck + c.Get + c.GetNoAck }

func getChannel(h *Handler, r *request) (any, error) {
	all := channelsOf(h.connections(r))
	i := slices.IndexFunc(all, func(c open) bool { return c.name() == r.variables["channel"] })
	if i < 0 {
		return nil, notFound()
	}
	o := shownChannel(all[i], h.samples.now())
	consumers := []object{}
	for _, host := range h.Hosts.All() {
		if host.Name() != all[i].of.Host {
			continue
		}
		for _, q := range host.Queues() {
			for _, c := range consumersOf(hosted{q, host}) {
				if c.Connection == all[i].of.Name && c.Subscription.Channel == all[i].Number {
					consumers = append(consumers, shownConsumer(c))
				}
			}
		}
	}
	o.add("consumer_details", consumers)
	o.add("publishes", []object{})
	o.add("deliveries", []object{})
	return o, nil
}
