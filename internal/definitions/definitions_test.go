package definitions_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/definitions"
	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/vhost"
)

func newBroker(t *testing.T) definitions.Broker {
	t.Helper()
	s, err := store.OpenMemory(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := definitions.Broker{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if b.Hosts, err = vhost.Open(vhost.Options{Store: s, Clock: clock.Real(), Logger: b.Logger}); err != nil {
		t.Fatal(err)
	}
	b.Directory, err = access.Open(access.Options{
		Store: s, Logger: b.Logger, VHost: func(name string) bool { return b.Hosts.Host(name) != nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		b.Hosts.Close()
	})
	if err := b.Directory.Seed(t.Context(), nil, vhost.Default); err != nil {
		t.Fatal(err)
	}
	return b
}

// checkHost checks what the exported virtual host "team" has.
func checkHost(t *testing.T, h *vhost.Host) {
	t.Helper()
	var queues, bindings []string
	for _, q := range h.Queues() {
		queues = append(queues, q.Name()+" "+string(q.Declaration().Arguments.AppendTo(nil)))
	}
	if len(queues) != 3 || !strings.HasPrefix(queues[0], "fancy ") || !strings.HasPrefix(queues[1], "later ") || !strings.HasPrefix(queues[2], "work ") {
		t.Errorf("the queues are %q", queues)
	}
	if got, _ := h.Queue("later").Declaration().Arguments.Get("x-message-ttl"); got != int64(1000) {
		t.Errorf("later has the TTL %v (%[1]T)", got)
	}
	if got, _ := h.Queue("work").Declaration().Arguments.Get("x-queue-type"); got != "quorum" {
		t.Errorf("work is a %v queue", got)
	}
	if x := h.Exchange("events"); x == nil || x.Type != "topic" || !x.Durable {
		t.Errorf("the exchange events is %+v", x)
	}
	if x := h.Exchange("ad"); x == nil || x.Type != "headers" || !x.AutoDelete {
		t.Errorf("the exchange ad is %+v", x)
	}
	for _, b := range h.Bindings() {
		if b.Source != "" {
			bindings = append(bindings, b.Source+" "+b.Key+" "+b.Destination)
		}
	}
	if !slices.Contains(bindings, "events orders.# work") || !slices.Contains(bindings, "ad  fancy") {
		t.Errorf("the bindings are %q", bindings)
	}
	for kind, want := range map[policy.Kind]policy.Policy{
		policy.Regular:  {Name: "ttl", Pattern: "^later", ApplyTo: "queues", Priority: 3, Definition: policy.Definition{"message-ttl": int64(60000), "dead-letter-exchange": "events"}},
		policy.Operator: {Name: "limit", Pattern: ".*", ApplyTo: "queues", Definition: policy.Definition{"max-length": int64(1000)}},
	} {
		want.Kind = kind
		if got := h.Policies(kind); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("of kind %s there are %+v, want %+v", kind, got, want)
		}
	}
}

// The files are what RabbitMQ 3.10, 4.0 and 4.3 have exported, by rabbitmqctl and over HTTP.
func TestImport(t *testing.T) {
	for _, file := range files(t, "rabbitmqctl-*.json", "http-*.json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b := newBroker(t)
			for range 2 { // the second time changes nothing
				if err := definitions.Import(t.Context(), b, read(t, file)); err != nil {
					t.Fatal(err)
				}
				i, err := b.Directory.Authenticate("alice", "wonderland")
				if err != nil {
					t.Fatal(err)
				}
				if !i.Has("management") || !i.Has("monitoring") || !i.MayQueue(access.Configure, "team", "mine") || i.MayQueue(access.Read, "team", "q") {
					t.Errorf("alice is %+v", i)
				}
				if keys := i.Topics(access.Write, "team", "amq.topic"); keys == nil || !keys.Match("alice.x") || keys.Match("bob.x") {
					t.Error("alice's topic permission is not there")
				}
				if u, ok := b.Directory.User("nopw"); !ok || u.PasswordHash != "" {
					t.Errorf("nopw is %+v", u)
				}
				h := b.Hosts.Host("team")
				if h == nil {
					t.Fatal("there is no virtual host team")
				}
				// RabbitMQ 3.10 does not export it over HTTP.
				said := strings.Contains(string(read(t, file)), "of a team")
				if d := h.Description(); said && (d.Description != "of a team" || !slices.Equal(d.Tags, []string{"a", "b"})) {
					t.Errorf("the virtual host is %+v", d)
				}
				checkHost(t, h)
			}
		})
	}
}

func TestImportInto(t *testing.T) {
	for _, file := range files(t, "vhost-*.json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b := newBroker(t)
			for range 2 {
				if err := definitions.ImportInto(t.Context(), b, vhost.Default, read(t, file)); err != nil {
					t.Fatal(err)
				}
				checkHost(t, b.Hosts.Host(vhost.Default))
			}
		})
	}
	if err := definitions.Import(t.Context(), newBroker(t), read(t, "testdata/vhost-4.3.json")); err == nil || !strings.Contains(err.Error(), "one virtual host") {
		t.Errorf("the definitions of one virtual host, without it: %v", err)
	}
}

func TestImportSaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "are empty",
		"{\n\"users\": [,]}":                "line 2: invalid character ','",
		"{\n\n\"users\": 7}":                "line 3: users is number",
		"{\"queues\":\n[{\"name\": true}]}": "line 2: ",
		`{"users": [{"name": "a"}, {"name": ""}]}`:                                                   "users[1]: a user needs a name",
		`{"users": [{"name": "a", "password_hash": "?"}]}`:                                           `users[0]: user "a": the password hash is not base64`,
		`{"permissions": [{"user": "a", "vhost": "/"}]}`:                                             `permissions[0]: no such user: "a"`,
		`{"permissions": [{"user": "guest", "vhost": "v"}]}`:                                         `permissions[0]: no such virtual host: "v"`,
		`{"queues": [{"name": "q"}]}`:                                                                `queues[0]: queue "q": it has no "vhost"`,
		`{"queues": [{"name": "q", "vhost": "v"}]}`:                                                  `queues[0]: queue "q": there is no virtual host "v"`,
		`{"queues": [{"name": "q", "vhost": "/", "arguments": {"x-message-ttl": "never"}}]}`:         `queues[0]: queue "q": 406 PRECONDITION_FAILED - invalid arg 'x-message-ttl'`,
		`{"exchanges": [{"name": "x", "vhost": "/", "type": "magic"}]}`:                              `exchanges[0]: exchange "x": 406 PRECONDITION_FAILED - unknown exchange type 'magic'`,
		`{"policies": [{"name": "p", "vhost": "/", "pattern": ".*", "definition": {"max": 1}}]}`:     `policies[0]: policy "p": `,
		`{"bindings": [{"vhost": "/", "source": "a", "destination": "b", "destination_type": "c"}]}`: `bindings[0]: binding of "a" to "b": its "destination_type"`,
	} {
		if err := definitions.Import(t.Context(), newBroker(t), []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n gives %v\n want %s", text, err, want)
		}
	}
}

func TestImportLeavesWhatIsThere(t *testing.T) {
	b := newBroker(t)
	h := b.Hosts.Host(vhost.Default)
	if _, err := h.DeclareQueue(t.Context(), nil, vhost.QueueDeclare{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	if err := definitions.Import(t.Context(), b, []byte(`{"queues": [
		{"name": "q", "vhost": "/", "durable": true}, {"name": "amq.gen-x", "vhost": "/", "durable": true}],
		"bindings": [{"vhost": "/", "source": "none", "destination": "q", "destination_type": "queue", "routing_key": ""}]}`)); err != nil {
		t.Fatal(err)
	}
	if h.Queue("q").Declaration().Durable || h.Queue("amq.gen-x") == nil {
		t.Error("a queue that was there is another, or the other is not there")
	}
}

func files(t *testing.T, patterns ...string) (all []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join("testdata", p))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no files, %v", p, err)
		}
		all = append(all, found...)
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
