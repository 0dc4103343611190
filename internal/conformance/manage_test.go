package conformance

import (
	"net/url"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Put makes something over the management API: the path names it, and object describes it.
func (c *C) Put(object map[string]any, path ...string) {
	c.Helper()
	c.Manage().Must("PUT", Path(path...), object)
}

// Delete deletes something over the management API.
func (c *C) Delete(path ...string) {
	c.Helper()
	c.Manage().Must("DELETE", Path(path...), nil)
}

// Tenant is a user with a virtual host, both of the case alone.
type Tenant struct {
	c              *C
	User, Password string
	VHost          string
}

// Tenant makes a user without tags and a virtual host, in which the user may do nothing, not even enter.
func (c *C) Tenant() *Tenant {
	c.Helper()
	t := &Tenant{c: c, User: c.Unique("user"), Password: "secret", VHost: c.Unique("vhost")}
	c.Put(map[string]any{"password": t.Password, "tags": ""}, "users", t.User)
	c.cleanLater("DELETE", Path("users", t.User))
	c.Put(map[string]any{}, "vhosts", t.VHost)
	c.cleanLater("DELETE", Path("vhosts", t.VHost))
	uri, err := amqp.ParseURI(c.url)
	c.OK(err)
	t.permit(uri.Username, ".*", ".*", ".*")
	return t
}

// Permit sets what the user may do.
func (t *Tenant) Permit(configure, write, read string) {
	t.c.Helper()
	t.permit(t.User, configure, write, read)
}

func (t *Tenant) permit(user, configure, write, read string) {
	t.c.Helper()
	t.c.Put(map[string]any{"configure": configure, "write": write, "read": read}, "permissions", t.VHost, user)
}

// Topics sets the routing keys that the user may use with an exchange.
func (t *Tenant) Topics(exchange, write, read string) {
	t.c.Helper()
	t.c.Put(map[string]any{"exchange": exchange, "write": write, "read": read}, "topic-permissions", t.VHost, t.User)
}

// URL is the broker's URL for a user and the tenant's virtual host.
func (t *Tenant) URL(user, password string) string {
	t.c.Helper()
	u, err := url.Parse(t.c.url)
	t.c.OK(err)
	u.User, u.Path, u.RawPath = url.UserPassword(user, password), "/"+t.VHost, "/"+url.PathEscape(t.VHost)
	return u.String()
}

// Dial connects as the user.
func (t *Tenant) Dial() *amqp.Connection {
	t.c.Helper()
	return t.c.dial(t.URL(t.User, t.Password))
}

// Admin connects to the virtual host as who may do everything.
func (t *Tenant) Admin() *amqp.Channel {
	t.c.Helper()
	uri, err := amqp.ParseURI(t.c.url)
	t.c.OK(err)
	return t.c.ChannelOn(t.c.dial(t.URL(uri.Username, uri.Password)))
}

// Refused is what the broker says to the user who does something, "" if it lets it happen.
func (t *Tenant) Refused(do func(ch *amqp.Channel) error) string {
	t.c.Helper()
	return t.c.refusedOn(t.Dial(), do)
}
