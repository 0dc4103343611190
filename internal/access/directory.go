package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dormousemq/dormouse/internal/store"
)

// Options make a Directory. Store, Logger and VHost must be set.
type Options struct {
	Store  *store.Store
	Logger *slog.Logger

	// VHost tells whether there is a virtual host of that name.
	VHost func(name string) bool

	// Deleted, if not nil, is called when a user has been deleted. It must not block.
	Deleted func(name string)
}

// Directory is the users and their permissions. Its methods are safe for concurrent use.
type Directory struct {
	options    Options
	decoy      *secret // compared for users that do not exist
	generation atomic.Uint64

	mu          sync.RWMutex
	users       map[string]*account
	permissions map[at]*permission
	topics      map[topicAt]*topicPermission
}

// at is a user in a virtual host.
type at struct{ user, vhost string }

type topicAt struct {
	at
	exchange string
}

// account is a user with what a login needs.
type account struct {
	User
	secret *secret // nil: no login by password
	listed bool    // by Seed
}

// Open makes the directory of what the store has.
func Open(o Options) (*Directory, error) {
	d := &Directory{
		options: o, users: map[string]*account{}, permissions: map[at]*permission{}, topics: map[topicAt]*topicPermission{},
	}
	var err error
	if d.decoy, err = newSecret(HashPassword(""), SHA256); err != nil {
		return nil, err
	}
	if err := d.recover(); err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	return d, nil
}

// Generation changes with every change of users and permissions.
func (d *Directory) Generation() uint64 { return d.generation.Load() }

// change does something with the lock held, as a unit of work, and returns when it is durable.
func (d *Directory) change(ctx context.Context, do func(tx *store.Tx) error) error {
	tx := d.options.Store.Begin()
	d.mu.Lock()
	err := do(tx)
	d.generation.Add(1)
	d.mu.Unlock()
	if err != nil {
		tx.End()
		return err
	}
	return tx.Wait(ctx)
}

// Users are all users, sorted by name.
func (d *Directory) Users() []User {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]User, 0, len(d.users))
	for _, a := range d.users {
		all = append(all, a.clone())
	}
	slices.SortFunc(all, func(a, b User) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// User is the user of that name.
func (d *Directory) User(name string) (User, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	a := d.users[name]
	if a == nil {
		return User{}, false
	}
	return a.clone(), true
}

// PutUser makes a user, or changes one in all but the permissions. The error says what is wrong with the user.
func (d *Directory) PutUser(ctx context.Context, u User) error {
	a, err := newAccount(u)
	if err != nil {
		return err
	}
	return d.change(ctx, func(tx *store.Tx) error {
		d.setAccount(tx, a)
		return nil
	})
}

func newAccount(u User) (*account, error) {
	if u.Name == "" {
		return nil, errors.New("a user needs a name")
	}
	u = u.clone()
	s, err := newSecret(u.PasswordHash, u.HashingAlgorithm)
	if err != nil {
		return nil, fmt.Errorf("user %q: %w", u.Name, err)
	}
	if u.HashingAlgorithm == "" {
		u.HashingAlgorithm = SHA256
	}
	return &account{User: u, secret: s}, nil
}

// setAccount adds a user, or replaces the one of that name.
func (d *Directory) setAccount(tx *store.Tx, a *account) {
	d.users[a.Name] = a
	tx.SetDefinition(userKey(a.Name), encodeUser(a))
}

// DeleteUser deletes a user with all permissions, and tells whether there was one.
func (d *Directory) DeleteUser(ctx context.Context, name string) (existed bool, err error) {
	err = d.change(ctx, func(tx *store.Tx) error {
		existed = d.drop(tx, name)
		return nil
	})
	if existed && d.options.Deleted != nil {
		d.options.Deleted(name)
	}
	return existed, err
}

func (d *Directory) drop(tx *store.Tx, name string) bool {
	if d.users[name] == nil {
		return false
	}
	delete(d.users, name)
	tx.DeleteDefinition(userKey(name))
	d.dropPermissions(tx, func(in at) bool { return in.user == name })
	return true
}

// DropVHost removes the permissions in a virtual host that is being deleted, as a part of tx.
func (d *Directory) DropVHost(tx *store.Tx, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropPermissions(tx, func(in at) bool { return in.vhost == name })
	d.generation.Add(1)
}

// Authenticate is a login by password. The errors are ErrRefused and ErrBlank.
func (d *Directory) Authenticate(name, password string) (*Identity, error) {
	if password == "" {
		return nil, ErrBlank
	}
	d.mu.RLock()
	a := d.users[name]
	d.mu.RUnlock()
	known := a != nil && a.secret != nil
	s := d.decoy
	if known {
		s = a.secret
	}
	if matches := s.matches(password); !matches || !known {
		return nil, ErrRefused
	}
	return d.identity(a), nil
}

// Trust is a login of somebody who has proved by other means to be the user: a client certificate.
func (d *Directory) Trust(name string) (*Identity, error) {
	d.mu.RLock()
	a := d.users[name]
	d.mu.RUnlock()
	if a == nil {
		return nil, ErrRefused
	}
	return d.identity(a), nil
}
