package session

import (
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// reply sends a method. Only the reader calls it: it waits while the client has too
// much to read.
func (c *conn) reply(channel uint16, m wire.Method) {
	c.mu.Lock()
	c.out.method(channel, m)
	c.wakeWriter()
	c.awaitRoom()
	c.mu.Unlock()
}

// awaitRoom waits, with c.mu held, while there is too much to be written.
func (c *conn) awaitRoom() {
	for c.out.size > replyLimit && !c.dead && c.interrupted.Load() == nil {
		c.room.Wait()
	}
}

// wakeWriter tells the writer that there is something to do. With c.mu held.
func (c *conn) wakeWriter() {
	if c.idle {
		c.idle = false
		c.wake <- struct{}{}
	}
}

// write is the writer's goroutine.
func (c *conn) write() {
	defer close(c.written)
	quiet := time.NewTimer(time.Hour)
	defer quiet.Stop()
	for c.nextWrite(quiet) {
	}
}

// nextWrite writes what is there, or waits for it. It returns false at the end.
func (c *conn) nextWrite(quiet *time.Timer) bool {
	c.mu.Lock()
	for _, ch := range c.dirty {
		ch.flushConfirms()
	}
	c.dirty = c.dirty[:0]
	if c.dead || c.ending && c.out.size == 0 {
		c.mu.Unlock()
		return false
	}
	if c.out.size == 0 {
		c.idle = true
		every := c.heartbeat / 2
		c.mu.Unlock()
		if every > 0 {
			quiet.Reset(every)
		}
		select {
		case <-c.wake:
		case <-quiet.C:
			c.beat()
		}
		return true
	}
	batch := c.out
	c.out = output{}
	stalled := accept(c.stalled)
	c.stalled = nil
	c.room.Broadcast()
	c.mu.Unlock()
	size := batch.size
	err := batch.writeTo(c.net)
	c.sent.add(size)
	if err != nil {
		c.cut()
		return false
	}
	for _, s := range stalled {
		s.resume()
	}
	return true
}

// beat sends a heartbeat: nothing was written for half of its interval.
func (c *conn) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.idle {
		<-c.wake
	}
	c.idle = false
	if c.heartbeat > 0 {
		c.out.end(wire.AppendHeartbeat(c.out.begin()))
	}
}
