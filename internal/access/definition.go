package access

import (
	"fmt"

	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Definitions are kept in the store as AMQP field tables.
const (
	kindUser       = "user"
	kindPermission = "permission"
	kindTopic      = "topic-permission"
)

func userKey(name string) string { return store.DefinitionKey(kindUser, name) }

func permissionKey(in at) string { return store.DefinitionKey(kindPermission, in.vhost, in.user) }

func topicKey(in topicAt) string {
	return store.DefinitionKey(kindTopic, in.vhost, in.user, in.exchange)
}

func encodeUser(a *account) []byte {
	tags := make([]any, len(a.Tags))
	for i, tag := range a.Tags {
		tags[i] = tag
	}
	limits := wire.Table{}
	for name, limit := range a.Limits {
		limits = append(limits, wire.Field{Name: name, Value: int64(limit)})
	}
	return wire.Table{
		{Name: "name", Value: a.Name}, {Name: "tags", Value: tags}, {Name: "password-hash", Value: a.PasswordHash},
		{Name: "hashing-algorithm", Value: a.HashingAlgorithm}, {Name: "limits", Value: limits}, {Name: "listed", Value: a.listed},
	}.AppendTo(nil)
}

func decodeUser(t wire.Table) (*account, error) {
	u := User{Name: text(t, "name"), PasswordHash: text(t, "password-hash"), HashingAlgorithm: text(t, "hashing-algorithm"), Limits: map[string]int{}}
	v, _ := t.Get("tags")
	tags, _ := v.([]any)
	for _, tag := range tags {
		if s, ok := tag.(string); ok {
			u.Tags = append(u.Tags, s)
		}
	}
	v, _ = t.Get("limits")
	limits, _ := v.(wire.Table)
	for _, f := range limits {
		if n, ok := f.Value.(int64); ok {
			u.Limits[f.Name] = int(n)
		}
	}
	a, err := newAccount(u)
	if err != nil {
		return nil, err
	}
	v, _ = t.Get("listed")
	a.listed, _ = v.(bool)
	return a, nil
}

func encodePermission(p Permission) []byte {
	return wire.Table{
		{Name: "user", Value: p.User}, {Name: "vhost", Value: p.VHost},
		{Name: "configure", Value: p.Configure}, {Name: "write", Value: p.Write}, {Name: "read", Value: p.Read},
	}.AppendTo(nil)
}

func encodeTopicPermission(p TopicPermission) []byte {
	return wire.Table{
		{Name: "user", Value: p.User}, {Name: "vhost", Value: p.VHost}, {Name: "exchange", Value: p.Exchange},
		{Name: "write", Value: p.Write}, {Name: "read", Value: p.Read},
	}.AppendTo(nil)
}

func text(t wire.Table, name string) string {
	v, _ := t.Get(name)
	s, _ := v.(string)
	return s
}

// recover reads everything from the store.
func (d *Directory) recover() error {
	for kind, add := range map[string]func(wire.Table) error{
		kindUser: d.recoverUser, kindPermission: d.recoverPermission, kindTopic: d.recoverTopicPermission,
	} {
		definitions, err := d.options.Store.Definitions(store.DefinitionKey(kind, ""))
		if err != nil {
			return err
		}
		for key, value := range definitions {
			t, err := wire.ParseTable(value)
			if err == nil {
				err = add(t)
			}
			if err != nil {
				return fmt.Errorf("%q: %w", key, err)
			}
		}
	}
	return nil
}

func (d *Directory) recoverUser(t wire.Table) error {
	a, err := decodeUser(t)
	if err == nil {
		d.users[a.Name] = a
	}
	return err
}

func (d *Directory) recoverPermission(t wire.Table) error {
	p, err := newPermission(Permission{
		User: text(t, "user"), VHost: text(t, "vhost"),
		Configure: text(t, "configure"), Write: text(t, "write"), Read: text(t, "read"),
	})
	if err == nil {
		d.permissions[at{p.User, p.VHost}] = p
	}
	return err
}

func (d *Directory) recoverTopicPermission(t wire.Table) error {
	p, err := newTopicPermission(TopicPermission{
		User: text(t, "user"), VHost: text(t, "vhost"), Exchange: text(t, "exchange"),
		Write: text(t, "write"), Read: text(t, "read"),
	})
	if err == nil {
		d.topics[topicAt{at{p.User, p.VHost}, p.Exchange}] = p
	}
	return err
}
