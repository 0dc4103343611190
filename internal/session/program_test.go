package session

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// program turns octets into what two clients do: mostly valid methods on a few channels,
// queues and exchanges, now and then something broken.
type program struct {
	octets []byte
	e      *env
	peers  [2]*scripted
}

// next is the next octet, modulo n.
func (p *program) next(n int) int {
	if len(p.octets) == 0 {
		return 0
	}
	b := int(p.octets[0])
	p.octets = p.octets[1:]
	return b % n
}

func (p *program) flag() bool { return p.next(2) == 1 }

// rarely is true one time in sixteen.
func (p *program) rarely() bool { return p.next(16) == 15 }

// scripted is a client that writes what it is told, and reads or does not.
type scripted struct {
	conn   net.Conn      // nil when it is not connected
	gate   chan struct{} // holds what the reading side must have
	paused bool
	done   chan struct{}
}

func (p *program) connect(n int) {
	here, there := net.Pipe()
	s := &scripted{conn: here, gate: make(chan struct{}, 1), done: make(chan struct{})}
	s.gate <- struct{}{}
	p.peers[n] = s
	go func() { _ = p.e.server.Serve(there) }()
	go func() {
		defer close(s.done)
		buf := make([]byte, 64<<10)
		for {
			<-s.gate
			s.gate <- struct{}{}
			if _, err := here.Read(buf); err != nil {
				return
			}
		}
	}()
	b := conversation()
	for n := uint16(2); n <= 3; n++ {
		b = wire.AppendMethod(b, n, &wire.ChannelOpen{})
	}
	s.write(b)
}

func (s *scripted) write(b []byte) {
	if s.conn == nil {
		return
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := s.conn.Write(b); err != nil {
		s.hangUp()
	}
}

// pause stops its reading, resume lets it go on.
func (s *scripted) pause() {
	if !s.paused {
		<-s.gate
		s.paused = true
	}
}

func (s *scripted) resume() {
	if s.paused {
		s.gate <- struct{}{}
		s.paused = false
	}
}

func (s *scripted) hangUp() {
	if s.conn == nil {
		return
	}
	s.conn.Close()
	s.conn = nil
	s.resume()
	<-s.done
}

func (p *program) queue() string {
	return []string{"q0", "q1", "q2", "q3", "", replyQueue, "amq.gen-x", "nowhere"}[p.next(8)]
}

func (p *program) exchange() string {
	return []string{"x0", "x1", "", "amq.topic", "amq.headers", "nowhere"}[p.next(6)]
}

func (p *program) key() string {
	return []string{"a", "a.b", "#", "a.*", "*.#", "q0", "q1", "2"}[p.next(8)]
}

func (p *program) tag() string { return []string{"", "c0", "c1"}[p.next(3)] }

// value is one value of a table.
func (p *program) value() any {
	switch p.next(10) {
	case 0:
		return []string{"classic", "quorum", "drop-head", "reject-publish", "reject-publish-dlx", "at-least-once", "any", "topic"}[p.next(8)]
	case 1:
		return []string{"q0", "q1", "x0", "x1", "a"}[p.next(5)]
	case 2:
		return []any{"q0", "q1", nil, int64(p.next(256))}[:p.next(5)]
	case 3:
		return wire.Table{{Name: "n", Value: int8(p.next(256))}}
	case 4:
		return nil
	case 5:
		return p.flag()
	case 6:
		return []byte("x")
	case 7:
		return int64(p.next(256)) - 3
	}
	return int32(p.next(256))
}

var programArguments = []string{
	"x-queue-type", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-overflow",
	"x-max-priority", "x-delivery-limit", "x-single-active-consumer", "x-dead-letter-strategy", "x-match", "alternate-exchange", "x-delayed-type", "x-priority",
	"hash-header", "hash-property", "CC", "BCC", "x-delay", "a",
}

func (p *program) table() (t wire.Table) {
	for range p.next(4) {
		t = append(t, wire.Field{Name: programArguments[p.next(len(programArguments))], Value: p.value()})
	}
	return t
}

func (p *program) properties() wire.Properties {
	return wire.Properties{
		Flags:        uint16(p.next(256))<<8 | uint16(p.next(256))&0xfc,
		DeliveryMode: uint8(p.next(3)), Priority: uint8(p.next(256)), Expiration: []string{"0", "1", "1000", "x", ""}[p.next(5)],
		ReplyTo: []string{"", replyQueue, replyPrefix + "x"}[p.next(3)], UserID: []string{"guest", "bob"}[p.next(2)],
		CorrelationID: "c", MessageID: "m", ContentType: "t", Headers: p.table(),
	}
}

// kind is an exchange type.
func (p *program) kind() string {
	return []string{"direct", "fanout", "topic", "headers", "x-delayed-message", "x-consistent-hash", "x-random", "x-local-random", "x-recent-history", "none"}[p.next(10)]
}

// method is a method of a client, but for basic.publish.
func (p *program) method() wire.Method {
	switch p.next(28) {
	case 0, 1:
		return &wire.QueueDeclare{Queue: p.queue(), Passive: p.rarely(), Durable: !p.rarely(), Exclusive: p.rarely(), AutoDelete: p.rarely(), NoWait: p.rarely(), Arguments: p.table()}
	case 2:
		return &wire.ExchangeDeclare{Exchange: p.exchange(), Type: p.kind(), Durable: p.flag(), AutoDelete: p.rarely(), Internal: p.rarely(), Arguments: p.table()}
	case 3, 4:
		return &wire.QueueBind{Queue: p.queue(), Exchange: p.exchange(), RoutingKey: p.key(), Arguments: p.table()}
	case 5:
		return &wire.ExchangeBind{Destination: p.exchange(), Source: p.exchange(), RoutingKey: p.key(), Arguments: p.table()}
	case 6:
		return &wire.QueueUnbind{Queue: p.queue(), Exchange: p.exchange(), RoutingKey: p.key(), Arguments: p.table()}
	case 7:
		return &wire.ExchangeUnbind{Destination: p.exchange(), Source: p.exchange(), RoutingKey: p.key()}
	case 8, 9, 10:
		return &wire.BasicConsume{Queue: p.queue(), ConsumerTag: p.tag(), NoAck: p.flag(), Exclusive: p.rarely(), NoWait: p.rarely(), Arguments: p.table()}
	case 11:
		return &wire.BasicCancel{ConsumerTag: p.tag(), NoWait: p.flag()}
	case 12, 13:
		return &wire.BasicGet{Queue: p.queue(), NoAck: p.flag()}
	case 14, 15:
		return &wire.BasicAck{DeliveryTag: uint64(p.next(12)), Multiple: p.flag()}
	case 16:
		return &wire.BasicNack{DeliveryTag: uint64(p.next(12)), Multiple: p.flag(), Requeue: p.flag()}
	case 17:
		return &wire.BasicReject{DeliveryTag: uint64(p.next(12)), Requeue: p.flag()}
	case 18:
		return &wire.BasicRecover{Requeue: !p.rarely()}
	case 19:
		return &wire.BasicRecoverAsync{Requeue: true}
	case 20:
		return &wire.BasicQos{PrefetchCount: uint16(p.next(4)), Global: p.flag()}
	case 21:
		return &wire.TxSelect{}
	case 22:
		return &wire.TxCommit{}
	case 23:
		return &wire.TxRollback{}
	case 24:
		return &wire.ConfirmSelect{NoWait: p.flag()}
	case 25:
		return &wire.QueuePurge{Queue: p.queue(), NoWait: p.rarely()}
	case 26:
		if p.flag() {
			return &wire.ExchangeDelete{Exchange: p.exchange(), IfUnused: p.flag()}
		}
		return &wire.QueueDelete{Queue: p.queue(), IfUnused: p.flag(), IfEmpty: p.flag()}
	}
	return []wire.Method{
		&wire.ChannelOpen{}, &wire.ChannelClose{}, &wire.ChannelCloseOk{}, &wire.ChannelFlow{Active: true}, &wire.ChannelFlow{}, &wire.AccessRequest{},
		&wire.ConnectionClose{}, &wire.ConnectionUpdateSecret{NewSecret: "x"}, &wire.BasicDeliver{}, &wire.QueueDeclareOk{},
	}[p.next(10)]
}

// publication is basic.publish with its content, which may be of many frames or too short.
func (p *program) publication(channel uint16) []byte {
	m := &wire.BasicPublish{Exchange: []byte(p.exchange()), RoutingKey: []byte(p.key()), Mandatory: p.flag(), Immediate: p.next(256) == 255}
	body := make([]byte, []int{0, 1, 100, copyLimit + 1, frameMax, 3 * frameMax}[p.next(6)])
	b := wire.AppendMethod(nil, channel, m)
	promised := len(body)
	if p.rarely() {
		promised += p.next(256) - 3
	}
	b = wire.AppendHeader(b, channel, promised, p.properties().AppendTo(nil))
	return wire.AppendBody(b, channel, []uint32{100, 4096, frameMax}[p.next(3)], body)
}

// step does the next thing.
func (p *program) step() {
	n := p.next(2)
	s, channel := p.peers[n], uint16(1+p.next(3))
	var b []byte
	switch p.next(24) {
	case 0:
		time.Sleep([]time.Duration{time.Millisecond, 300 * time.Millisecond, 20 * time.Second}[p.next(3)])
		return
	case 1:
		if p.rarely() || s.conn == nil {
			s.hangUp()
			p.connect(n)
		}
		return
	case 2:
		if p.flag() && s.conn != nil {
			s.pause()
		} else {
			s.resume()
		}
		return
	case 3:
		b = wire.AppendHeartbeat(nil)
	case 4, 5, 6, 7, 8, 9, 10, 11:
		for range 1 + p.next(8) {
			b = append(b, p.publication(channel)...)
		}
	default:
		m := p.method()
		if m.ID().Class() == 10 {
			channel = 0
		}
		b = wire.AppendMethod(b, channel, m)
	}
	if p.rarely() && len(b) > 0 {
		switch p.next(3) {
		case 0:
			b[p.next(len(b))] ^= byte(1 << p.next(8))
		case 1:
			b = b[:p.next(len(b))]
		case 2:
			b = append(b, byte(p.next(256)))
		}
	}
	s.write(b)
}

// run runs the program and checks that nothing of it is left.
func (p *program) run(t *testing.T) {
	p.connect(0)
	p.connect(1)
	for steps := 0; len(p.octets) > 0 && steps < 500; steps++ {
		p.step()
		if n := p.e.pending(); n > 4*replyLimit {
			t.Fatalf("%d octets wait to be written to two clients", n)
		}
	}
	for _, s := range p.peers {
		s.hangUp()
	}
	synctest.Wait()
	time.Sleep(drainTimeout + closingTimeout)
	p.e.server.mu.Lock()
	left := len(p.e.server.conns)
	p.e.server.mu.Unlock()
	if left > 0 {
		t.Fatalf("%d connections do not end", left)
	}
	for _, q := range p.e.host.Queues() {
		if c := q.Counts(); c.Unacked != 0 || c.Consumers != 0 || q.Owner() != nil {
			t.Errorf("queue %q has %d unacked messages, %d consumers and the owner %v of connections that are gone", q.Name(), c.Unacked, c.Consumers, q.Owner())
		}
	}
}

// FuzzProgram runs programs against a server on virtual time: no panic, no hang, and
// neither goroutines nor messages of connections that are gone.
func FuzzProgram(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 16 {
		seed := make([]byte, 400)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		bubble(t, func(t *testing.T, e *env) {
			(&program{octets: octets, e: e}).run(t)
		})
	})
}

// Random programs are run without the fuzzer too.
func TestPrograms(t *testing.T) {
	programs := 30
	if testing.Short() {
		programs = 10
	}
	for seed := range programs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, uint64(seed)))
			octets := make([]byte, 2000)
			for i := range octets {
				octets[i] = byte(r.Uint32())
			}
			bubble(t, func(t *testing.T, e *env) { (&program{octets: octets, e: e}).run(t) })
		})
	}
}
