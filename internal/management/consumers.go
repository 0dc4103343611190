package management

import (
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/session"
)

// consuming is a consumer of a queue.
type consuming struct {
	session.Subscription
	consumer *queue.Consumer
	active   bool
	of       hosted
}

func consumersOf(q hosted) (all []consuming) {
	active := q.Inspect().Active
	for _, c := range q.Consumers() {
		if s, ok := session.Describe(c); ok {
			all = append(all, consuming{s, c, active == nil || active == c, q})
		}
	}
	return all
}

func listConsumers(h *Handler, r *request) (any, error) {
	var all []consuming
	for _, host := range h.hostsOf(r) {
		for _, q := range host.Queues() {
			all = append(all, consumersOf(hosted{q, host})...)
		}
	}
	return plain(r, all, shownConsumer)
}

func shownConsumer(c consuming) object {
	host, port := ends(c.Peer)
	status := "up"
	if !c.active {
		status = "waiting"
	}
	return object{
		{"arguments", shown(c.Arguments)}, {"ack_required", !c.consumer.NoAck}, {"active", c.active}, {"activity_status", status},
		{"channel_details", object{
			{"connection_name", c.Connection}, {"name", channelName(c.Connection, c.Channel)}, {"node", nodeName()},
			{"number", int(c.Channel)}, {"peer_host", host}, {"peer_port", port}, {"user", c.User},
		}},
		{"consumer_tag", c.consumer.Tag}, {"exclusive", c.consumer.Exclusive}, {"prefetch_count", c.consumer.Prefetch},
		{"queue", object{{"name", c.of.Name()}, {"vhost", c.of.host.Name()}}},
	}
}
