package definitions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// header says what a file of definitions is.
type header struct {
	RabbitVersion   string `json:"rabbit_version"`
	RabbitMQVersion string `json:"rabbitmq_version"`
	ProductName     string `json:"product_name"`
	ProductVersion  string `json:"product_version"`
	Format          string `json:"rabbitmq_definition_format"`
	Explanation     string `json:"explanation"`
}

// whole is the JSON of the definitions of a broker, and one that of one virtual host.
type whole struct {
	header
	Cluster          string            `json:"original_cluster_name"`
	Users            []exportedUser    `json:"users"`
	VHosts           []exportedHost    `json:"vhosts"`
	Permissions      []permission      `json:"permissions"`
	TopicPermissions []topicPermission `json:"topic_permissions"`
	GlobalParameters []GlobalParameter `json:"global_parameters"`
	Parameters       []parameter       `json:"parameters"`
	Policies         []policyOf        `json:"policies"`
	Exchanges        []exchange        `json:"exchanges"`
	Queues           []queue           `json:"queues"`
	Bindings         []binding         `json:"bindings"`
}

type one struct {
	header
	VHost       string         `json:"original_vhost_name"`
	Description string         `json:"description"`
	Metadata    metadata       `json:"metadata"`
	Limits      map[string]int `json:"limits"`
	Parameters  []parameter    `json:"parameters"`
	Policies    []policyOf     `json:"policies"`
	Exchanges   []exchange     `json:"exchanges"`
	Queues      []queue        `json:"queues"`
	Bindings    []binding      `json:"bindings"`
}

type exportedUser struct {
	Name             string         `json:"name"`
	PasswordHash     string         `json:"password_hash"`
	HashingAlgorithm string         `json:"hashing_algorithm"`
	Tags             []string       `json:"tags"`
	Limits           map[string]int `json:"limits"`
}

type exportedHost struct {
	Name     string         `json:"name"`
	Metadata metadata       `json:"metadata"`
	Limits   map[string]int `json:"limits"`
}

type metadata struct {
	Description      string   `json:"description"`
	Tags             []string `json:"tags"`
	DefaultQueueType string   `json:"default_queue_type"`
}

// About is what definitions say of the broker that they come from.
type About struct {
	Version string // of RabbitMQ, whose definitions they are
	Cluster string // its name
}

// Export returns the definitions of all virtual hosts as JSON that RabbitMQ and [Import] read: all but exclusive queues and
// what every virtual host has.
func Export(b Broker, about About) ([]byte, error) {
	w := whole{
		header: about.header("cluster", fmt.Sprintf("Definitions of cluster '%s'", about.Cluster)), Cluster: about.Cluster,
		Users: []exportedUser{}, VHosts: []exportedHost{}, Permissions: []permission{}, TopicPermissions: []topicPermission{},
		GlobalParameters: []GlobalParameter{}, Parameters: []parameter{}, Policies: []policyOf{}, Exchanges: []exchange{}, Queues: []queue{}, Bindings: []binding{},
	}
	for _, u := range b.Directory.Users() {
		w.Users = append(w.Users, exportedUser{u.Name, u.PasswordHash, cmp.Or(u.HashingAlgorithm, access.SHA256), append([]string{}, u.Tags...), limits(u.Limits)})
	}
	for _, p := range b.Directory.Permissions() {
		w.Permissions = append(w.Permissions, permission(p))
	}
	for _, p := range b.Directory.TopicPermissions() {
		w.TopicPermissions = append(w.TopicPermissions, topicPermission(p))
	}
	if b.Globals != nil {
		all, err := b.Globals.All()
		if err != nil {
			return nil, err
		}
		w.GlobalParameters = append(w.GlobalParameters, all...)
	}
	for _, h := range b.Hosts.All() {
		d := h.Description()
		w.VHosts = append(w.VHosts, exportedHost{d.Name, metadataOf(d), limits(d.Limits)})
		e := exporter{h, &d.Name}
		w.Parameters = append(w.Parameters, e.parameters()...)
		w.Policies = append(w.Policies, e.policies()...)
		w.Exchanges = append(w.Exchanges, e.exchanges()...)
		w.Queues = append(w.Queues, e.queues()...)
		w.Bindings = append(w.Bindings, e.bindings()...)
	}
	return json.Marshal(w)
}

// ExportOf returns the definitions of one virtual host as JSON that RabbitMQ and [ImportInto] read.
func ExportOf(h *vhost.Host, about About) ([]byte, error) {
	d, e := h.Description(), exporter{h, nil}
	return json.Marshal(one{
		header: about.header(singleHost, fmt.Sprintf("Definitions of virtual host '%s'", d.Name)),
		VHost:  d.Name, Description: d.Description, Metadata: metadataOf(d), Limits: limits(d.Limits),
		Parameters: e.parameters(), Policies: e.policies(), Exchanges: e.exchanges(), Queues: e.queues(), Bindings: e.bindings(),
	})
}

func (a About) header(format, explanation string) header {
	return header{a.Version, a.Version, "Dormouse", a.Version, format, explanation}
}

func metadataOf(d vhost.Description) metadata {
	return metadata{d.Description, append([]string{}, d.Tags...), cmp.Or(d.DefaultQueueType, "classic")}
}

func limits(l map[string]int) map[string]int {
	if l == nil {
		return map[string]int{}
	}
	return l
}

// exporter is a virtual host whose definitions are written; vhost is its name if they are to say it.
type exporter struct {
	*vhost.Host
	vhost *string
}

// parameters are what RabbitMQ keeps as parameters: operator policies and limits.
func (e exporter) parameters() []parameter {
	all := []parameter{}
	for _, p := range e.Policies(policy.Operator) {
		all = append(all, parameter{e.vhost, string(policy.Operator), p.Name, operatorPolicy{p.Pattern, cmp.Or(p.ApplyTo, "all"), p.Priority, plainObject(p.Definition)}.text()})
	}
	if l := e.Description().Limits; len(l) > 0 {
		all = append(all, parameter{e.vhost, limitsComponent, "limits", jsonOf(l)})
	}
	return all
}

// operatorPolicy is the value of the parameter that an operator policy is.
type operatorPolicy struct {
	Pattern    string `json:"pattern"`
	ApplyTo    string `json:"apply-to"`
	Priority   int    `json:"priority"`
	Definition pairs  `json:"definition"`
}

func (p operatorPolicy) text() json.RawMessage { return jsonOf(p) }

// jsonOf is the JSON of something that always has one.
func jsonOf(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

func (e exporter) policies() []policyOf {
	all := []policyOf{}
	for _, p := range e.Policies(policy.Regular) {
		all = append(all, policyOf{e.vhost, p.Name, p.Pattern, cmp.Or(p.ApplyTo, "all"), p.Priority, plainObject(p.Definition)})
	}
	return all
}

func (e exporter) exchanges() []exchange {
	all := []exchange{}
	for _, x := range e.Exchanges() {
		if x.Name != "" && !strings.HasPrefix(x.Name, "amq.") {
			all = append(all, exchange{e.vhost, x.Name, x.Type, x.Durable, x.AutoDelete, x.Internal, plainTable(x.Arguments)})
		}
	}
	return all
}

func (e exporter) queues() []queue {
	all := []queue{}
	for _, q := range e.Queues() {
		d := q.Declaration()
		if d.Exclusive {
			continue
		}
		kind, arguments := string(q.Settings().Type), plainTable(d.Arguments)
		arguments["x-queue-type"] = kind
		all = append(all, queue{e.vhost, d.Name, kind, d.Durable, d.AutoDelete, arguments})
	}
	return all
}

// bindings are those that were made: every queue is bound to the exchange without a name, and an exclusive queue is not exported.
func (e exporter) bindings() []binding {
	all := []binding{}
	for _, b := range e.Bindings() {
		kind := "exchange"
		if !b.ToExchange {
			kind = "queue"
			if q := e.Queue(b.Destination); q == nil || q.Declaration().Exclusive {
				continue
			}
		}
		if b.Source != "" {
			all = append(all, binding{e.vhost, b.Source, b.Destination, kind, b.Key, plainTable(b.Arguments)})
		}
	}
	return all
}

// plainTable is an AMQP table as encoding/json writes it.
func plainTable(t wire.Table) map[string]any {
	o := make(map[string]any, len(t))
	for _, f := range t {
		o[f.Name] = plain(f.Value)
	}
	return o
}

func plainObject(d map[string]any) map[string]any {
	o := make(map[string]any, len(d))
	for name, v := range d {
		o[name] = plain(v)
	}
	return o
}

func plain(v any) any {
	switch v := v.(type) {
	case wire.Table:
		return plainTable(v)
	case map[string]any:
		return plainObject(v)
	case []any:
		list := slices.Clone(v)
		for i := range list {
			list[i] = plain(list[i])
		}
		return list
	case []byte:
		return string(v)
	case wire.Timestamp:
		return uint64(v)
	case wire.Decimal:
		return float64(v.Value) / math.Pow10(int(v.Scale))
	}
	return v
}
