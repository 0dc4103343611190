package broker_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var (
	killTime = flag.Duration("kill.time", 5*time.Second, "how long TestKillProcess goes on")
	killSeed = flag.Uint64("kill.seed", 0, "what it does by chance; 0 is something else each time")
)

// TestKillProcess kills dormouse serve again and again while clients do all they can with it, and holds what they get then
// against what they were told before:
//
//   - what was confirmed, and nobody has ended, is there, in one place only; a transaction is there as a whole or not at all;
//   - what has certainly ended does not come back;
//   - nothing comes before its time;
//   - what comes again says so, with counts that are no lower than they were, and a dead letter says why it died;
//   - an offset of a stream means the same message for ever;
//   - what was declared is there, what was deleted is not.
//
// What a client has said is certain once something that it has published after that on the same channel is confirmed. Every few lives
// there is an audit: nothing new is published until each message is accounted for.
//
// For hours: go test ./broker -run TestKillProcess -kill.time 3h -timeout 4h
func TestKillProcess(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	k := &killing{T: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, 0)), ledger: newLedger(), declared: map[string]bool{}}
	k.build()
	k.newStream()
	audits := 0
	for end := time.Now().Add(*killTime); ; {
		for range 3 + k.random.IntN(4) {
			k.killAtStart()
			k.liveAndDie()
		}
		k.audit()
		audits++
		for _, fault := range k.ledger.faults {
			t.Errorf("-kill.seed %d: %s", seed, fault)
		}
		if t.Failed() || time.Now().After(end) {
			break
		}
	}
	l := k.ledger
	t.Logf("%d kills, %d of them at the start, %d audits: %d messages confirmed, %d deliveries, %d of them again; -kill.seed %d",
		l.life+k.early, k.early, audits, l.confirmed, l.deliveries, l.returns, seed)
}

type killing struct {
	*testing.T
	program string
	dir     string
	random  *rand.Rand
	ledger  *ledger
	early   int // kills before it was ready

	stream  *streamLedger
	streams int

	mu       sync.Mutex
	declared map[string]bool // whether it exists, or was deleted
}

func (k *killing) newStream() {
	k.streams++
	k.stream = newStreamLedger(k.ledger, "stream "+strconv.Itoa(k.streams))
}

func (k *killing) build() {
	k.program = filepath.Join(k.TempDir(), "dormouse")
	if runtime.GOOS == "windows" {
		k.program += ".exe"
	}
	if out, err := exec.CommandContext(k.Context(), "go", "build", "-o", k.program, "../cmd/dormouse").CombinedOutput(); err != nil {
		k.Fatalf("go build: %v\n%s", err, out)
	}
}

// process is one life of the broker.
type process struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
}

func (k *killing) start() *process {
	p := &process{}
	p.cmd = exec.CommandContext(k.Context(), k.program, "serve", "--data", k.dir, "--listen", "127.0.0.1:0", "--json", "--log-level", "error", "--memory-limit", "none")
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		k.Fatal(err)
	}
	p.stdout = bufio.NewReader(out)
	return p
}

// kill kills p, which has had nothing to complain of.
func (k *killing) kill(p *process) {
	err := errors.Join(p.cmd.Process.Kill(), ignoreExit(p.cmd.Wait()))
	if err != nil || p.stderr.Len() > 0 {
		k.Errorf("life %d: %v: the broker says\n%s", k.ledger.life, err, &p.stderr)
	}
}

func ignoreExit(err error) error {
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		return nil
	}
	return err
}

// killAtStart kills the broker while it recovers, at times.
func (k *killing) killAtStart() {
	if k.random.IntN(3) > 0 {
		return
	}
	k.early++
	p := k.start()
	<-time.After(time.Duration(k.random.IntN(100)) * time.Millisecond)
	k.kill(p)
}

// dial waits until the broker is ready and returns how to connect to it.
func (k *killing) dial(p *process) func() (*amqp.Connection, error) {
	line, err := p.stdout.ReadBytes('\n')
	var said struct{ URL string }
	if err == nil {
		err = json.Unmarshal(line, &said)
	}
	if err != nil {
		_ = p.cmd.Wait()
		k.Fatalf("life %d: the broker does not become ready: %v\n%s", k.ledger.life, err, &p.stderr)
	}
	return func() (*amqp.Connection, error) { return amqp.Dial(said.URL) }
}

// queues are where the clients' messages go.
var killQueues = []struct {
	name      string
	consumed  bool
	arguments amqp.Table
}{
	{"work", true, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}},
	{"quorum", true, amqp.Table{"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}},
	{"ttl", false, amqp.Table{"x-message-ttl": int32(killTTL.Milliseconds()), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}},
	{"ttl-quorum", false, amqp.Table{
		"x-queue-type": "quorum", "x-message-ttl": int32(killTTL.Milliseconds()), "x-overflow": "reject-publish",
		"x-dead-letter-strategy": "at-least-once", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
	}},
	{"due", true, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}},
	{"dead", true, amqp.Table{"x-queue-type": "quorum"}},
	{"pull", false, nil},
	{"fence", false, amqp.Table{"x-max-length": int32(1)}},
}

const killTTL = 400 * time.Millisecond

// topology declares all, which exists already unless the broker died before it had answered.
func (k *killing) topology(ch *amqp.Channel) error {
	for _, q := range killQueues {
		if _, err := ch.QueueDeclare(q.name, true, false, false, false, q.arguments); err != nil {
			return err
		}
	}
	if err := ch.ExchangeDeclare("later", "x-delayed-message", true, false, false, false, amqp.Table{"x-delayed-type": "fanout"}); err != nil {
		return err
	}
	return errors.Join(ch.QueueBind("due", "", "later", false, nil), k.stream.declare(ch))
}

// open is one connection with a channel that confirms.
func open(dial func() (*amqp.Connection, error)) (*amqp.Connection, *amqp.Channel, error) {
	c, err := dial()
	if err != nil {
		return nil, nil, err
	}
	ch, err := c.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, ch, nil
}

// live starts the broker and its clients. They go on until it is killed.
func (k *killing) live(audit bool) (p *process, ch *amqp.Channel, clients *sync.WaitGroup) {
	p = k.start()
	dial := k.dial(p)
	life := k.ledger.begin()
	c, ch, err := open(dial)
	if err == nil {
		err = k.topology(ch)
	}
	if err == nil {
		err = k.checkDeclared(c)
	}
	if err != nil {
		k.Fatalf("life %d: %v", life, err)
	}
	clients = &sync.WaitGroup{}
	run := func(f func(*killClient) error) {
		random := rand.New(rand.NewPCG(k.random.Uint64(), 0))
		clients.Go(func() {
			c, ch, err := open(dial)
			if err != nil {
				return // it is killed
			}
			defer c.Close()
			_ = f(&killClient{killing: k, life: life, audit: audit, random: random, c: c, ch: ch}) // until it is killed
		})
	}
	for _, q := range killQueues {
		if q.consumed || audit && q.name != "fence" {
			run(func(c *killClient) error { return c.consume(q.name) })
		}
	}
	run(func(c *killClient) error { return k.stream.consume(c.ch) })
	if audit {
		return p, ch, clients
	}
	for _, way := range []string{"work", "quorum", "ttl", "ttl-quorum", "later"} {
		run(func(c *killClient) error { return c.publish(way) })
	}
	run(func(c *killClient) error { return k.stream.publish(k.Context(), c.ch, c.quota()) })
	run((*killClient).transactions)
	run((*killClient).declare)
	return p, ch, clients
}

func (k *killing) liveAndDie() {
	p, _, clients := k.live(false)
	<-time.After(time.Duration(k.random.IntN(1200)) * time.Millisecond)
	k.kill(p)
	clients.Wait()
}

// audit takes all messages out of all queues, and accounts for them.
func (k *killing) audit() {
	p, ch, clients := k.live(true)
	deadline := time.Now().Add(time.Minute)
	for !k.ledger.complete() || k.stream.missing() != "" || !k.empty(ch) {
		if time.Now().After(deadline) {
			k.Errorf("the audit is not at its end after a minute; missing: %s", k.stream.missing())
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if _, err := ch.QueueDelete(k.stream.name, false, false, false); err != nil {
		k.Error(err)
	}
	k.mu.Lock()
	for name, exists := range k.declared {
		if err := errors.Join(deleteMade(ch, name)); exists && err != nil {
			k.Error(err)
		}
	}
	clear(k.declared)
	k.mu.Unlock()
	k.kill(p)
	clients.Wait()
	k.ledger.close()
	k.newStream()
}

func (k *killing) empty(ch *amqp.Channel) bool {
	for _, q := range killQueues {
		if q.name == "fence" {
			continue
		}
		state, err := ch.QueueDeclarePassive(q.name, true, false, false, false, nil)
		if err != nil {
			k.Fatal(err)
		}
		if state.Messages > 0 {
			return false
		}
	}
	return true
}
