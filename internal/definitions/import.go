package definitions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// importer makes what a file defines.
type importer struct {
	Broker
	into *string // the virtual host of all of it; nil: each says its own
}

func (i importer) all(ctx context.Context, f *file) error {
	for _, err := range []func() error{
		func() error { return each(ctx, "users", f.Users, i.user) },
		func() error { return each(ctx, "vhosts", f.VHosts, i.host) },
		func() error { return each(ctx, "permissions", f.Permissions, i.permission) },
		func() error { return each(ctx, "topic_permissions", f.TopicPermissions, i.topicPermission) },
		func() error { return each(ctx, "global_parameters", f.GlobalParameters, i.global) },
		func() error { return each(ctx, "parameters", f.Parameters, i.parameter) },
		func() error { return each(ctx, "policies", f.Policies, i.policy) },
		func() error { return each(ctx, "exchanges", f.Exchanges, i.exchange) },
		func() error { return each(ctx, "queues", f.Queues, i.queue) },
		func() error { return each(ctx, "bindings", f.Bindings, i.binding) },
	} {
		if err := err(); err != nil {
			return err
		}
	}
	return nil
}

// each makes the elements of a list, and says of which one an error is.
func each[T any](ctx context.Context, list string, elements []T, makes func(context.Context, T) error) error {
	for n, e := range elements {
		if err := makes(ctx, e); err != nil {
			return fmt.Errorf("%s[%d]: %w", list, n, err)
		}
	}
	return nil
}

func (i importer) user(ctx context.Context, u user) error {
	limits, err := integers(u.Limits)
	if err != nil {
		return fmt.Errorf("user %q: %w", u.Name, err)
	}
	made := access.User{Name: u.Name, Tags: u.Tags, PasswordHash: u.PasswordHash, HashingAlgorithm: u.HashingAlgorithm, Limits: limits}
	if u.Password != nil && u.PasswordHash == "" {
		made.PasswordHash, made.HashingAlgorithm = access.HashPassword(*u.Password), access.SHA256
	}
	return i.Directory.PutUser(ctx, made)
}

// integers are limits by name.
func integers(limits pairs) (map[string]int, error) {
	all := map[string]int{}
	for name, v := range limits {
		n, ok := value(v).(int64)
		if !ok {
			return nil, fmt.Errorf("the limit %s is %v, and no integer", name, v)
		}
		all[name] = int(n)
	}
	return all, nil
}

// limits sets the limits of a virtual host.
func (i importer) limits(ctx context.Context, name string, limits pairs) error {
	all, err := integers(limits)
	if err != nil {
		return fmt.Errorf("virtual host %q: %w", name, err)
	}
	_, err = i.Hosts.ChangeLimits(ctx, name, func(now map[string]int) { clear(now); maps.Copy(now, all) })
	return err
}

func (i importer) global(ctx context.Context, p GlobalParameter) error {
	if i.Globals == nil {
		i.Logger.Warn("a global parameter was left out: there is nobody to keep it", "name", p.Name)
		return nil
	}
	return i.Globals.Put(ctx, p)
}

func (i importer) host(ctx context.Context, h host) error {
	d := vhost.Description{
		Name: h.Name, Description: cmp.Or(h.Metadata.Description, h.Description), Tags: h.Metadata.Tags,
		DefaultQueueType: cmp.Or(h.Metadata.DefaultQueueType, h.DefaultQueueType),
	}
	if d.Tags == nil {
		d.Tags = h.Tags
	}
	if d.DefaultQueueType == "undefined" {
		d.DefaultQueueType = ""
	}
	if len(h.Limits) > 0 {
		var err error
		if d.Limits, err = integers(h.Limits); err != nil {
			return fmt.Errorf("virtual host %q: %w", h.Name, err)
		}
	}
	return i.Hosts.Create(ctx, d)
}

func (i importer) permission(ctx context.Context, p permission) error {
	return i.Directory.PutPermission(ctx, access.Permission(p))
}

func (i importer) topicPermission(ctx context.Context, p topicPermission) error {
	return i.Directory.PutTopicPermission(ctx, access.TopicPermission(p))
}

// NoVHostError says that something is in a virtual host that does not exist.
type NoVHostError struct{ VHost string }

// Error names the virtual host.
func (e *NoVHostError) Error() string { return fmt.Sprintf("there is no virtual host %q", e.VHost) }

// in finds the virtual host of something.
func (i importer) in(says *string) (*vhost.Host, error) {
	name := cmp.Or(i.into, says)
	if name == nil {
		return nil, errors.New(`it has no "vhost"`)
	}
	h := i.Hosts.Host(*name)
	if h == nil {
		return nil, &NoVHostError{*name}
	}
	return h, nil
}

func (i importer) parameter(ctx context.Context, p parameter) error {
	if p.Component == limitsComponent {
		return i.limitsParameter(ctx, p)
	}
	if p.Component != string(policy.Operator) {
		i.Logger.Warn("a parameter was left out: it is of what this broker does not have", "component", p.Component, "name", p.Name)
		return nil
	}
	var made policyOf
	if err := json.Unmarshal(p.Value, &made); err != nil {
		return fmt.Errorf("operator policy %q: %w", p.Name, err)
	}
	made.Name, made.VHost = p.Name, p.VHost
	return i.putPolicy(ctx, policy.Operator, made)
}

// limitsComponent is the component of the parameter that the limits of a virtual host are.
const limitsComponent = "vhost-limits"

func (i importer) limitsParameter(ctx context.Context, p parameter) error {
	h, err := i.in(p.VHost)
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	var limits pairs
	if err := json.Unmarshal(p.Value, &limits); err != nil {
		return fmt.Errorf("limits of virtual host %q: %w", h.Name(), err)
	}
	return i.limits(ctx, h.Name(), limits)
}

func (i importer) policy(ctx context.Context, p policyOf) error {
	return i.putPolicy(ctx, policy.Regular, p)
}

func (i importer) putPolicy(ctx context.Context, kind policy.Kind, p policyOf) error {
	h, err := i.in(p.VHost)
	if err != nil {
		return fmt.Errorf("policy %q: %w", p.Name, err)
	}
	definition := policy.Definition{}
	for key, v := range p.Definition {
		if number, ok := v.(json.Number); ok {
			v = value(number)
		}
		definition[key] = v
	}
	if err := h.PutPolicy(ctx, policy.Policy{
		Kind: kind, Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: definition,
	}); err != nil {
		return fmt.Errorf("policy %q: %w", p.Name, err)
	}
	return nil
}

func (i importer) exchange(ctx context.Context, x exchange) error {
	h, err := i.in(x.VHost)
	if err != nil {
		return fmt.Errorf("exchange %q: %w", x.Name, err)
	}
	d := vhost.ExchangeDeclare{
		Name: x.Name, Type: x.Type, Durable: x.Durable, AutoDelete: x.AutoDelete, Internal: x.Internal, Arguments: table(x.Arguments),
	}
	if _, exists := h.ExchangeType(x.Name); exists {
		return nil
	}
	if d.Reserved() {
		i.Logger.Warn("an exchange was left out: its name is reserved, and this broker does not have it", "exchange", x.Name)
		return nil
	}
	if err := h.DeclareExchange(ctx, d); err != nil {
		return fmt.Errorf("exchange %q: %w", x.Name, err)
	}
	return nil
}

func (i importer) queue(ctx context.Context, q queue) error {
	h, err := i.in(q.VHost)
	if err != nil {
		return fmt.Errorf("queue %q: %w", q.Name, err)
	}
	if h.HasQueue(q.Name) {
		return nil
	}
	const typeArgument = "x-queue-type"
	arguments := table(q.Arguments)
	if _, says := arguments.Get(typeArgument); !says && q.Type != "" {
		arguments = append(arguments, wire.Field{Name: typeArgument, Value: strings.TrimSuffix(strings.TrimPrefix(q.Type, "rabbit_"), "_queue")})
	}
	_, err = h.DeclareQueue(ctx, nil, vhost.QueueDeclare{
		Name: q.Name, Durable: q.Durable, AutoDelete: q.AutoDelete, Arguments: arguments,
	}.AnyName())
	if err != nil {
		return fmt.Errorf("queue %q: %w", q.Name, err)
	}
	return nil
}

// binding leaves out a binding one of whose ends does not exist, as RabbitMQ does: it exports bindings of exchanges
// that it does not export.
func (i importer) binding(ctx context.Context, b binding) error {
	h, err := i.in(b.VHost)
	if err == nil {
		made := vhost.Bind{Source: b.Source, Destination: b.Destination, Key: b.RoutingKey, Arguments: table(b.Arguments)}
		switch b.DestinationType {
		case "queue":
			err = h.BindQueue(ctx, nil, made)
		case "exchange":
			err = h.BindExchange(ctx, made)
		default:
			err = fmt.Errorf(`its "destination_type" is %q, and neither queue nor exchange`, b.DestinationType)
		}
	}
	if e, ok := errors.AsType[*wire.Exception](err); ok && e.Code == wire.NotFound {
		i.Logger.Warn("a binding was left out: one of its ends does not exist", "source", b.Source, "destination", b.Destination, "error", e.Text)
		return nil
	}
	if err != nil {
		return fmt.Errorf("binding of %q to %q: %w", b.Source, b.Destination, err)
	}
	return nil
}
