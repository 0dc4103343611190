package session

import (
	"slices"
	"strings"

	"github.com/dormousemq/dormouse/internal/wire"
)

// alarm says that the broker is short of something.
type alarm struct {
	resources []string      // "memory", "disk"
	over      chan struct{} // closed when it is over
}

func (a *alarm) reason() string { return "low on " + strings.Join(a.resources, " & ") }

// Block stops connections that publish, since the broker is short of a resource ("memory"
// or "disk"), until Unblock. Others are not concerned, so consumers can help. Source:
// https://www.rabbitmq.com/docs/alarms and connection-blocked.
func (s *Server) Block(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &alarm{resources: []string{resource}, over: make(chan struct{})}
	if before := s.alarm.Load(); before != nil {
		if slices.Contains(before.resources, resource) {
			return
		}
		a.resources, a.over = slices.Sorted(slices.Values(append(a.resources, before.resources...))), before.over
		slices.Reverse(a.resources)
	}
	s.alarm.Store(a)
	for c := range s.conns {
		if c.publishing.Load() { // it may be waiting for the very resource
			c.tellBlocked(a)
		}
	}
}

// Unblock says that there is enough of a resource again. Publishers go on if there is
// enough of all.
func (s *Server) Unblock(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.alarm.Load()
	if before == nil || !slices.Contains(before.resources, resource) {
		return
	}
	if len(before.resources) > 1 {
		left := slices.DeleteFunc(slices.Clone(before.resources), func(r string) bool { return r == resource })
		s.alarm.Store(&alarm{resources: left, over: before.over})
		return
	}
	s.alarm.Store(nil)
	close(before.over)
	for c := range s.conns {
		c.tellUnblocked()
	}
}

// Alarms are the resources that the broker is short of.
func (s *Server) Alarms() []string {
	if a := s.alarm.Load(); a != nil {
		return slices.Clone(a.resources)
	}
	return nil
}

// awaitAlarm waits, before a message is published, until there is no alarm. It tells
// a client that understands it.
func (c *conn) awaitAlarm() {
	for {
		a := c.server.alarm.Load()
		if a == nil {
			return
		}
		c.tellBlocked(a)
		select {
		case <-a.over:
		case <-c.stopping:
			return
		case <-c.ctx.Done():
			return
		}
	}
}

// tellBlocked tells the client that it is blocked, once, unless that is over already.
func (c *conn) tellBlocked(a *alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocked || c.server.alarm.Load() == nil {
		return
	}
	c.blocked = true
	c.log.Warn("publisher blocked", "reason", a.reason())
	if c.can("connection.blocked") {
		c.out.method(0, &wire.ConnectionBlocked{Reason: a.reason()})
		c.wakeWriter()
	}
}

func (c *conn) tellUnblocked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.blocked {
		return
	}
	c.blocked = false
	if c.can("connection.blocked") {
		c.out.method(0, &wire.ConnectionUnblocked{})
		c.wakeWriter()
	}
}
