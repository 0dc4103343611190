package access

import (
	"context"
	"errors"

	"github.com/dormousemq/dormouse/internal/store"
)

// Guest is the user of a new broker, and its password. RabbitMQ lets it log in from the same machine only. Source:
// https://www.rabbitmq.com/docs/access-control#default-state.
const Guest = "guest"

// Administrator is the tag of users who may do everything in the management API.
const Administrator = "administrator"

// Seed makes the users that whoever runs the broker lists: passwords by user name. A new one is an administrator with
// all permissions in vhost. One who was listed before and is not now is deleted; users who were made otherwise stay,
// and get the password if they are listed. Nil lists nobody, but the user [Guest] if there would be no user.
func (d *Directory) Seed(ctx context.Context, passwords map[string]string, vhost string) error {
	if _, nameless := passwords[""]; nameless {
		return errors.New("a user needs a name")
	}
	permitted := d.options.VHost(vhost)
	return d.change(ctx, func(tx *store.Tx) error {
		if passwords == nil && d.onlyListed() {
			passwords = map[string]string{Guest: Guest}
		}
		for name, a := range d.users {
			if _, still := passwords[name]; a.listed && !still {
				d.drop(tx, name)
			}
		}
		for name, password := range passwords {
			isNew := d.users[name] == nil
			if err := d.seed(tx, name, password); err != nil {
				return err
			}
			if isNew && permitted {
				if err := d.setPermission(tx, Permission{User: name, VHost: vhost, Configure: ".*", Write: ".*", Read: ".*"}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (d *Directory) onlyListed() bool {
	for _, a := range d.users {
		if !a.listed {
			return false
		}
	}
	return true
}

func (d *Directory) seed(tx *store.Tx, name, password string) error {
	old := d.users[name]
	if old != nil && (password == "" && old.secret == nil || old.secret != nil && old.secret.matches(password)) {
		return nil
	}
	u := User{Name: name, Tags: []string{Administrator}}
	if old != nil {
		u = old.clone()
	}
	u.PasswordHash, u.HashingAlgorithm = "", SHA256
	if password != "" {
		u.PasswordHash = HashPassword(password)
	}
	a, err := newAccount(u)
	if err != nil {
		return err
	}
	a.listed = old == nil || old.listed
	d.setAccount(tx, a)
	return nil
}
