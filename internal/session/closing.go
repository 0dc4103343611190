package session

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// methodError is an exception with the method that caused it.
type methodError struct {
	method wire.MethodID
	*wire.Exception
}

func (e *methodError) Unwrap() error { return e.Exception }

// by says that an exception was caused by a method, if that is not known. Other
// errors stay what they are.
func by(id wire.MethodID, err error) error {
	if _, known := errors.AsType[*methodError](err); known {
		return err
	}
	if e, ok := errors.AsType[*wire.Exception](err); ok {
		return &methodError{id, e}
	}
	return err
}

// exception returns what to send for err, with the method if known.
func exception(err error) (e *wire.Exception, id wire.MethodID) {
	if m, ok := errors.AsType[*methodError](err); ok {
		return m.Exception, m.method
	}
	if !errors.As(err, &e) {
		e = &wire.Exception{Code: wire.InternalError, Text: err.Error()}
	}
	return e, 0
}

// say sends the last method, if there is one, and waits for the client to go.
func (c *conn) say(last wire.Method) {
	if last == nil {
		return
	}
	patience := closingTimeout
	if c.heartbeat > 0 {
		patience = min(patience, c.heartbeat)
	}
	c.mu.Lock()
	c.closing = true
	_ = c.net.SetReadDeadline(time.Now().Add(patience))
	c.out.method(0, last)
	c.wakeWriter()
	c.mu.Unlock()
	c.awaitEnd(last)
}

// goodbye logs why the connection ends and returns the method that tells the
// client, nil if it is gone.
func (c *conn) goodbye(err error) wire.Method {
	var e *wire.Exception
	switch {
	case errors.Is(err, errClosed):
		c.log.Info("connection closed")
		return &wire.ConnectionCloseOk{}
	case errors.Is(err, errRefused):
		return nil
	case errors.As(err, &e):
		e, id := exception(err)
		level := slog.LevelWarn
		if e.Code == wire.ConnectionForced {
			level = slog.LevelInfo
		}
		c.log.Log(c.ctx, level, "connection closed with an exception", "exception", e.Error(), "method", id)
		return &wire.ConnectionClose{ReplyCode: e.Code, ReplyText: e.ReplyText(), ClassID: id.Class(), MethodID: id.Method()}
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.log.Warn("connection lost: no heartbeat from the client", "heartbeat", c.heartbeat)
	case errors.Is(err, io.EOF):
		c.log.Warn("connection lost: the client closed it without a word")
	default:
		c.log.Warn("connection lost", "error", err)
	}
	return nil
}

// awaitEnd reads and discards what a client sends after the last method, until it
// closes the connection, answers connection.close or the deadline is over. Closing a
// socket with unread input could take the last method from the client.
func (c *conn) awaitEnd(last wire.Method) {
	for {
		f, err := c.frames.Next()
		if _, lost := errors.AsType[*wire.Exception](err); lost {
			_, _ = io.Copy(io.Discard, reader{c})
		}
		if err != nil {
			return
		}
		m, err := c.connectionMethod(f)
		if err != nil || f.Channel != 0 {
			continue
		}
		switch m.(type) {
		case *wire.ConnectionClose:
			c.reply(0, &wire.ConnectionCloseOk{})
		case *wire.ConnectionCloseOk:
			if last.ID() == wire.IDConnectionClose {
				return
			}
		}
	}
}
