package session

import (
	"errors"
	"os"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// A channel on which a message was kept for too long is closed. Channels are the
// reader's, so it is woken by a deadline that is past, and finds what to close.

// expel has the channel closed. With conn.mu held.
func (ch *channel) expel() {
	c := ch.conn
	if ch.closed || c.dead {
		return
	}
	c.expelled = append(c.expelled, ch)
	c.expelling.Store(true)
	_ = c.net.SetReadDeadline(time.Unix(1, 0))
}

// closeExpelled closes the channels that were expelled. It is the reader's, between
// frames.
func (c *conn) closeExpelled() error {
	if !c.expelling.Load() {
		return nil
	}
	c.mu.Lock()
	expelled := c.expelled
	c.expelled = nil
	c.expelling.Store(false)
	c.mu.Unlock()
	for _, ch := range expelled {
		if c.channels[ch.number] != ch || ch.state != running {
			continue
		}
		c.settleAcks()
		if err := ch.fail(0, errTooSlow(ch.number)); err != nil {
			return err
		}
	}
	return nil
}

// errTooSlow is RabbitMQ's text, with the -1 that 4.3 says where the timeout once stood.
func errTooSlow(channel uint16) error {
	return wire.Errorf(wire.PreconditionFailed, "delivery acknowledgement on channel %d timed out. Timeout value used: -1 ms. "+
		"This timeout value can be configured, see consumers doc guide to learn more", channel)
}

// woken tells whether a read has ended only because a channel is to be closed.
func (c *conn) woken(n int, err error) bool {
	return n == 0 && c.expelling.Load() && errors.Is(err, os.ErrDeadlineExceeded)
}
