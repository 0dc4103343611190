package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dormousemq/dormouse/internal/pattern"
	"github.com/dormousemq/dormouse/internal/store"
)

type permission struct {
	Permission
	by [3]*pattern.Pattern // by Kind
}

type topicPermission struct {
	TopicPermission
	by [3]*pattern.Pattern // by Kind; none for Configure
}

// compile reads an expression. An empty one matches nothing but the empty name.
func compile(expression string) (*pattern.Pattern, error) {
	if expression == "" {
		expression = "^$"
	}
	p, err := pattern.Compile(expression)
	if err != nil {
		return nil, &PatternError{Pattern: expression, Err: err}
	}
	return p, nil
}

func newPermission(p Permission) (*permission, error) {
	made := &permission{Permission: p}
	for kind, expression := range []string{p.Configure, p.Write, p.Read} {
		var err error
		if made.by[kind], err = compile(expression); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// newTopicPermission fills in the variables; what they stand for is not escaped, as in RabbitMQ.
func newTopicPermission(p TopicPermission) (*topicPermission, error) {
	made := &topicPermission{TopicPermission: p}
	variables := strings.NewReplacer("{username}", p.User, "{vhost}", p.VHost)
	for kind, expression := range map[Kind]string{Write: p.Write, Read: p.Read} {
		if _, err := compile(expression); err != nil {
			return nil, err
		}
		var err error
		if made.by[kind], err = compile(variables.Replace(expression)); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// Permissions are all permissions, sorted by virtual host and user.
func (d *Directory) Permissions() []Permission {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]Permission, 0, len(d.permissions))
	for _, p := range d.permissions {
		all = append(all, p.Permission)
	}
	slices.SortFunc(all, func(a, b Permission) int {
		return cmp.Or(cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.User, b.User))
	})
	return all
}

// PutPermission sets what a user may do in a virtual host. The errors are ErrNoUser, ErrNoVHost and *PatternError.
func (d *Directory) PutPermission(ctx context.Context, p Permission) error {
	return d.permit(ctx, at{p.User, p.VHost}, func(tx *store.Tx) error { return d.setPermission(tx, p) })
}

func (d *Directory) setPermission(tx *store.Tx, p Permission) error {
	made, err := newPermission(p)
	if err == nil {
		d.permissions[at{p.User, p.VHost}] = made
		tx.SetDefinition(permissionKey(at{p.User, p.VHost}), encodePermission(p))
	}
	return err
}

// permit sets a permission of a user in a virtual host that both exist.
func (d *Directory) permit(ctx context.Context, in at, set func(tx *store.Tx) error) error {
	if !d.options.VHost(in.vhost) {
		return fmt.Errorf("%w: %q", ErrNoVHost, in.vhost)
	}
	err := d.change(ctx, func(tx *store.Tx) error {
		if d.users[in.user] == nil {
			return fmt.Errorf("%w: %q", ErrNoUser, in.user)
		}
		return set(tx)
	})
	if err != nil || d.options.VHost(in.vhost) {
		return err
	}
	// The virtual host was deleted meanwhile, perhaps before the permission was there to be deleted with it.
	err = d.change(ctx, func(tx *store.Tx) error {
		d.dropPermissions(tx, func(other at) bool { return other.vhost == in.vhost })
		return nil
	})
	return cmp.Or(err, fmt.Errorf("%w: %q", ErrNoVHost, in.vhost))
}

// DeletePermission takes away what a user may do in a virtual host, so that the user may not enter it, and tells
// whether there was anything to take away.
func (d *Directory) DeletePermission(ctx context.Context, user, vhost string) (existed bool, err error) {
	err = d.change(ctx, func(tx *store.Tx) error {
		if _, existed = d.permissions[at{user, vhost}]; existed {
			delete(d.permissions, at{user, vhost})
			tx.DeleteDefinition(permissionKey(at{user, vhost}))
		}
		return nil
	})
	return existed, err
}

// TopicPermissions are all topic permissions, sorted by virtual host, user and exchange.
func (d *Directory) TopicPermissions() []TopicPermission {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]TopicPermission, 0, len(d.topics))
	for _, p := range d.topics {
		all = append(all, p.TopicPermission)
	}
	slices.SortFunc(all, func(a, b TopicPermission) int {
		return cmp.Or(cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.User, b.User), cmp.Compare(a.Exchange, b.Exchange))
	})
	return all
}

// PutTopicPermission sets the keys that a user may use with an exchange, which need not exist. The errors are
// ErrNoUser, ErrNoVHost and *PatternError.
func (d *Directory) PutTopicPermission(ctx context.Context, p TopicPermission) error {
	made, err := newTopicPermission(p)
	if err != nil {
		return err
	}
	where := topicAt{at{p.User, p.VHost}, p.Exchange}
	return d.permit(ctx, where.at, func(tx *store.Tx) error {
		d.topics[where] = made
		tx.SetDefinition(topicKey(where), encodeTopicPermission(p))
		return nil
	})
}

// DeleteTopicPermission lets a user use all keys again with an exchange, and tells whether that changes anything.
func (d *Directory) DeleteTopicPermission(ctx context.Context, user, vhost, exchange string) (existed bool, err error) {
	where := topicAt{at{user, vhost}, exchange}
	err = d.change(ctx, func(tx *store.Tx) error {
		if _, existed = d.topics[where]; existed {
			delete(d.topics, where)
			tx.DeleteDefinition(topicKey(where))
		}
		return nil
	})
	return existed, err
}

func (d *Directory) dropPermissions(tx *store.Tx, which func(at) bool) {
	for in := range d.permissions {
		if which(in) {
			delete(d.permissions, in)
			tx.DeleteDefinition(permissionKey(in))
		}
	}
	for in := range d.topics {
		if which(in.at) {
			delete(d.topics, in)
			tx.DeleteDefinition(topicKey(in))
		}
	}
}
