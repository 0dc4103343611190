package session

import (
	"testing"
	"testing/synctest"

	"github.com/dormousemq/dormouse/internal/wire"
)

func TestInspection(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare(testQueue, nil)
		p.send(1, &wire.ConfirmSelect{}, &wire.BasicQos{PrefetchCount: 2})
		p.skip(2)
		nowhere := to("nowhere")
		p.publish(nowhere, wire.Properties{}, "lost")
		p.skip(1)
		nowhere.Mandatory = true
		p.publish(nowhere, wire.Properties{}, "back")
		p.skip(4)
		for range 3 {
			p.publish(to(testQueue), wire.Properties{}, "hello")
			p.skip(1)
		}
		p.send(1, &wire.BasicConsume{Queue: testQueue, ConsumerTag: "me", Arguments: wire.Table{{Name: "x-priority", Value: int32(3)}}})
		p.skip(7)
		p.send(1, &wire.BasicAck{DeliveryTag: 1})
		p.skip(3)
		synctest.Wait()

		all := e.server.Connections()
		if len(all) != 1 || len(all[0].Channels) != 1 {
			t.Fatalf("connections: %+v", all)
		}
		c, ch := all[0], all[0].Channels[0]
		if c.User != "guest" || c.Host != "/" || c.Mechanism != "PLAIN" || c.ChannelMax != channelMax || c.FrameMax != frameMax || c.Received.Octets == 0 || c.Sent.Octets == 0 {
			t.Errorf("connection: %+v", c)
		}
		want := Counts{Publish: 5, Confirm: 5, DropUnroutable: 1, ReturnUnroutable: 1, Deliver: 3, Ack: 1}
		if ch.Number != 1 || !ch.Confirm || ch.Transactional || ch.Prefetch != 2 || ch.Consumers != 1 || ch.Unacked != 2 || ch.Unconfirmed != 0 || ch.Counts != want {
			t.Errorf("channel: %+v", ch)
		}

		q := e.host.Queue(testQueue)
		if name, _, ok := NameOf(q.Owner()); !ok || name != c.Name {
			t.Errorf("the owner of the queue is %q, not %q", name, c.Name)
		}
		info := q.Inspect()
		if info.Ready != 0 || info.Unacked != 2 || info.UnackedBytes != 10 || info.Served.Deliver != 3 || info.Served.Ack != 1 || q.Published() != 3 {
			t.Errorf("queue: %+v, %d published", info, q.Published())
		}
		who, ok := Describe(q.Consumers()[0])
		if !ok || who.Connection != c.Name || who.Channel != 1 || who.User != "guest" || len(who.Arguments) != 1 {
			t.Errorf("consumer: %+v", who)
		}

		p.send(1, &wire.ChannelClose{})
		p.skip(1)
		if got := e.server.Totals()["/"].Counts; got != want {
			t.Errorf("totals after the channel was closed: %+v", got)
		}
		if e.server.CloseConnection("nobody", "test") {
			t.Error("a connection that is not there was closed")
		}
		if !e.server.CloseConnection(c.Name, "because") {
			t.Error("the connection was not found")
		}
		p.expect("0 connection.close {ReplyCode:320 ReplyText:CONNECTION_FORCED - because ClassID:0 MethodID:0}")
		p.send(0, &wire.ConnectionCloseOk{})
		p.expect("end")
		synctest.Wait()
		if got := e.server.Totals()["/"]; got.Counts != want || got.Received.Octets < c.Received.Octets {
			t.Errorf("totals after the connection has ended: %+v", got)
		}
		if got, want := e.server.Churn(), (Churn{ConnectionsCreated: 1, ConnectionsClosed: 1, ChannelsCreated: 1, ChannelsClosed: 1}); got != want {
			t.Errorf("churn: %+v", got)
		}
	})
}
