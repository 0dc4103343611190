package session

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// conversation is a whole connection up to channel 1.
func conversation() []byte {
	b := []byte(wire.ProtocolHeader)
	for _, m := range []wire.Method{startOk(), tuneOk(), &wire.ConnectionOpen{VirtualHost: "/"}} {
		b = wire.AppendMethod(b, 0, m)
	}
	return wire.AppendMethod(b, 1, &wire.ChannelOpen{})
}

func onChannel1(methods ...wire.Method) (b []byte) {
	for _, m := range methods {
		b = wire.AppendMethod(b, 1, m)
	}
	return b
}

func published(body string) []byte {
	m := to("q")
	m.Mandatory = true
	b := wire.AppendMethod(nil, 1, &m)
	p := wire.Properties{
		Flags: wire.FlagHeaders | wire.FlagDeliveryMode | wire.FlagExpiration | wire.FlagPriority, DeliveryMode: wire.Persistent, Expiration: "1", Priority: 3,
		Headers: wire.Table{{Name: "CC", Value: []any{"q2"}}, {Name: "BCC", Value: []any{"q3"}}, {Name: "x-delay", Value: int32(1)}},
	}
	b = wire.AppendHeader(b, 1, len(body), p.AppendTo(nil))
	return wire.AppendBody(b, 1, frameMax, []byte(body))
}

// FuzzConnection gives a server what a client sends, from the protocol header on or,
// if opened, from an open channel on. Whatever it is, the connection ends when the
// client hangs up, and the server with it.
func FuzzConnection(f *testing.F) {
	f.Add(false, []byte(wire.ProtocolHeader))
	f.Add(false, []byte("AMQP\x03\x01\x00\x00"))
	f.Add(false, conversation())
	f.Add(false, append(conversation(), wire.AppendMethod(nil, 0, &wire.ConnectionClose{})...))
	declared := onChannel1(
		&wire.ExchangeDeclare{Exchange: "x", Type: "topic", Durable: true},
		&wire.QueueDeclare{Queue: "q", Durable: true, Arguments: wire.Table{
			{Name: "x-dead-letter-exchange", Value: "x"}, {Name: "x-max-length", Value: int32(1)}, {Name: "x-message-ttl", Value: int32(1)}, {Name: "x-max-priority", Value: uint8(5)},
		}},
		&wire.QueueDeclare{Queue: "q2", Durable: true, Arguments: wire.Table{{Name: "x-queue-type", Value: "quorum"}, {Name: "x-delivery-limit", Value: int32(1)}}},
		&wire.QueueBind{Queue: "q2", Exchange: "x", RoutingKey: "#"}, &wire.ExchangeBind{Destination: "x", Source: "amq.topic", RoutingKey: "a.*"},
	)
	used := append(append(slices.Clip(declared), published("hello")...), published("")...)
	f.Add(true, used)
	f.Add(true, append(slices.Clip(used), onChannel1(
		&wire.ConfirmSelect{}, &wire.BasicQos{PrefetchCount: 1}, &wire.BasicConsume{Queue: "q2", ConsumerTag: "c"}, &wire.BasicGet{Queue: "q"},
		&wire.BasicNack{DeliveryTag: 1, Requeue: true}, &wire.BasicReject{DeliveryTag: 2}, &wire.BasicRecover{Requeue: true}, &wire.BasicAck{Multiple: true},
		&wire.BasicCancel{ConsumerTag: "c"}, &wire.QueuePurge{Queue: "q"}, &wire.QueueUnbind{Queue: "q2", Exchange: "x", RoutingKey: "#"},
		&wire.QueueDelete{Queue: "q"}, &wire.ExchangeDelete{Exchange: "x"}, &wire.ChannelClose{},
	)...))
	f.Add(true, append(onChannel1(&wire.QueueDeclare{Queue: "q", Exclusive: true}, &wire.TxSelect{}), append(published("x"), onChannel1(&wire.TxCommit{}, &wire.BasicGet{}, &wire.BasicAck{DeliveryTag: 1}, &wire.TxRollback{})...)...))
	f.Add(true, onChannel1(&wire.BasicConsume{Queue: replyQueue, NoAck: true}, &wire.QueueDeclare{Queue: replyQueue, Passive: true}))
	f.Fuzz(func(t *testing.T, opened bool, input []byte) {
		e := newEnv(t)
		defer e.stop()
		here, there := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = e.server.Serve(there)
		}()
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, here)
		}()
		if opened {
			_, _ = here.Write(conversation())
		}
		_, _ = here.Write(input)
		here.Close()
		select {
		case <-served:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection does not end")
		}
		<-read
	})
}
