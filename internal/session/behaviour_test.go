package session

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dormousemq/dormouse/internal/wire"
)

func deliver(consumer string, tag int, queue string) string {
	return fmt.Sprintf("1 basic.deliver {ConsumerTag:%s DeliveryTag:%d Redelivered:false Exchange: RoutingKey:%s}", consumer, tag, queue)
}

// The client must know of the consumer before its first delivery.
func TestConsumeOkComesFirst(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", nil)
		for range 3 {
			p.publish(to("q"), wire.Properties{}, "x")
		}
		p.send(1, &wire.BasicConsume{ConsumerTag: "c"})
		p.expect("1 basic.consume-ok {ConsumerTag:c}", deliver("c", 1, "q"))
		p.skip(2 + 6)
		p.send(1, &wire.BasicCancel{ConsumerTag: "c"})
		p.expect("1 basic.cancel-ok {ConsumerTag:c}")
		p.publish(to("q"), wire.Properties{}, "x")
		p.silence()
	})
}

func TestPrefetch(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", nil)
		for range 5 {
			p.publish(to("q"), wire.Properties{}, "x")
		}
		p.send(1, &wire.BasicQos{PrefetchCount: 2}, &wire.BasicConsume{ConsumerTag: "c"})
		p.skip(2 + 2*3)
		p.silence()
		p.send(1, &wire.BasicAck{DeliveryTag: 2, Multiple: true})
		p.expect(deliver("c", 3, "q"))
		p.skip(2 + 3)
		p.silence()
		p.send(1, &wire.BasicNack{DeliveryTag: 3, Requeue: false})
		p.expect(deliver("c", 5, "q"))
		p.skip(2)
		p.silence()
	})
}

func TestCancelNotification(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		owner := e.open()
		owner.send(1, &wire.QueueDeclare{Queue: "q"})
		owner.skip(1)
		able := e.open()
		old := e.dial().start()
		m := startOk()
		m.ClientProperties = nil
		old.send(0, m, tuneOk(), &wire.ConnectionOpen{VirtualHost: "/"})
		old.skip(2)
		old.channel(1)
		for _, p := range []*peer{able, old} {
			p.send(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "c"})
			p.skip(1)
		}
		owner.publish(to("q"), wire.Properties{}, "x")
		able.expect(deliver("c", 1, "q"))
		able.skip(2)
		owner.send(1, &wire.QueueDelete{Queue: "q"})
		owner.skip(1)
		able.expect("1 basic.cancel {ConsumerTag:c NoWait:true}")
		old.silence()
		able.send(1, &wire.BasicAck{DeliveryTag: 1}) // too late, but no error
		able.silence()
	})
}

func TestConfirms(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", wire.Table{{Name: "x-max-length", Value: int32(2)}, {Name: "x-overflow", Value: "reject-publish"}})
		p.send(1, &wire.ConfirmSelect{})
		p.skip(1)
		var got []string
		confirmed := regexp.MustCompile(`basic\.(ack|nack) \{DeliveryTag:(\d+) Multiple:(\w+)`)
		for range 4 {
			p.publish(to("q"), wire.Properties{}, "x")
			m := confirmed.FindStringSubmatch(p.next())
			if m == nil || m[3] != "false" {
				t.Fatalf("no confirm: %v", m)
			}
			got = append(got, m[1]+m[2])
		}
		if s := strings.Join(got, " "); s != "ack1 ack2 nack3 nack4" {
			t.Error(s)
		}
	})
}

// Confirms that become due while the client is busy are gathered.
func TestConfirmsAreCoalesced(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", nil)
		p.send(1, &wire.ConfirmSelect{})
		p.skip(1)
		const messages = 1000
		for range messages {
			p.publish(to("q"), wire.Properties{}, "x")
		}
		synctest.Wait()
		frames := 0
		for up := uint64(0); up < messages; frames++ {
			f, err := p.frames.Next()
			if err != nil {
				t.Fatal(err)
			}
			var m wire.BasicAck
			if _, args, _ := wire.SplitMethod(f.Payload); m.Parse(args) != nil || m.DeliveryTag <= up || m.DeliveryTag > up+1 && !m.Multiple {
				t.Fatalf("after %d came %+v", up, m)
			}
			up = m.DeliveryTag
		}
		if frames > 10 {
			t.Errorf("%d frames confirm %d messages", frames, messages)
		}
		p.silence()
	})
}

func TestTransaction(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", nil)
		ready := func(n int) {
			t.Helper()
			if got, want := p.count("q"), fmt.Sprintf("1 queue.declare-ok {Queue:q MessageCount:%d ConsumerCount:0}", n); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		p.send(1, &wire.TxSelect{})
		p.skip(1)
		p.publish(to("q"), wire.Properties{}, "a")
		p.publish(to("q"), wire.Properties{}, "b")
		ready(0)
		p.send(1, &wire.TxCommit{})
		p.expect("1 tx.commit-ok {}")
		ready(2)
		p.publish(to("q"), wire.Properties{}, "c")
		p.send(1, &wire.TxRollback{}, &wire.TxCommit{})
		p.expect("1 tx.rollback-ok {}", "1 tx.commit-ok {}")
		ready(2)

		// Acks count at commit, and are taken back by rollback.
		p.send(1, &wire.BasicGet{}, &wire.BasicGet{})
		p.skip(6)
		p.send(1, &wire.BasicAck{DeliveryTag: 2}, &wire.TxRollback{}, &wire.BasicNack{DeliveryTag: 1, Requeue: true}, &wire.BasicAck{DeliveryTag: 2}, &wire.TxCommit{})
		p.expect("1 tx.rollback-ok {}", "1 tx.commit-ok {}")
		ready(1)
		p.send(1, &wire.BasicGet{})
		p.expect("1 basic.get-ok {DeliveryTag:3 Redelivered:true Exchange: RoutingKey:q MessageCount:0}", `1 header 1 "\x00\x00"`, "1 body a")

		// What was acked but not committed comes back when the channel closes.
		p.send(1, &wire.BasicAck{DeliveryTag: 3}, &wire.ChannelClose{})
		p.skip(1)
		p.channel(1)
		ready(1)
	})
}

func TestTransactionOnFullQueue(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", wire.Table{{Name: "x-max-length", Value: int32(1)}, {Name: "x-overflow", Value: "reject-publish"}})
		p.send(1, &wire.TxSelect{})
		p.skip(1)
		for range 2 {
			p.publish(to("q"), wire.Properties{}, "x")
		}
		p.send(1, &wire.TxCommit{})
		p.expect("1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - partial tx completion ClassID:90 MethodID:20}")
	})
}

func TestDirectReply(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		client, service := e.open(), e.open()
		service.declare("requests", nil)
		service.send(1, &wire.BasicConsume{ConsumerTag: "s", NoAck: true}, &wire.ConfirmSelect{})
		service.skip(2)
		client.send(1, &wire.BasicConsume{Queue: replyQueue, ConsumerTag: "r", NoAck: true})
		client.skip(1)
		client.publish(to("requests"), wire.Properties{Flags: wire.FlagReplyTo | wire.FlagCorrelationID, ReplyTo: replyQueue, CorrelationID: "1"}, "question")
		service.expect(deliver("s", 1, "requests"))
		address := regexp.MustCompile(`amq\.rabbitmq\.reply-to\.[\w-]+\.[\w-]+==`).FindString(service.next())
		if address == "" {
			t.Fatal("the request has no address to reply to")
		}
		service.skip(1)
		service.send(1, &wire.QueueDeclare{Queue: address, Passive: true})
		service.expect(fmt.Sprintf("1 queue.declare-ok {Queue:%s MessageCount:0 ConsumerCount:1}", address))
		reply := wire.BasicPublish{RoutingKey: []byte(address), Mandatory: true}
		service.publish(reply, wire.Properties{Flags: wire.FlagCorrelationID, CorrelationID: "1"}, "answer")
		service.expect("1 basic.ack {DeliveryTag:1 Multiple:false}")
		client.expect(deliver("r", 1, address), `1 header 6 "\x04\x00\x011"`, "1 body answer")

		client.send(1, &wire.ChannelClose{})
		client.skip(1)
		service.publish(reply, wire.Properties{}, "late")
		service.expect(fmt.Sprintf("1 basic.return {ReplyCode:312 ReplyText:NO_ROUTE Exchange: RoutingKey:%s}", address))
		service.skip(2)
		service.expect("1 basic.ack {DeliveryTag:2 Multiple:false}")
		service.send(1, &wire.QueueDeclare{Queue: address, Passive: true})
		service.expect(fmt.Sprintf("1 channel.close {ReplyCode:404 ReplyText:NOT_FOUND - no queue '%s' in vhost '/' ClassID:50 MethodID:10}", address))
	})
}

func TestRecover(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", nil)
		p.publish(to("q"), wire.Properties{}, "x")
		p.send(1, &wire.BasicGet{})
		p.skip(3)
		p.send(1, &wire.BasicRecover{Requeue: true}, &wire.BasicGet{})
		p.expect("1 basic.recover-ok {}", "1 basic.get-ok {DeliveryTag:2 Redelivered:true Exchange: RoutingKey:q MessageCount:0}")
	})
}

// One ack may settle messages of several queues.
func TestAckOverSeveralQueues(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		for _, q := range []string{"a", "b", "c"} {
			p.declare(q, nil)
			p.publish(to(q), wire.Properties{}, "x")
			p.publish(to(q), wire.Properties{}, "x")
		}
		for range 2 {
			for _, q := range []string{"a", "b", "c"} {
				p.send(1, &wire.BasicGet{Queue: q})
				p.skip(3)
			}
		}
		p.send(1, &wire.BasicAck{DeliveryTag: 5, Multiple: true}, &wire.BasicNack{Multiple: true, Requeue: true})
		for q, n := range map[string]int{"a": 0, "b": 0, "c": 1} {
			if got, want := p.count(q), fmt.Sprintf("1 queue.declare-ok {Queue:%s MessageCount:%d ConsumerCount:0}", q, n); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}
