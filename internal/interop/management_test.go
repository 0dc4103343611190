package interop

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"github.com/dormousemq/dormouse/broker"
)

// serveManagement runs a broker with the management API, and returns the address of that.
func serveManagement(t *testing.T) string {
	t.Helper()
	b, err := broker.New(broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.ServeManagement(l) }()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, broker.ErrClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestRabbitHole(t *testing.T) {
	c, err := rabbithole.NewClient("http://"+serveManagement(t), "guest", "guest")
	if err != nil {
		t.Fatal(err)
	}
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	change := func(what string) func(any, error) {
		return func(_ any, err error) { t.Helper(); ok(what, err) }
	}
	_, err = c.PutVhost("v", rabbithole.VhostSettings{Description: "of a test", Tags: rabbithole.VhostTags{"a"}})
	ok("virtual host", err)
	_, err = c.PutUser("alice", rabbithole.UserSettings{Password: "secret", Tags: rabbithole.UserTags{"monitoring"}})
	ok("user", err)
	_, err = c.UpdatePermissionsIn("v", "alice", rabbithole.Permissions{Configure: ".*", Write: ".*", Read: ".*"})
	ok("permission", err)
	_, err = c.UpdateTopicPermissionsIn("v", "alice", rabbithole.TopicPermissions{Exchange: "amq.topic", Write: "a", Read: "b"})
	ok("topic permission", err)
	_, err = c.PutVhostLimits("v", rabbithole.VhostLimitsValues{"max-queues": 10})
	ok("limits", err)
	_, err = c.PutUserLimits("alice", rabbithole.UserLimitsValues{"max-channels": 10})
	ok("limits of a user", err)
	_, err = c.DeclareExchange("v", "x", rabbithole.ExchangeSettings{Type: "topic", Durable: true})
	ok("exchange", err)
	_, err = c.DeclareQueue("v", "q", rabbithole.QueueSettings{Durable: true, Arguments: map[string]any{"x-max-length": 5}})
	ok("queue", err)
	_, err = c.DeclareBinding("v", rabbithole.BindingInfo{Source: "x", Destination: "q", DestinationType: "queue", RoutingKey: "a.#"})
	ok("binding", err)
	_, err = c.PutPolicy("v", "p", rabbithole.Policy{Pattern: "^q", ApplyTo: "queues", Definition: rabbithole.PolicyDefinition{"message-ttl": 1000}})
	ok("policy", err)
	_, err = c.PutOperatorPolicy("v", "o", rabbithole.OperatorPolicy{Pattern: "^q", ApplyTo: "queues", Definition: rabbithole.PolicyDefinition{"max-length": 3}})
	ok("operator policy", err)
	_, err = c.PutGlobalParameter("g", map[string]any{"k": 1})
	ok("global parameter", err)

	q, err := c.GetQueue("v", "q")
	ok("queue", err)
	if q == nil || q.Policy != "p" || !q.Durable || q.Type != "classic" {
		t.Errorf("the queue is %+v", q)
	}
	bindings, err := c.ListQueueBindings("v", "q")
	ok("bindings", err)
	if len(bindings) != 2 {
		t.Errorf("the bindings are %+v", bindings)
	}
	limits, err := c.GetVhostLimits("v")
	ok("limits", err)
	if len(limits) != 1 || limits[0].Value["max-queues"] != 10 {
		t.Errorf("the limits are %+v", limits)
	}
	written, err := c.ListVhostDefinitions("v")
	ok("definitions", err)
	if written == nil || written.Queues == nil || len(*written.Queues) != 1 {
		t.Errorf("the definitions are %+v", written)
	}
	_, err = c.ListDefinitions()
	ok("all definitions", err)
	change("overview")(c.Overview())
	change("nodes")(c.ListNodes())
	change("virtual hosts")(c.ListVhosts())
	change("users")(c.ListUsers())
	change("permissions")(c.ListPermissions())
	change("topic permissions")(c.ListTopicPermissions())
	change("exchanges")(c.ListExchangesIn("v"))
	change("queues")(c.ListQueuesIn("v"))
	change("connections")(c.ListConnections())
	change("channels")(c.ListChannels())
	change("consumers")(c.ListConsumers())
	change("policies")(c.ListPoliciesIn("v"))
	change("operator policies")(c.ListOperatorPoliciesIn("v"))
	change("global parameters")(c.ListGlobalParameters())
	change("parameters")(c.ListRuntimeParameters())
	change("who")(c.Whoami())
	change("feature flags")(c.ListFeatureFlags())
	change("cluster name")(c.GetClusterName())
	change("alarms")(c.HealthCheckAlarms())
	change("purge")(c.PurgeQueue("v", "q"))
	change("binding deleted")(c.DeleteBinding("v", rabbithole.BindingInfo{Source: "x", Destination: "q", DestinationType: "queue", RoutingKey: "a.#", PropertiesKey: "a.%23"}))
	change("queue deleted")(c.DeleteQueue("v", "q"))
	change("exchange deleted")(c.DeleteExchange("v", "x"))
	change("user deleted")(c.DeleteUser("alice"))
	change("virtual host deleted")(c.DeleteVhost("v"))
	if _, err := c.GetVhost("v"); err == nil {
		t.Error("the virtual host is still there")
	}
}

// The tool is RabbitMQ's Python program, as a node of RabbitMQ up to 4.0 serves it at /cli/rabbitmqadmin and Debian's
// rabbitmq-server has it.
func TestRabbitMQAdmin(t *testing.T) {
	tool := os.Getenv("RABBITMQADMIN")
	if tool == "" {
		var err error
		if tool, err = exec.LookPath("rabbitmqadmin"); err != nil {
			t.Skip("needs RabbitMQ's rabbitmqadmin in Python: name it by RABBITMQADMIN")
		}
	}
	_, port, err := net.SplitHostPort(serveManagement(t))
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{tool, "--host=127.0.0.1", "--port=" + port}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("rabbitmqadmin %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	definitions := t.TempDir() + "/definitions.json"
	for _, step := range []struct{ command, want string }{
		{"show overview", "4.3"},
		{"declare queue name=q durable=true", "queue declared"},
		{"declare exchange name=x type=topic", "exchange declared"},
		{"declare binding source=x destination=q routing_key=a.#", "binding declared"},
		{"declare policy name=p pattern=^q definition={\"message-ttl\":100000} apply-to=queues", "policy declared"},
		{"publish exchange=x routing_key=a.b payload=hello", "Message published"},
		{"publish exchange=x routing_key=z payload=lost", "NOT routed"},
		{"list queues name messages policy", "| q    | 1 "},
		{"list bindings", "a.#"},
		{"get queue=q ackmode=ack_requeue_false", "hello"},
		{"list connections", "No items"},
		{"list nodes name", "dormouse@"},
		{"export " + definitions, "Exported definitions"},
		{"purge queue name=q", "queue purged"},
		{"delete queue name=q", "queue deleted"},
		{"import " + definitions, "Uploaded definitions"},
		{"list queues name", "| q "},
	} {
		if got := run(strings.Fields(step.command)...); !strings.Contains(got, step.want) {
			t.Errorf("rabbitmqadmin %s says %q, want %q", step.command, got, step.want)
		}
	}
}
