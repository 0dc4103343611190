package access

import "slices"

// Impersonator is the tag of users who may publish with another's user-id.
const Impersonator = "impersonator"

// Identity is a user who has logged in. Its methods are safe for concurrent use.
type Identity struct {
	directory *Directory
	name      string
	tags      []string
}

func (d *Directory) identity(a *account) *Identity {
	return &Identity{directory: d, name: a.Name, tags: slices.Clone(a.Tags)}
}

// Name is the user's name.
func (i *Identity) Name() string { return i.name }

// Tags are the tags that the user had at the login. The slice must not be changed.
func (i *Identity) Tags() []string { return i.tags }

// Has tells whether the user had a tag at the login.
func (i *Identity) Has(tag string) bool { return slices.Contains(i.tags, tag) }

// Generation is that of the directory: what the other methods have answered holds as long as it does.
func (i *Identity) Generation() uint64 { return i.directory.Generation() }

// MayEnter tells whether the user may use a virtual host.
func (i *Identity) MayEnter(vhost string) bool {
	i.directory.mu.RLock()
	defer i.directory.mu.RUnlock()
	return i.directory.permissions[at{i.name, vhost}] != nil
}

// defaultExchange is what the exchange without a name is called in permissions.
const defaultExchange = "amq.default"

// MayExchange tells whether the user may access an exchange, which need not exist.
func (i *Identity) MayExchange(kind Kind, vhost, exchange string) bool {
	if exchange == "" {
		exchange = defaultExchange
	}
	return i.may(kind, vhost, exchange)
}

// MayQueue tells whether the user may access a queue, which need not exist.
func (i *Identity) MayQueue(kind Kind, vhost, queue string) bool { return i.may(kind, vhost, queue) }

func (i *Identity) may(kind Kind, vhost, resource string) bool {
	i.directory.mu.RLock()
	p := i.directory.permissions[at{i.name, vhost}]
	i.directory.mu.RUnlock()
	return p != nil && p.by[kind].Match(resource)
}

// Topics is the keys that the user may use with an exchange, for [Write] or [Read]; nil is all.
func (i *Identity) Topics(kind Kind, vhost, exchange string) Keys {
	i.directory.mu.RLock()
	p := i.directory.topics[topicAt{at{i.name, vhost}, exchange}]
	i.directory.mu.RUnlock()
	if p == nil {
		return nil
	}
	return p.by[kind]
}

// Keys is a set of routing keys.
type Keys interface {
	// Match tells whether a key belongs to it.
	Match(key string) bool
}
