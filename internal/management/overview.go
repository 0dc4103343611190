package management

import (
	"os"
	"runtime"
	"sync"

	"github.com/dormousemq/dormouse/internal/session"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// nodeName is the name of the one node, as Erlang would have it. The system is asked once:
// every queue of a list says the name.
var nodeName = sync.OnceValue(func() string {
	machine, err := os.Hostname()
	if err != nil {
		machine = "localhost"
	}
	return "dormouse@" + machine
})

// hostCounts are what a virtual host has and has done at one moment.
type hostCounts struct {
	totals         session.Totals
	ready, unacked int
}

// churn counts what came and went.
type churn struct {
	session.Churn
	topology vhost.Churn
}

func (h *Handler) churnNow() churn {
	c := churn{Churn: h.Sessions.Churn()}
	for _, host := range h.Hosts.All() {
		c.topology.Add(host.Churn())
	}
	return c
}

func shownChurn(now, a, b churn, p *period) object {
	o := object{}
	counted(&o, "connection_created", now.ConnectionsCreated, a.ConnectionsCreated, b.ConnectionsCreated, p)
	counted(&o, "connection_closed", now.ConnectionsClosed, a.ConnectionsClosed, b.ConnectionsClosed, p)
	counted(&o, "channel_created", now.ChannelsCreated, a.ChannelsCreated, b.ChannelsCreated, p)
	counted(&o, "channel_closed", now.ChannelsClosed, a.ChannelsClosed, b.ChannelsClosed, p)
	counted(&o, "queue_declared", now.topology.QueuesDeclared, a.topology.QueuesDeclared, b.topology.QueuesDeclared, p)
	counted(&o, "queue_created", now.topology.QueuesCreated, a.topology.QueuesCreated, b.topology.QueuesCreated, p)
	counted(&o, "queue_deleted", now.topology.QueuesDeleted, a.topology.QueuesDeleted, b.topology.QueuesDeleted, p)
	return o
}

// sum adds up what virtual hosts have and have done.
func sum(all map[string]hostCounts, hosts []*vhost.Host) (c hostCounts) {
	for _, host := range hosts {
		of := all[host.Name()]
		c.totals.Add(of.totals)
		c.ready += of.ready
		c.unacked += of.unacked
	}
	return c
}

func getOverview(h *Handler, r *request) (any, error) {
	hosts := h.visible(r)
	p := h.samples.now()
	a, b := sum(p.from.hosts, hosts), sum(p.to.hosts, hosts)
	now := hostCounts{}
	totals := h.Sessions.Totals()
	exchanges, queues, consumers := 0, 0, 0
	for _, host := range hosts {
		now.totals.Add(totals[host.Name()])
		exchanges += len(host.Exchanges())
		for _, q := range host.Queues() {
			c := q.Counts()
			queues++
			consumers += c.Consumers
			now.ready += c.Ready
			now.unacked += c.Unacked
		}
	}
	connections := h.connections(r)
	o := object{
		{"management_version", session.Version}, {"rates_mode", "basic"}, {"sample_retention_policies", object{{"global", []any{}}, {"basic", []any{}}, {"detailed", []any{}}}},
		{"exchange_types", exchangeTypes()}, {"product_version", session.Version}, {"product_name", "Dormouse"},
		{"rabbitmq_version", session.Version}, {"cluster_name", h.clusterName()}, {"cluster_tags", object{}}, {"node_tags", object{}},
		{"erlang_version", ""}, {"erlang_full_version", runtime.Version()}, {"disable_stats", false},
		{"default_queue_type", "classic"}, {"is_op_policy_updating_enabled", true}, {"enable_queue_totals", false},
		{"message_stats", channelStats(now.totals.Counts, a.totals.Counts, b.totals.Counts, p)},
		{"churn_rates", shownChurn(h.churnNow(), p.from.churn, p.to.churn, p)},
		{"queue_totals", lengths(now, a, b, p)},
		{"object_totals", object{
			{"channels", len(channelsOf(connections))}, {"consumers", consumers}, {"connections", len(connections)},
			{"exchanges", exchanges}, {"queues", queues},
		}},
		{"statistics_db_event_queue", 0}, {"node", nodeName()},
	}
	if sees(r.user) {
		o.add("listeners", h.shownListeners())
		o.add("contexts", h.contexts())
	}
	return o.columns(r), nil
}

func getVersion(*Handler, *request) (any, error) { return session.Version, nil }

// lengths is how much is in queues.
func lengths(now, a, b hostCounts, p *period) object {
	o := object{}
	counted(&o, "messages", now.ready+now.unacked, a.ready+a.unacked, b.ready+b.unacked, p)
	counted(&o, "messages_ready", now.ready, a.ready, b.ready, p)
	counted(&o, "messages_unacknowledged", now.unacked, a.unacked, b.unacked, p)
	return o
}

func exchangeTypes() []object {
	all := []object{}
	for _, t := range vhost.ExchangeTypes() {
		all = append(all, object{{"name", t.Name}, {"description", t.Description}, {"enabled", true}})
	}
	return all
}

func (h *Handler) shownListeners() []object {
	all := []object{}
	for _, l := range h.listeners() {
		host, port := ends(l.Address)
		all = append(all, object{
			{"node", nodeName()}, {"protocol", l.Protocol}, {"ip_address", host}, {"port", port},
			{"socket_opts", object{}}, {"tls", l.TLS()},
		})
	}
	return all
}

func (h *Handler) listeners() []Listener {
	if h.Listeners == nil {
		return nil
	}
	return h.Listeners()
}

// contexts are the addresses of the management API.
func (h *Handler) contexts() []object {
	all := []object{}
	for _, l := range h.listeners() {
		if l.Protocol != "http" {
			continue
		}
		host, port := ends(l.Address)
		all = append(all, object{
			{"node", nodeName()}, {"description", "RabbitMQ Management"}, {"path", "/"}, {"ip", host}, {"port", string(appendJSON(nil, port))},
		})
	}
	return all
}

// shownHost is a virtual host with what its connections have done.
func (h *Handler) shownHost(host *vhost.Host, totals session.Totals) object {
	d := host.Description()
	p := h.samples.now()
	now, a, b := hostCounts{totals: totals}, p.from.hosts[d.Name], p.to.hosts[d.Name]
	for _, q := range host.Queues() {
		c := q.Counts()
		now.ready += c.Ready
		now.unacked += c.Unacked
	}
	o := append(object{{"name", d.Name}}, describedHost(d)...)
	o = append(o, object{
		{"protected_from_deletion", false}, {"metadata", describedHost(d)}, {"tracing", false},
		{"cluster_state", object{{nodeName(), "running"}}},
	}...)
	counted(&o, "send_oct", totals.Sent.Octets, a.totals.Sent.Octets, b.totals.Sent.Octets, p)
	counted(&o, "recv_oct", totals.Received.Octets, a.totals.Received.Octets, b.totals.Received.Octets, p)
	o = append(o, lengths(now, a, b, p)...)
	if stats := channelStats(totals.Counts, a.totals.Counts, b.totals.Counts, p); len(stats) > 0 {
		o.add("message_stats", stats)
	}
	return o
}
