package vhost

import (
	"context"
	"encoding/binary"
	"errors"
	flags "flag"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

var (
	crashTime = flags.Duration("crash.time", 20*time.Second, "how long TestCrash goes on")
	crashSeed = flags.Uint64("crash.seed", 0, "where TestCrash begins; 0 is somewhere")
)

// TestCrash does this and that with exchanges, queues and delayed messages, on a disk that fails now and then and in a
// machine that crashes, and holds what is there after each crash against what must be:
//
//   - a persistent message that was confirmed, and that nothing has ended, is in one place, and in one only;
//   - what has durably ended does not come back;
//   - nothing is there that was never published, or twice;
//   - nothing comes before its time, and what was due is there;
//   - what was delivered before says so, with the counts it had, and the history of a dead letter is that of its way.
//
// For hours: go test ./internal/vhost -run TestCrash -crash.time 3h -timeout 4h
func TestCrash(t *testing.T) {
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	end := time.Now().Add(*crashTime)
	rounds, steps := 0, 0
	for ; rounds == 0 || time.Now().Before(end) && !t.Failed(); rounds++ {
		steps += crashRound(t, seed+uint64(rounds))
	}
	t.Logf("%d rounds of %d steps in all, from -crash.seed %d on", rounds, steps, seed)
}

func crashRound(t *testing.T, seed uint64) (steps int) {
	c := &crashable{
		T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), disk: vfs.NewCrashableMem(),
		at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), messages: map[uint64]*traced{},
	}
	c.start()
	c.topology()
	for steps = 0; steps < 400 && !t.Failed(); steps++ {
		c.step()
	}
	c.crash()
	c.stop()
	return steps
}

type crashable struct {
	*testing.T
	seed   uint64
	random *rand.Rand
	disk   *vfs.MemFS
	fault  atomic.Pointer[error]
	at     time.Time
	clock  *clock.Virtual
	store  *store.Store
	hosts  *Hosts
	host   *Host
	held   []queue.Delivery
	unsure []learned // until the next sync

	mu       sync.Mutex
	last     uint64
	messages map[uint64]*traced
}

// crashQueues dead-letter from one to the next; only the last ends a message.
var crashQueues = []struct {
	name      string
	arguments wire.Table
}{
	{"ttl", wire.Table{{Name: "x-message-ttl", Value: int32(2000)}, {Name: "x-dead-letter-exchange", Value: ""}, {Name: "x-dead-letter-routing-key", Value: "work"}}},
	{"quorum", wire.Table{{Name: "x-queue-type", Value: "quorum"}, {Name: "x-delivery-limit", Value: int32(crashDeliveryLimit)}, {Name: "x-dead-letter-exchange", Value: ""}, {Name: "x-dead-letter-routing-key", Value: "dead"}}},
	{"work", wire.Table{{Name: "x-max-priority", Value: int32(2)}, {Name: "x-max-length", Value: int32(8)}, {Name: "x-dead-letter-exchange", Value: ""}, {Name: "x-dead-letter-routing-key", Value: "dead"}}},
	{"dead", wire.Table{{Name: "x-dead-letter-exchange", Value: ""}, {Name: "x-dead-letter-routing-key", Value: "grave"}}},
	{"grave", nil},
}

const (
	junkQueue          = "junk"
	crashDeliveryLimit = 3
)

func (c *crashable) start() {
	c.clock = clock.NewVirtual(c.at)
	broken := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if err := c.fault.Load(); err != nil && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpLock {
			return *err
		}
		return nil
	})
	c.store, c.hosts = c.open(errorfs.Wrap(c.disk, broken), c.clock)
	c.host = c.hosts.Host(Default)
}

func (c *crashable) open(files vfs.FS, at clock.Clock) (*store.Store, *Hosts) {
	c.Helper()
	s, err := store.Open("data", store.Options{FS: files})
	if err != nil {
		c.Fatalf("seed %d: %v", c.seed, err)
	}
	hosts, err := Open(Options{Store: s, Clock: at, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.Fatalf("seed %d: %v", c.seed, err)
	}
	hosts.Start()
	return s, hosts
}

func (c *crashable) stop() {
	c.fault.Store(nil)
	if err := c.store.Close(); err != nil {
		c.Errorf("seed %d: close: %v", c.seed, err)
	}
	c.hosts.Close()
}

func (c *crashable) topology() {
	for _, q := range crashQueues {
		if _, err := c.host.DeclareQueue(c.Context(), nil, QueueDeclare{Name: q.name, Durable: true, Arguments: q.arguments}); err != nil {
			c.Fatal(err)
		}
	}
	err := c.host.DeclareExchange(c.Context(), ExchangeDeclare{Name: "later", Type: "x-delayed-message", Durable: true,
		Arguments: wire.Table{{Name: "x-delayed-type", Value: "fanout"}}})
	if err != nil {
		c.Fatal(err)
	}
	if err := c.host.BindQueue(c.Context(), nil, Bind{Source: "later", Destination: "work"}); err != nil {
		c.Fatal(err)
	}
}

func (c *crashable) step() {
	switch c.random.IntN(40) {
	default:
		c.publish()
	case 10, 11, 12, 13, 14, 15:
		c.get()
	case 16, 17, 18, 19, 20, 21:
		c.settle()
	case 22, 23, 24:
		c.at = c.at.Add(time.Duration(c.random.IntN(3000)) * time.Millisecond)
		c.clock.Advance(c.at.Sub(c.clock.Now()))
	case 25, 26, 27:
		c.sync()
	case 28:
		c.clearJunk()
	case 29:
		err := error([]syscall.Errno{syscall.EIO, syscall.ENOSPC}[c.random.IntN(2)])
		c.fault.Store(&err)
	case 30, 31, 32:
		c.fault.Store(nil)
	case 33:
		if c.random.IntN(2) == 0 {
			c.crash()
		}
	}
}

// Committed is told of a message that was published.
func (c *crashable) Committed(tag uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.messages[tag]; m != nil && err == nil {
		m.confirmed = true
	}
}

func (c *crashable) publish() {
	targets := []string{"ttl", "quorum", "work", "dead", "grave", junkQueue, "later"}
	exchange, key := "", targets[c.random.IntN(len(targets))]
	record := &traced{junk: key == junkQueue, target: key, due: c.at, lifetime: message.NoExpiration, rejected: map[string]bool{}, stays: map[string]*stay{}}
	p := wire.Properties{DeliveryMode: uint8(1 + c.random.IntN(2)), Flags: wire.FlagDeliveryMode}
	if key == "later" {
		exchange = key
		delay := c.random.IntN(10_000)
		record.target, record.due = "work", c.at.Add(time.Duration(delay)*time.Millisecond)
		p.Headers = wire.Table{{Name: "x-delay", Value: int32(delay)}}
		p.Flags |= wire.FlagHeaders
	}
	if key != "grave" && key != junkQueue && c.random.IntN(4) == 0 {
		lifetime := c.random.IntN(3000)
		record.lifetime = time.Duration(lifetime) * time.Millisecond
		p.Expiration = strconv.Itoa(lifetime)
		p.Flags |= wire.FlagExpiration
	}
	if c.random.IntN(3) == 0 {
		p.Priority = uint8(c.random.IntN(3))
		p.Flags |= wire.FlagPriority
	}
	c.mu.Lock()
	c.last++
	number := c.last
	record.persistent = p.DeliveryMode == 2
	c.messages[number] = record
	c.mu.Unlock()
	body := append(binary.BigEndian.AppendUint64(nil, number), make([]byte, c.random.IntN(2000))...)
	m, err := message.New(exchange, key, p.AppendTo(nil), body)
	if err != nil {
		c.Fatal(err)
	}
	outcome, err := c.host.Publish(m, c, number)
	if err != nil {
		c.Fatalf("seed %d: publish to %s: %v", c.seed, key, err)
	}
	if outcome != Routed {
		c.mu.Lock()
		delete(c.messages, number)
		c.mu.Unlock()
	}
}

func number(m *message.Message) uint64 { return binary.BigEndian.Uint64(m.Body) }

func (c *crashable) get() {
	name := crashQueues[c.random.IntN(len(crashQueues))].name
	noAck := c.random.IntN(4) == 0
	d, ok, err := c.host.Get(nil, name, &queue.Consumer{NoAck: noAck})
	if err != nil {
		c.Fatalf("seed %d: get from %s: %v", c.seed, name, err)
	}
	if !ok {
		return
	}
	m := c.messages[number(d.Message)]
	if err := m.fault(d, c.at); err != nil {
		c.Errorf("seed %d: message %d comes from %s: %v", c.seed, number(d.Message), name, err)
	}
	if noAck {
		c.ends(d.Message)
		return
	}
	c.held = append(c.held, d)
	c.unsure = append(c.unsure, learned{m.stay(name), d.Counts})
}

func (c *crashable) ends(m *message.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if traced := c.messages[number(m)]; traced != nil {
		traced.ending = true
	}
}

func (c *crashable) settle() {
	if len(c.held) == 0 {
		return
	}
	i := c.random.IntN(len(c.held))
	d := c.held[i]
	c.held = append(c.held[:i], c.held[i+1:]...)
	m := c.messages[number(d.Message)]
	tx := c.host.Begin()
	switch c.random.IntN(4) {
	case 0:
		failed := c.random.IntN(2) == 0
		if d.Queue.Name() == "quorum" {
			counts := d.Counts
			counts.Returns++
			if failed {
				counts.Failures++
			}
			s := m.stay(d.Queue.Name())
			s.most.Returns, s.most.Failures = max(s.most.Returns, counts.Returns), max(s.most.Failures, counts.Failures)
			c.unsure = append(c.unsure, learned{s, counts})
		}
		d.Queue.Requeue(tx, failed, d.Entry)
	case 1:
		if d.Queue.Name() == "grave" {
			c.ends(d.Message)
		}
		m.rejected[d.Queue.Name()] = true
		d.Queue.Reject(tx, true, d.Entry)
	default:
		c.ends(d.Message)
		d.Queue.Ack(tx, d.Entry)
	}
	tx.End()
	d.Queue.Settle()
}

// sync waits until all that was done is durable, if the disk takes it.
func (c *crashable) sync() {
	c.mu.Lock()
	var ending []*traced
	for _, m := range c.messages {
		if m.ending {
			ending = append(ending, m)
		}
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	err := c.store.Begin().Wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		c.Fatalf("seed %d: the store neither writes nor says why", c.seed)
	}
	if err != nil {
		return
	}
	for _, m := range ending {
		m.gone = true
	}
	for _, l := range c.unsure {
		l.delivered = true
		l.least.Returns, l.least.Failures = max(l.least.Returns, l.counts.Returns), max(l.least.Failures, l.counts.Failures)
	}
	c.unsure = nil
}

// clearJunk deletes the queue junk, or purges it, or makes it.
func (c *crashable) clearJunk() {
	if c.fault.Load() != nil {
		return
	}
	var err error
	switch {
	case !c.host.HasQueue(junkQueue):
		_, err = c.host.DeclareQueue(c.Context(), nil, QueueDeclare{Name: junkQueue, Durable: true})
	case c.random.IntN(2) == 0:
		_, err = c.host.PurgeQueue(c.Context(), nil, junkQueue)
		c.junkEnds(err)
	default:
		_, err = c.host.DeleteQueue(c.Context(), nil, QueueDelete{Name: junkQueue})
		c.junkEnds(err)
	}
	if err != nil && c.store.Err() == nil {
		c.Logf("seed %d: %v", c.seed, err)
	}
}

func (c *crashable) junkEnds(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.messages {
		if m.junk {
			m.ending, m.gone = true, m.gone || err == nil
		}
	}
}

// crash goes on with what a crash of the machine leaves, and compares that with what must be there.
func (c *crashable) crash() {
	survive := []int{0, 40, 100}[c.random.IntN(3)]
	c.mu.Lock()
	left := c.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: survive, RNG: rand.New(rand.NewPCG(c.seed, c.last))})
	expected := map[uint64]traced{}
	for n, m := range c.messages {
		expected[n] = *m
	}
	c.mu.Unlock()
	c.stop()
	c.disk = left
	found := c.drain(left.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: c.random}), expected)
	for n, m := range expected {
		switch times := found[n]; {
		case times > 1:
			c.Errorf("seed %d: message %d is there %d times: %+v", c.seed, n, times, m)
		case times == 0 && m.confirmed && m.persistent && !m.ending:
			c.Errorf("seed %d: message %d was confirmed and is lost", c.seed, n)
		case times == 1 && m.gone:
			c.Errorf("seed %d: message %d had ended and is back: %+v", c.seed, n, m)
		}
	}
	c.mu.Lock()
	c.messages = map[uint64]*traced{}
	for n := range found {
		if m, known := expected[n]; known {
			m.confirmed, m.ending = true, false
			c.messages[n] = &m
		}
	}
	c.mu.Unlock()
	c.unsure = nil
	c.held = nil
	c.start()
}

// drain opens a copy of the disk, looks at what is in all queues now and after a minute, and counts it.
func (c *crashable) drain(disk *vfs.MemFS, expected map[uint64]traced) map[uint64]int {
	c.Helper()
	at := clock.NewVirtual(c.at)
	s, hosts := c.open(disk, at)
	defer func() {
		if err := s.Close(); err != nil {
			c.Errorf("seed %d: close: %v", c.seed, err)
		}
		hosts.Close()
	}()
	host := hosts.Host(Default)
	found := map[uint64]int{}
	take := func(queues ...string) {
		for _, name := range queues {
			for _, d := range c.takeAll(host, name) {
				n := number(d.Message)
				found[n]++
				m, known := expected[n]
				if !known {
					c.Errorf("seed %d: message %d is there, which nobody has published, or had ended before an earlier crash", c.seed, n)
				} else if err := m.fault(d, at.Now()); err != nil {
					c.Errorf("seed %d: message %d is in %s: %v", c.seed, n, name, err)
				}
			}
		}
	}
	take("quorum", "work", "dead", "grave", junkQueue)
	waiting := 0
	for _, p := range host.allPending() {
		waiting += p.Len()
	}
	at.Advance(time.Minute)
	take("ttl", "quorum", "work", "dead", "grave", junkQueue)
	for n := range found {
		if m := expected[n]; m.due.After(c.at) {
			waiting--
		}
	}
	if waiting != 0 {
		c.Errorf("seed %d: %d more messages were delayed than have come", c.seed, waiting)
	}
	for _, p := range host.allPending() {
		if n := p.Len(); n > 0 {
			c.Errorf("seed %d: %d are still delayed", c.seed, n)
		}
	}
	return found
}

// takeAll takes all messages of a queue.
func (c *crashable) takeAll(host *Host, name string) (all []queue.Delivery) {
	if name != junkQueue && !host.HasQueue(name) {
		c.Errorf("seed %d: the queue %s is lost", c.seed, name)
	}
	for host.HasQueue(name) {
		d, ok, err := host.Get(nil, name, &queue.Consumer{NoAck: true})
		if err != nil {
			c.Fatalf("seed %d: %v", c.seed, err)
		}
		if !ok {
			break
		}
		all = append(all, d)
	}
	return all
}
