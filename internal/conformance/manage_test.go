package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// manager does one request of RabbitMQ's management API: PUT with an object, or DELETE without one.
type manager func(ctx context.Context, path []string, object map[string]any) error

// managementOffset is how far above its AMQP port a broker's HTTP API listens.
const managementOffset = 10000

func httpManager(broker string) manager {
	return func(ctx context.Context, path []string, object map[string]any) error {
		u, err := amqp.ParseURI(broker)
		if err != nil {
			return err
		}
		to := "http://" + u.Host + ":" + strconv.Itoa(u.Port+managementOffset) + "/api"
		for _, part := range path {
			to += "/" + url.PathEscape(part)
		}
		method, body := http.MethodDelete, []byte(nil)
		if object != nil {
			method = http.MethodPut
			if body, err = json.Marshal(object); err != nil {
				return err
			}
		}
		request, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.SetBasicAuth(u.Username, u.Password)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode >= 300 {
			text, _ := io.ReadAll(response.Body)
			return fmt.Errorf("%s %s: %s: %s", method, to, response.Status, text)
		}
		return nil
	}
}

// embeddedManager does the same within the process, for what cases ask for.
func embeddedManager(b *broker.Broker) manager {
	return func(ctx context.Context, path []string, object map[string]any) error {
		text := func(key string) string { s, _ := object[key].(string); return s }
		list := func(key string) []string {
			return strings.FieldsFunc(text(key), func(r rune) bool { return r == ',' })
		}
		put := object != nil
		var err error
		switch kind, name := path[0], path[1]; {
		case kind == "users" && put:
			u := access.User{Name: name, Tags: list("tags"), PasswordHash: text("password_hash")}
			if password := text("password"); password != "" {
				u.PasswordHash = access.HashPassword(password)
			}
			err = b.Directory().PutUser(ctx, u)
		case kind == "users":
			_, err = b.Directory().DeleteUser(ctx, name)
		case kind == "vhosts" && put:
			err = b.Hosts().Create(ctx, vhost.Description{
				Name: name, Description: text("description"), Tags: list("tags"), DefaultQueueType: text("default_queue_type"),
			})
		case kind == "vhosts":
			_, err = b.Hosts().Delete(ctx, name)
		case kind == "permissions" && put:
			err = b.Directory().PutPermission(ctx, access.Permission{
				VHost: name, User: path[2], Configure: text("configure"), Write: text("write"), Read: text("read"),
			})
		case kind == "permissions":
			_, err = b.Directory().DeletePermission(ctx, path[2], name)
		case kind == "topic-permissions" && put:
			err = b.Directory().PutTopicPermission(ctx, access.TopicPermission{
				VHost: name, User: path[2], Exchange: text("exchange"), Write: text("write"), Read: text("read"),
			})
		case kind == "policies" || kind == "operator-policies":
			k := policy.Regular
			if kind == "operator-policies" {
				k = policy.Operator
			}
			h := b.Hosts().Host(name)
			if !put {
				return h.DeletePolicy(ctx, k, path[2])
			}
			var p policy.Policy
			if p, err = policy.Parse(k, path[2], object); err == nil {
				err = h.PutPolicy(ctx, p)
			}
		default:
			err = errors.New("no case has needed this yet: " + strings.Join(path, "/"))
		}
		return err
	}
}

// Put makes something over the management API: the path names it, and object describes it.
func (c *C) Put(object map[string]any, path ...string) {
	c.Helper()
	c.OK(c.manage(c.Context(), path, object))
}

// Delete deletes something over the management API.
func (c *C) Delete(path ...string) {
	c.Helper()
	c.OK(c.manage(c.Context(), path, nil))
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
	c.Put(map[string]any{}, "vhosts", t.VHost)
	uri, err := amqp.ParseURI(c.url)
	c.OK(err)
	t.permit(uri.Username, ".*", ".*", ".*")
	c.Cleanup(func() {
		ctx := context.Background() // the case's is over
		_ = c.manage(ctx, []string{"users", t.User}, nil)
		_ = c.manage(ctx, []string{"vhosts", t.VHost}, nil)
	})
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
