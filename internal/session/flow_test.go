package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dormousemq/dormouse/internal/wire"
)

// pending returns how much the server holds for its connections, in bytes.
func (e *env) pending() int {
	e.server.mu.Lock()
	defer e.server.mu.Unlock()
	n := 0
	for c := range e.server.conns {
		c.mu.Lock()
		n += c.out.size
		c.mu.Unlock()
	}
	return n
}

// A consumer whose client does not read must cost no more than its buffers: the
// rest stays in the queue, in order, and comes when the client reads.
func TestClientThatDoesNotRead(t *testing.T) {
	for name, noAck := range map[string]bool{"with acks": false, "without acks": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *env) {
				const messages, size = 1500, 4 << 10
				publisher, p := e.open(), e.open()
				publisher.send(1, &wire.QueueDeclare{Queue: "q"}, &wire.ConfirmSelect{})
				publisher.skip(2)
				p.send(1, &wire.BasicConsume{Queue: "q", ConsumerTag: "c", NoAck: noAck})
				p.skip(1)
				for i := range messages {
					publisher.publish(to("q"), wire.Properties{}, fmt.Sprintf("%-*d", size, i))
					publisher.skip(1)
				}
				if n := e.pending(); n < deliverLimit || n > deliverLimit+2*size {
					t.Errorf("%d octets wait for a client that does not read", n)
				}
				for i := range messages {
					p.expect(fmt.Sprintf("1 basic.deliver {ConsumerTag:c DeliveryTag:%d Redelivered:false Exchange: RoutingKey:q}", i+1),
						fmt.Sprintf(`1 header %d "\x00\x00"`, size))
					f, err := p.frames.Next()
					if err != nil || !strings.HasPrefix(string(f.Payload), fmt.Sprint(i, " ")) {
						t.Fatalf("message %d: %.20q, %v", i, f.Payload, err)
					}
				}
				p.silence()
			})
		})
	}
}

// A client that asks and asks but does not read is not read itself.
func TestClientThatOnlyAsks(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", nil)
		const questions = 50_000
		asked := make(chan int, 1)
		go func() {
			for range questions {
				p.send(1, &wire.QueueDeclare{Queue: "q", Passive: true})
			}
			asked <- questions
		}()
		synctest.Wait()
		if len(asked) > 0 {
			t.Error("the server took all questions")
		}
		if n := e.pending(); n < replyLimit || n > replyLimit+1000 {
			t.Errorf("%d octets wait for a client that does not read", n)
		}
		for range questions {
			p.expect("1 queue.declare-ok {Queue:q MessageCount:0 ConsumerCount:0}")
		}
		<-asked
	})
}

func TestShutdownOfClientsThatDoNotRead(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", nil)
		go func() {
			for range 50_000 {
				p.send(1, &wire.QueueDeclare{Queue: "q", Passive: true})
			}
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), closingTimeout)
		defer cancel()
		if err := e.server.Shutdown(ctx, "bye"); err == nil {
			t.Error("Shutdown ended although the client has never read what it was told")
		}
	})
}

func TestAlarm(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p, consumer := e.open(), e.open()
		p.declare("q", nil)
		e.server.Block("disk")
		p.silence()
		p.publish(to("q"), wire.Properties{}, "x")
		p.expect("0 connection.blocked {Reason:low on disk}")
		go p.publish(to("q"), wire.Properties{}, "y")
		synctest.Wait()
		consumer.send(1, &wire.BasicGet{Queue: "nope"}) // others are not concerned
		consumer.skip(1)
		e.server.Unblock("disk")
		p.expect("0 connection.unblocked {}")
		synctest.Wait()
		if got := p.count("q"); got != "1 queue.declare-ok {Queue:q MessageCount:2 ConsumerCount:0}" {
			t.Error(got)
		}
		e.server.Block("memory")
		p.publish(to("q"), wire.Properties{}, "z")
		p.expect("0 connection.blocked {Reason:low on memory}")
		go func() { _ = e.server.Shutdown(context.Background(), "bye") }()
		p.expect(closedByServer + "320 ReplyText:CONNECTION_FORCED - bye ClassID:0 MethodID:0}")
		consumer.conn.Close()
		p.conn.Close()
	})
}

func TestSeveralAlarms(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", nil)
		e.server.Block("disk")
		e.server.Block("memory")
		e.server.Block("memory")
		p.publish(to("q"), wire.Properties{}, "x")
		p.expect("0 connection.blocked {Reason:low on memory & disk}")
		e.server.Unblock("disk")
		e.server.Unblock("disk")
		p.silence()
		e.server.Unblock("memory")
		p.expect("0 connection.unblocked {}")
		synctest.Wait()
		if got := p.count("q"); got != "1 queue.declare-ok {Queue:q MessageCount:1 ConsumerCount:0}" {
			t.Error(got)
		}
	})
}

// A publisher that waits in the store for room on the disk is told when the alarm comes.
func TestAlarmInTheMiddleOfAPublish(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p := e.open()
		p.declare("q", nil)
		e.server.mu.Lock()
		conns := slices.Collect(maps.Keys(e.server.conns))
		e.server.mu.Unlock()
		stuck := conns[0]
		idle := e.open()
		stuck.publishing.Store(true)
		e.server.Block("disk")
		p.expect("0 connection.blocked {Reason:low on disk}")
		idle.silence()
		e.server.Unblock("disk")
		p.expect("0 connection.unblocked {}")
		idle.silence()
		stuck.publishing.Store(false)
	})
}

func TestLargeMessages(t *testing.T) {
	bubble(t, func(t *testing.T, e *env) {
		p, small := e.open(), e.dial()
		m := tuneOk()
		m.FrameMax = wire.FrameMinSize
		small.tuned(m).channel(1)
		p.send(1, &wire.QueueDeclare{Queue: "q"})
		p.skip(1)
		body := strings.Repeat("0123456789abcdef", 1<<16)
		p.publish(to("q"), wire.Properties{}, body)
		synctest.Wait()
		small.send(1, &wire.BasicGet{Queue: "q"})
		small.skip(2)
		var got strings.Builder
		for got.Len() < len(body) {
			f, err := small.frames.Next()
			if err != nil || len(f.Payload) > wire.FrameMinSize-wire.FrameOverhead {
				t.Fatalf("frame of %d octets, %v", len(f.Payload), err)
			}
			got.Write(f.Payload)
		}
		if got.String() != body {
			t.Error("another message came out")
		}
	})
}
