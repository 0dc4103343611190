package session

import "github.com/dormousemq/dormouse/internal/wire"

// alarm says that the broker is short of something.
type alarm struct {
	reason string
	over   chan struct{} // closed when it is over
}

// Block stops connections that publish, for that reason ("low on disk"), until
// Unblock. Others are not concerned, so consumers can help. Source:
// https://www.rabbitmq.com/docs/alarms and connection-blocked.
func (s *Server) Block(reason string) {
	s.alarm.CompareAndSwap(nil, &alarm{reason: reason, over: make(chan struct{})})
}

// Unblock lets publishers go on.
func (s *Server) Unblock() {
	if a := s.alarm.Swap(nil); a != nil {
		close(a.over)
	}
}

// awaitAlarm waits, before a message is published, until there is no alarm. It tells
// a client that understands it.
func (c *conn) awaitAlarm() {
	a := c.server.alarm.Load()
	if a == nil {
		return
	}
	c.log.Warn("publisher blocked", "reason", a.reason)
	told := c.can("connection.blocked")
	if told {
		c.reply(0, &wire.ConnectionBlocked{Reason: a.reason})
	}
	select {
	case <-a.over:
		if told {
			c.reply(0, &wire.ConnectionUnblocked{})
		}
	case <-c.stopping:
	case <-c.ctx.Done():
	}
}
