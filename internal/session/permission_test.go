package session

import (
	"testing"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/wire"
)

func (e *env) permit(user, configure, write, read string) {
	e.t.Helper()
	if err := e.directory.PutPermission(e.t.Context(), access.Permission{
		User: user, VHost: "/", Configure: configure, Write: write, Read: read,
	}); err != nil {
		e.t.Fatal(err)
	}
}

// What a channel remembers of permissions must not outlive them.
func TestChangedPermissionsHoldForTheNextMessage(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare(p.queue, nil)
		m := to(p.queue)
		for range 3 {
			p.publish(m, wire.Properties{}, "x")
		}
		p.send(1, &wire.BasicGet{Queue: p.queue, NoAck: true})
		p.skip(3)
		e.permit("guest", ".*", "other", ".*")
		p.publish(m, wire.Properties{}, "x")
		p.expect("1 channel.close {ReplyCode:403 ReplyText:ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user 'guest' ClassID:60 MethodID:40}")
	})
}

func TestCloseUserAndVHost(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(e *env)
		want string
	}{
		"user":  {func(e *env) { e.server.CloseUser("guest") }, "user 'guest' is deleted"},
		"vhost": {func(e *env) { e.server.CloseVHost("/") }, "vhost '/' is deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(_ *testing.T, e *env) {
				p := e.open()
				e.server.CloseUser("bob")
				e.server.CloseVHost("other")
				p.send(1, &wire.BasicQos{})
				p.expect("1 basic.qos-ok {}")
				c.end(e)
				p.expect("0 connection.close {ReplyCode:320 ReplyText:CONNECTION_FORCED - " + c.want + " ClassID:0 MethodID:0}")
				p.send(0, &wire.ConnectionCloseOk{})
			})
		})
	}
}

// The publish path asks for permissions once and then remembers.
func TestPublishPermitDoesNotAllocate(t *testing.T) {
	e := newEnv(t)
	defer e.stop()
	identity, err := e.directory.Authenticate("guest", "guest")
	if err != nil {
		t.Fatal(err)
	}
	ch := newChannel(&conn{server: e.server, identity: identity, host: e.host}, 1)
	if allocations := testing.AllocsPerRun(1000, func() {
		if err := ch.mayPublish("amq.topic"); err != nil {
			t.Fatal(err)
		}
	}); allocations > 0 {
		t.Errorf("%v allocations a message", allocations)
	}
}

func BenchmarkPublishPermit(b *testing.B) {
	e := newEnv(b)
	defer e.stop()
	identity, err := e.directory.Authenticate("guest", "guest")
	if err != nil {
		b.Fatal(err)
	}
	ch := newChannel(&conn{server: e.server, identity: identity, host: e.host}, 1)
	for b.Loop() {
		if err := ch.mayPublish("amq.topic"); err != nil {
			b.Fatal(err)
		}
	}
}
