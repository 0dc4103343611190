// Package access is the users of a broker and what they may do: their passwords, tags, and permissions by virtual
// host, as RabbitMQ's internal database has them. All of it is durable in the store when a call returns.
//
// Permissions are asked for by an [Identity], which a login gives. They are looked up when they are asked for, so a
// change holds for connections that are open. Whoever must ask often keeps the answer until [Directory.Generation]
// changes.
//
// Source: https://www.rabbitmq.com/docs/access-control.
package access

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// User is a user as definitions have it.
type User struct {
	Name             string
	Tags             []string       // what the management API and [Identity] know them for, such as "administrator"
	PasswordHash     string         // see [HashPassword]; "" is a user who cannot log in by password
	HashingAlgorithm string         // one of the names of RabbitMQ; "" is [SHA256]
	Limits           map[string]int // "max-connections", "max-channels"; below 0 is no limit
}

// Permission is what a user may do in a virtual host. Configure, Write and Read are regular expressions over the names
// of exchanges and queues; "" is none of them.
type Permission struct {
	User, VHost            string
	Configure, Write, Read string
}

// TopicPermission is with which routing keys a user may publish to a topic exchange (Write) and bind to it (Read):
// regular expressions, in which {username} and {vhost} stand for what they say. Where a user has none for an exchange,
// all keys are allowed. Source: https://www.rabbitmq.com/docs/access-control#topic-authorisation.
type TopicPermission struct {
	User, VHost, Exchange string
	Write, Read           string
}

// Kind is what is asked for.
type Kind int

// The kinds of access.
const (
	Configure Kind = iota
	Write
	Read
)

// String is RabbitMQ's word for the kind.
func (k Kind) String() string { return [...]string{"configure", "write", "read"}[k] }

// Errors, to be tested with errors.Is.
var (
	// ErrRefused: there is no such user, or it is not the user's password.
	ErrRefused = errors.New("no such user, or not the user's password")
	// ErrBlank: RabbitMQ's internal users cannot log in without a password.
	ErrBlank = errors.New("a blank password is not accepted")
	// ErrNoUser: a permission is for somebody who does not exist.
	ErrNoUser = errors.New("no such user")
	// ErrNoVHost: a permission is for a virtual host that does not exist.
	ErrNoVHost = errors.New("no such virtual host")
)

// PatternError says that a regular expression of a permission cannot be understood.
type PatternError struct {
	Pattern string
	Err     error
}

// Error says which expression is wrong and how.
func (e *PatternError) Error() string {
	return fmt.Sprintf("the regular expression %q is invalid: %v", e.Pattern, e.Err)
}

// Unwrap returns what the expression's compiler said.
func (e *PatternError) Unwrap() error { return e.Err }

func (u User) clone() User {
	u.Tags = slices.Clone(u.Tags)
	u.Limits = maps.Clone(u.Limits)
	return u
}
