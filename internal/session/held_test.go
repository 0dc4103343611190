package session

import (
	"strings"
	"testing"

	"github.com/dormousemq/dormouse/internal/wire"
)

// unfinished begins a message on a channel: all but its last octet.
func (p *peer) unfinished(channel uint16, size int) {
	m := to("nowhere")
	b := wire.AppendMethod(nil, channel, &m)
	b = wire.AppendHeader(b, channel, size, wire.Properties{}.AppendTo(nil))
	p.raw(string(wire.AppendBody(b, channel, frameMax, make([]byte, size-1))))
}

func (p *peer) finish(channel uint16) {
	p.raw(string(wire.AppendBody(nil, channel, frameMax, []byte{1})))
}

const heldText = "0 connection.close {ReplyCode:506 ReplyText:RESOURCE_ERROR - messages that are not complete or not committed take more than the 10000 bytes that a connection may hold ClassID:60 MethodID:40}"

// Messages that are left unfinished on many channels are bounded together.
func TestUnfinishedMessagesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		e.server.options.MaxHeld = 10_000
		p := e.dial().open()
		for n := uint16(1); n <= 9; n++ {
			p.channel(n).unfinished(n, 1000)
		}
		p.silence()
		for n := uint16(1); n <= 9; n++ {
			p.finish(n)
		}
		for n := uint16(1); n <= 9; n++ { // there is room again
			p.unfinished(n, 1000)
		}
		p.silence()
		p.channel(10).channel(11)
		p.unfinished(10, 1000)
		go p.unfinished(11, 1000)
		p.expect(heldText)
	})
}

// What a transaction gathers is bounded, until it is committed or rolled back.
func TestTransactionsAreBounded(t *testing.T) {
	for name, end := range map[string]wire.Method{"commit": &wire.TxCommit{}, "rollback": &wire.TxRollback{}, "close": &wire.ChannelClose{}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *env) {
				e.server.options.MaxHeld = 10_000
				p := e.open()
				for range 3 {
					p.send(1, &wire.TxSelect{})
					p.skip(1)
					for range 9 {
						p.publish(to("nowhere"), wire.Properties{}, strings.Repeat("x", 500))
					}
					p.send(1, end)
					p.skip(1)
					if name == "close" {
						p.channel(1)
					}
				}
				p.send(1, &wire.TxSelect{})
				p.skip(1)
				go func() {
					for range 11 {
						p.publish(to("nowhere"), wire.Properties{}, strings.Repeat("x", 500))
					}
				}()
				p.expect(heldText)
			})
		})
	}
}

// A body is not believed before it comes: the size that a header promises costs nothing.
func TestPromisedBodiesCostNothing(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		e.server.options.MaxHeld = 1 << 20
		p := e.dial().open()
		for n := uint16(1); n <= channelMax; n++ {
			p.channel(n)
			m := to("nowhere")
			b := wire.AppendMethod(nil, n, &m)
			p.raw(string(wire.AppendHeader(b, n, maxMessage, wire.Properties{}.AppendTo(nil))))
		}
		p.silence()
	})
}
