package broker_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/wire"
)

// hostile is a client that breaks rules, or keeps them in a way that is meant to harm.
type hostile struct {
	*testing.T
	address string
	times   int // how much of it; DORMOUSE_TEST_HOSTILE=full asks for all
}

func (h *hostile) dial() net.Conn {
	c, err := net.Dial("tcp", h.address)
	if err != nil {
		h.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	return c
}

// open is an open connection with channels 1 to n. What the broker answers is not read yet.
func (h *hostile) open(n int) net.Conn {
	c := h.dial()
	b := []byte(wire.ProtocolHeader)
	b = wire.AppendMethod(b, 0, &wire.ConnectionStartOk{Mechanism: "PLAIN", Response: "\x00guest\x00guest", Locale: "en_US"})
	b = wire.AppendMethod(b, 0, &wire.ConnectionTuneOk{ChannelMax: 2047, FrameMax: 131072})
	b = wire.AppendMethod(b, 0, &wire.ConnectionOpen{VirtualHost: "/"})
	for i := range n {
		b = wire.AppendMethod(b, uint16(i+1), &wire.ChannelOpen{})
	}
	h.write(c, b)
	return c
}

func (h *hostile) write(c net.Conn, b []byte) { _, _ = c.Write(b) }

// closed reads until the broker closes the connection or says that it is about to.
func (h *hostile) closed(c net.Conn) {
	h.Helper()
	defer c.Close()
	for frames := wire.NewReader(c, 1<<20); ; {
		f, err := frames.Next()
		if err != nil {
			if os.IsTimeout(err) {
				h.Errorf("the broker does not close the connection: %v", err)
			}
			return
		}
		if id, _, _ := wire.SplitMethod(f.Payload); f.Type == wire.FrameMethod && id == wire.IDConnectionClose {
			return
		}
	}
}

func content(channel uint16, key string, promised uint64, body []byte) []byte {
	b := wire.AppendMethod(nil, channel, &wire.BasicPublish{RoutingKey: []byte(key), Mandatory: true})
	head := wire.AppendHeader(nil, channel, 0, wire.Properties{}.AppendTo(nil))
	binary.BigEndian.PutUint64(head[11:], promised)
	return wire.AppendBody(append(b, head...), channel, 131072, body)
}

var hostilities = map[string]func(h *hostile){
	"garbage": func(h *hostile) {
		for i := range h.times {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			b := make([]byte, 1+r.IntN(500))
			for j := range b {
				b[j] = byte(r.Uint32())
			}
			c := h.dial()
			h.write(c, append([]byte("AMQP\x00\x00\x09\x01")[:r.IntN(9)], b...))
			_ = c.(*net.TCPConn).CloseWrite()
			h.closed(c)
		}
	},
	"half a frame": func(h *hostile) {
		for i := range h.times {
			c := h.open(1)
			frame := content(1, "q", 100, make([]byte, 100))
			h.write(c, frame[:1+i%(len(frame)-1)])
			c.Close()
		}
	},
	"a frame of 2 GiB": func(h *hostile) {
		for range h.times {
			c := h.open(1)
			h.write(c, wire.AppendFrameHead(nil, wire.FrameBody, 1, 2<<30))
			_ = c.(*net.TCPConn).CloseWrite()
			h.closed(c)
		}
	},
	"65,535 channels": func(h *hostile) { h.closed(h.open(65535)) },
	"bindings by the thousand": func(h *hostile) {
		c := h.open(1)
		go h.closed(c)
		h.write(c, wire.AppendMethod(nil, 1, &wire.QueueDeclare{Queue: "bound", Exclusive: true, NoWait: true}))
		for i := range h.times * 50 {
			h.write(c, wire.AppendMethod(nil, 1, &wire.QueueBind{Queue: "bound", Exchange: "amq.topic", RoutingKey: fmt.Sprintf("*.%d.#", i), NoWait: true}))
		}
		c.Close()
	},
	"tables in tables": func(h *hostile) {
		table := []byte{}
		for len(table) < 60_000 {
			inner := binary.BigEndian.AppendUint32([]byte{1, 'a', 'F'}, uint32(len(table)))
			table = append(inner, table...)
		}
		for range h.times {
			// queue.declare: ticket, name, bits, arguments
			payload := append([]byte{0, 50, 0, 10, 0, 0, 1, 'q', 2}, binary.BigEndian.AppendUint32(nil, uint32(len(table)))...)
			payload = append(payload, table...)
			c := h.open(1)
			h.write(c, append(append(wire.AppendFrameHead(nil, wire.FrameMethod, 1, len(payload)), payload...), wire.FrameEnd))
			_ = c.(*net.TCPConn).CloseWrite()
			h.closed(c)
		}
	},
	"a content of 2^63 bytes": func(h *hostile) {
		for range h.times {
			c := h.open(1)
			h.write(c, content(1, "q", 1<<63, nil))
			_ = c.(*net.TCPConn).CloseWrite()
			h.closed(c)
		}
	},
	"a content unfinished on each channel": func(h *hostile) {
		c := h.open(2047)
		part := make([]byte, 1<<20)
		go func() {
			for n := range 2047 {
				if _, err := c.Write(content(uint16(n+1), "q", 2<<20, part)); err != nil {
					return
				}
			}
		}()
		h.closed(c)
	},
	"a publisher that never reads": func(h *hostile) {
		c := h.open(1)
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		for i := 0; ; i++ {
			if _, err := c.Write(content(1, "nowhere", 10_000, make([]byte, 10_000))); err != nil {
				break
			}
		}
		c.Close()
	},
	"a consumer that never reads": func(h *hostile) {
		c := h.open(1)
		h.write(c, wire.AppendMethod(nil, 1, &wire.QueueDeclare{Queue: "unread", Exclusive: true, NoWait: true}))
		h.write(c, wire.AppendMethod(nil, 1, &wire.BasicConsume{Queue: "unread", NoWait: true}))
		for range h.times * 10 {
			h.write(c, content(1, "unread", 10_000, make([]byte, 10_000)))
		}
		c.Close()
	},
	"nothing at all": func(h *hostile) {
		for range h.times {
			c := h.dial()
			defer c.Close()
		}
		<-time.After(100 * time.Millisecond) // they do nothing, which takes time
	},
	"byte by byte": func(h *hostile) {
		var all sync.WaitGroup
		for range min(h.times, 50) {
			all.Go(func() {
				c := h.dial()
				defer c.Close()
				_ = c.(*net.TCPConn).SetNoDelay(true)
				for i := range len(wire.ProtocolHeader) {
					h.write(c, []byte{wire.ProtocolHeader[i]})
					<-time.After(time.Millisecond) // slow is the point
				}
			})
		}
		all.Wait()
	},
	"coming and going": func(h *hostile) {
		for i := range h.times * 2 {
			c := h.open(i % 5)
			if i%2 == 0 {
				_ = c.(*net.TCPConn).SetLinger(0) // a reset
			}
			c.Close()
		}
	},
}

// Whatever a client does, one beside it that behaves well goes on, and when the hostile one
// is gone nothing of it is left. DORMOUSE_TEST_HOSTILE=full does more of everything.
func TestHostileClients(t *testing.T) {
	times := 100
	if os.Getenv("DORMOUSE_TEST_HOSTILE") == "full" {
		times = 20_000
	}
	for name, attack := range hostilities {
		t.Run(name, func(t *testing.T) {
			b := serve(t, broker.Options{})
			stop := make(chan struct{})
			met := make(chan neighbour)
			go func() { met <- goOn(b, stop) }()
			before := measure()
			began := time.Now()
			attack(&hostile{T: t, address: b.Addr().String(), times: times})
			took := time.Since(began)
			peak := measure()
			after := settleDown(t, before)
			close(stop)
			n := <-met
			t.Logf("took %v; beside it %d round trips, the slowest %v; memory %d KiB before, %d KiB at the end of it, %d KiB after it",
				took.Round(time.Millisecond), n.trips, n.slowest.Round(100*time.Microsecond), before.heap>>10, peak.heap>>10, after.heap>>10)
			if n.err != nil {
				t.Errorf("the client beside it: %v", n.err)
			}
			if n.slowest > 5*time.Second {
				t.Errorf("the client beside it waited %v", n.slowest)
			}
		})
	}
}

// usage is what a broker takes of the machine.
type usage struct {
	goroutines, files int
	heap              int64
}

func measure() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd")
	return usage{runtime.NumGoroutine(), len(files), int64(m.HeapAlloc)}
}

// settleDown waits until the broker takes no more than before.
func settleDown(t *testing.T, before usage) usage {
	t.Helper()
	var u usage
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		u = measure()
		if u.goroutines <= before.goroutines+5 && u.files <= before.files+5 && u.heap <= before.heap+16<<20 {
			return u
		}
	}
	t.Errorf("left behind: %d goroutines after %d, %d files after %d, %d KiB after %d KiB",
		u.goroutines, before.goroutines, u.files, before.files, u.heap>>10, before.heap>>10)
	return u
}

// neighbour is how a client fared that behaves well.
type neighbour struct {
	trips   int
	slowest time.Duration
	err     error
}

// goOn publishes a message, waits for its confirm, and gets it, again and again.
func goOn(b *broker.Broker, stop <-chan struct{}) (n neighbour) {
	conn, err := amqp.Dial(b.URL())
	if err != nil {
		return neighbour{err: err}
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err == nil {
		_, err = ch.QueueDeclare("neighbour", true, false, false, false, nil)
	}
	for n.err = err; n.err == nil; n.trips++ {
		select {
		case <-stop:
			return n
		default:
		}
		began := time.Now()
		confirm, err := ch.PublishWithDeferredConfirm("", "neighbour", false, false, amqp.Publishing{Body: []byte("x")})
		if err != nil {
			n.err = err
			break
		}
		if !confirm.Wait() {
			n.err = fmt.Errorf("message %d was not confirmed", n.trips)
			break
		}
		if _, ok, err := ch.Get("neighbour", true); err != nil || !ok {
			n.err = fmt.Errorf("message %d: got %v, %w", n.trips, ok, err)
			break
		}
		n.slowest = max(n.slowest, time.Since(began))
	}
	return n
}
