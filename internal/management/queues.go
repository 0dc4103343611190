package management

import (
	"strconv"
	"time"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/session"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// hosted is a queue and where it is.
type hosted struct {
	*vhost.Queue
	host *vhost.Host
}

func listQueues(h *Handler, r *request) (any, error) {
	var all []hosted
	for _, host := range h.hostsOf(r) {
		for _, q := range host.Queues() {
			all = append(all, hosted{q, host})
		}
	}
	p := h.samples.now()
	show := func(q hosted) object { return shownQueue(q, p) }
	if r.is("disable_stats") {
		show = func(q hosted) object { return declaredQueue(q, r.is("enable_queue_totals")) }
	}
	return listing[hosted]{items: all, name: func(q hosted) string { return q.Name() }, show: show}.answer(r)
}

// declaredQueue is a queue without what it has done.
func declaredQueue(q hosted, totals bool) object {
	d := q.Declaration()
	o := object{
		{"arguments", shownArguments(q)}, {"auto_delete", d.AutoDelete}, {"durable", d.Durable}, {"exclusive", d.Exclusive},
	}
	if totals {
		c := q.Counts()
		o = append(o, object{{"messages", c.Ready + c.Unacked}, {"messages_ready", c.Ready}, {"messages_unacknowledged", c.Unacked}}...)
	}
	kind := q.Settings().Type
	effective, _ := q.host.QueuePolicy(q.Name())
	o = append(o, object{
		{"effective_policy_definition", shownDefinition(effective.Definition)},
		{"policy", orNull(effective.Policy)}, {"operator_policy", orNull(effective.OperatorPolicy)},
		{"internal", false}, {"internal_owner", false},
		{"name", q.Name()}, {"node", nodeName()}, {"state", "running"}, {"type", string(kind)}, {"vhost", q.host.Name()},
	}...)
	if kind != queue.Classic {
		o = append(o, members()...)
	}
	if kind == queue.Quorum {
		o.add("delivery_limit", deliveryLimit(q.Settings()))
	}
	return o
}

// orNull is a name, null if there is none.
func orNull(name string) any {
	if name == "" {
		return nil
	}
	return name
}

// shownArguments are the arguments of a queue, its type always among them.
func shownArguments(q hosted) object {
	o := shown(q.Declaration().Arguments)
	if _, has := o.get("x-queue-type"); !has {
		o.add("x-queue-type", string(q.Settings().Type))
	}
	return o
}

// shownQueue is a queue as lists have it.
func shownQueue(q hosted, p *period) object {
	d, i := q.Declaration(), q.Inspect()
	kind := q.Settings().Type
	now, a, b := countsOf(q.Queue, i), p.from.queues[q.Queue], p.to.queues[q.Queue]
	o := object{
		{"arguments", shownArguments(q)}, {"auto_delete", d.AutoDelete},
		{"consumer_capacity", capacity(i)}, {"consumer_utilisation", capacity(i)}, {"consumers", i.Consumers},
		{"durable", d.Durable}, {"exclusive", d.Exclusive},
	}
	if i.Exclusive != nil {
		o.add("exclusive_consumer_tag", i.Exclusive.Tag)
	}
	if i.Active != nil {
		o.add("single_active_consumer_tag", i.Active.Tag)
	}
	effective, _ := q.host.QueuePolicy(q.Name())
	o.add("effective_policy_definition", shownDefinition(effective.Definition))
	if effective.Policy != "" {
		o.add("policy", effective.Policy)
	}
	if effective.OperatorPolicy != "" {
		o.add("operator_policy", effective.OperatorPolicy)
	}
	if !b.idleSince.IsZero() && now.same(b) {
		o.add("idle_since", b.idleSince.UTC().Format(timeFormat))
	}
	o = append(o, object{
		{"internal", false}, {"internal_owner", false}, {"memory", i.Memory + queueOverhead},
		{"message_bytes", i.ReadyBytes + i.UnackedBytes}, {"message_bytes_persistent", persistentBytes(q, i)},
		{"message_bytes_ram", min(i.Memory, i.ReadyBytes) + i.UnackedBytes},
		{"message_bytes_ready", i.ReadyBytes}, {"message_bytes_unacknowledged", i.UnackedBytes},
	}...)
	o.add("message_stats", now.stats(a, b, p))
	counted(&o, "messages", now.ready+now.unacked, a.ready+a.unacked, b.ready+b.unacked, p)
	o.add("messages_persistent", persistent(q, i))
	o.add("messages_ram", i.InMemory+i.Unacked)
	counted(&o, "messages_ready", now.ready, a.ready, b.ready, p)
	o.add("messages_ready_ram", i.InMemory)
	counted(&o, "messages_unacknowledged", now.unacked, a.unacked, b.unacked, p)
	o.add("messages_unacknowledged_ram", i.Unacked)
	o = append(o, object{{"name", q.Name()}, {"node", nodeName()}}...)
	if kind != queue.Classic {
		o = append(o, members()...)
	}
	if kind == queue.Quorum {
		o.add("delivery_limit", deliveryLimit(q.Settings()))
		o = append(o, priorities(i)...)
	}
	o = append(o, object{{"state", "running"}, {"type", string(kind)}, {"vhost", q.host.Name()}}...)
	if kind == queue.Classic {
		o.add("storage_version", 2)
	}
	return o
}

// queueOverhead is about what an empty queue takes in memory, in bytes.
const queueOverhead = 2048

const timeFormat = "2006-01-02T15:04:05.000-07:00"

// capacity is whether consumers could take a message at once.
func capacity(i queue.Info) rate {
	if i.Waiting || i.Consumers > 0 && i.Ready == 0 {
		return 1
	}
	return 0
}

// persistent is how many messages outlive a restart.
func persistent(q hosted, i queue.Info) int {
	if s := q.Settings(); !s.Durable {
		return 0
	} else if s.Type == queue.Quorum {
		return i.Ready + i.Unacked
	}
	return min(i.Stored, i.Ready+i.Unacked)
}

// persistentBytes is the part of the length of all messages that the persistent ones
// have, as far as they are of one size.
func persistentBytes(q hosted, i queue.Info) int64 {
	all := int64(i.Ready + i.Unacked)
	if all == 0 {
		return 0
	}
	return (i.ReadyBytes + i.UnackedBytes) * int64(persistent(q, i)) / all
}

// members are those of a queue that RabbitMQ keeps on several nodes.
func members() object {
	self := []string{nodeName()}
	return object{{"leader", nodeName()}, {"members", self}, {"online", self}}
}

func deliveryLimit(s queue.Settings) any {
	if s.DeliveryLimit == queue.Unlimited {
		return "unlimited"
	}
	return s.DeliveryLimit
}

// priorities is what only quorum queues count.
func priorities(i queue.Info) object {
	of := object{}
	for p, n := range i.Priorities {
		if n > 0 {
			of.add(strconv.Itoa(p), n)
		}
	}
	return object{
		{"messages_active_priorities", len(of)}, {"messages_by_priority", of},
		{"messages_dlx", i.DeadLetters}, {"messages_ready_returned", i.Returned},
	}
}

// namedQueue is the queue that a path names.
func (r *request) namedQueue() (hosted, error) {
	if q := r.host.Queue(r.variables["name"]); q != nil {
		return hosted{q, r.host}, nil
	}
	return hosted{}, notFound()
}

func getQueue(h *Handler, r *request) (any, error) {
	q, err := r.namedQueue()
	if err != nil {
		return nil, err
	}
	o := shownQueue(q, h.samples.now())
	for _, name := range []string{"exclusive_consumer_tag", "single_active_consumer_tag", "policy", "operator_policy"} {
		if _, has := o.get(name); !has {
			o.add(name, nil)
		}
	}
	if name, peer, owned := session.NameOf(q.Owner()); owned {
		o.add("owner_pid_details", shownPeer(name, peer))
	}
	consumers := []object{}
	for _, c := range consumersOf(q) {
		consumers = append(consumers, shownConsumer(c))
	}
	o.add("consumer_details", consumers)
	// By which exchanges messages come, and to which channels they go, is not counted.
	o.add("incoming", []object{})
	o.add("deliveries", []object{})
	return o.columns(r), nil
}

func putQueue(_ *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	d := vhost.QueueDeclare{Name: r.variables["name"]}
	if err := checkName("queue", d.Name); err != nil {
		return nil, err
	}
	if d.Durable, err = body.flag("durable"); err != nil {
		return nil, err
	}
	if d.AutoDelete, err = body.flag("auto_delete"); err != nil {
		return nil, err
	}
	arguments, err := body.object("arguments")
	if err != nil {
		return nil, err
	}
	if d.Arguments, err = tableOf(arguments); err != nil {
		return nil, err
	}
	existed := r.host.Queue(d.Name) != nil
	if err := r.mayQueue(access.Configure, d.Name); err != nil {
		return nil, err
	}
	if !existed {
		if err := r.mayForward(r.mayQueue, d.Name, d.Arguments, "x-dead-letter-exchange"); err != nil {
			return nil, err
		}
	}
	if _, err := r.host.DeclareQueue(r.http.Context(), nil, d); err != nil {
		return nil, err
	}
	return madeUnless(existed), nil
}

func deleteQueue(_ *Handler, r *request) (any, error) {
	q, err := r.namedQueue()
	if err != nil {
		return nil, err
	}
	if err := r.mayQueue(access.Configure, q.Name()); err != nil {
		return nil, err
	}
	_, err = r.host.DeleteQueue(r.http.Context(), q.Owner(), vhost.QueueDelete{
		Name: q.Name(), IfUnused: r.is("if-unused"), IfEmpty: r.is("if-empty"),
	})
	return nil, err
}

func purgeQueue(_ *Handler, r *request) (any, error) {
	q, err := r.namedQueue()
	if err != nil {
		return nil, err
	}
	if err := r.mayQueue(access.Read, q.Name()); err != nil {
		return nil, err
	}
	_, err = r.host.PurgeQueue(r.http.Context(), nil, q.Name())
	return nil, err
}

// actOnQueue knows no action, as RabbitMQ 4 does not: those of 3.x were about mirrors.
func actOnQueue(_ *Handler, r *request) (any, error) {
	if _, err := r.namedQueue(); err != nil {
		return nil, err
	}
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("action"); err != nil {
		return nil, err
	}
	return nil, badRequest([]any{"unknown", body["action"]})
}

// queueCounts is what a queue has had and done at one moment.
type queueCounts struct {
	ready, unacked int
	served         queue.Served
	published      uint64
	idleSince      time.Time // of a sample: since when it has been like this, zero if it has not
}

func countsOf(q *vhost.Queue, i queue.Info) queueCounts {
	return queueCounts{ready: i.Ready, unacked: i.Unacked, served: i.Served, published: q.Published()}
}

func (c queueCounts) same(o queueCounts) bool {
	c.idleSince = o.idleSince
	return c == o
}

// stats are the message_stats, with rates from a to b; empty for a queue that has done
// nothing.
func (c queueCounts) stats(a, b queueCounts, p *period) object {
	o := object{}
	if c.published == 0 && c.served == (queue.Served{}) {
		return o
	}
	now, x, y := c.served, a.served, b.served
	counted(&o, "ack", now.Ack, x.Ack, y.Ack, p)
	counted(&o, "deliver", now.Deliver, x.Deliver, y.Deliver, p)
	counted(&o, "deliver_get", given(now), given(x), given(y), p)
	counted(&o, "deliver_no_ack", now.DeliverNoAck, x.DeliverNoAck, y.DeliverNoAck, p)
	counted(&o, "get", now.Get, x.Get, y.Get, p)
	counted(&o, "get_empty", now.GetEmpty, x.GetEmpty, y.GetEmpty, p)
	counted(&o, "get_no_ack", now.GetNoAck, x.GetNoAck, y.GetNoAck, p)
	counted(&o, "publish", c.published, a.published, b.published, p)
	counted(&o, "redeliver", now.Redeliver, x.Redeliver, y.Redeliver, p)
	return o
}

func given(s queue.Served) uint64 { return s.Deliver + s.DeliverNoAck + s.Get + s.GetNoAck }
