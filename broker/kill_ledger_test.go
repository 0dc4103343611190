package broker_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ledger is what the clients of TestKillProcess were told, in all lives of the broker, and what must not be.
type ledger struct {
	mu      sync.Mutex
	life    int
	last    uint64 // number of the last message
	settled uint64 // messages up to here were all accounted for
	open    map[uint64]*letter
	groups  []*group
	facts   int       // that no fence has made certain yet
	latest  time.Time // when the last of the messages is due
	faults  []string

	confirmed, deliveries, returns int // in all
}

// letter is what is known of one message.
type letter struct {
	due       time.Time // zero, or what its delay or TTL ends at
	group     *group    // that has acknowledged it and may not be committed
	confirmed bool      // the publisher was told
	never     bool      // it was rolled back
	life      int       // in which it was published
	seen      bool      // it was certainly there: a queue delivers what may not be written yet
	ended     bool      // something was said that ends it
	gone      bool      // that is certain
	moved     string    // the queue that it has certainly come to
	stays     map[string]*stay
}

// stay is a message's time in one queue.
type stay struct {
	life      int   // of its last delivery
	out       bool  // it is with the client
	delivered bool  // that is certain
	acquired  int64 // headers of a quorum queue that are certain
	failures  int64
	rejected  bool
}

// group is a transaction that was not answered: all of it was done, or nothing.
type group struct {
	letters []uint64
	acked   bool // it acknowledges a message
	back    bool // which came back
}

// fact is what the client knows once what it has sent is certain to have been done.
type fact struct {
	number   uint64
	queue    string
	gone     bool
	acquired int64
	failures int64
}

func newLedger() *ledger { return &ledger{open: map[uint64]*letter{}} }

func (l *ledger) fault(format string, values ...any) {
	if len(l.faults) < 20 {
		l.faults = append(l.faults, fmt.Sprintf("life %d: ", l.life)+fmt.Sprintf(format, values...))
	}
}

// begin is the begin of the broker's next life.
func (l *ledger) begin() (life int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life++
	l.facts = 0
	return l.life
}

// post is a new message, which comes to where it can be consumed no earlier than after wait.
func (l *ledger) post(wait time.Duration) (number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	m := &letter{life: l.life, stays: map[string]*stay{}}
	if wait > 0 {
		m.due = time.Now().Add(wait)
		if m.due.After(l.latest) {
			l.latest = m.due
		}
	}
	l.open[l.last] = m
	return l.last
}

func (l *ledger) confirm(numbers ...uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range numbers {
		l.open[n].confirmed = true
		l.confirmed++
	}
}

func (l *ledger) rolledBack(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[number].never = true
}

// undecided is a transaction that was not answered, with the message that it acknowledges or 0.
func (l *ledger) undecided(letters []uint64, acked uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := &group{letters: letters, acked: acked != 0}
	l.groups = append(l.groups, g)
	if g.acked {
		l.open[acked].group = g
	}
}

func body(number uint64, filler int) []byte {
	return append(binary.BigEndian.AppendUint64(nil, number), make([]byte, filler)...)
}

func number(d *amqp.Delivery) uint64 { return binary.BigEndian.Uint64(d.Body) }

// delivered holds a delivery against what must be.
func (l *ledger) delivered(queue string, life int, d *amqp.Delivery) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deliveries++
	n := number(d)
	m := l.open[n]
	if m == nil {
		l.fault("message %d comes from %s; it had ended before the last audit, which was of all up to %d, or was never published", n, queue, l.settled)
		return
	}
	switch {
	case m.gone:
		l.fault("message %d has ended, and comes from %s", n, queue)
	case m.never:
		l.fault("message %d was rolled back, and comes from %s", n, queue)
	case m.moved != "" && m.moved != queue:
		l.fault("message %d was in %s already, and comes from %s", n, m.moved, queue)
	case (queue == "dead" || queue == "due") && now.Before(m.due.Add(-time.Millisecond)):
		l.fault("message %d comes from %s %v early", n, queue, m.due.Sub(now))
	}
	m.seen = m.seen || life > m.life
	if m.group != nil {
		m.group.back, m.group = true, nil
	}
	for name, s := range m.stays {
		if s.life == life && s.out {
			l.fault("message %d comes from %s while it is with the client from %s", n, queue, name)
		}
	}
	s := m.stays[queue]
	if s == nil {
		s = &stay{}
		m.stays[queue] = s
	}
	if s.delivered {
		l.returns++
		if !d.Redelivered {
			l.fault("message %d comes from %s again, and is not marked as redelivered", n, queue)
		}
	}
	if a, f := header(d, "x-acquired-count"), header(d, "x-delivery-count"); queue == "quorum" && (a < s.acquired || f < s.failures) {
		l.fault("message %d comes from %s with counts %d and %d; they were %d and %d", n, queue, a, f, s.acquired, s.failures)
	}
	s.life, s.out = life, true
	if queue == "dead" {
		l.checkDeath(n, m, d)
	}
}

// checkDeath: what is in the queue of dead letters says why.
func (l *ledger) checkDeath(n uint64, m *letter, d *amqp.Delivery) {
	deaths, _ := d.Headers["x-death"].([]any)
	if len(deaths) != 1 {
		l.fault("message %d has %d entries in x-death", n, len(deaths))
		return
	}
	death, _ := deaths[0].(amqp.Table)
	from, _ := death["queue"].(string)
	switch reason := death["reason"]; {
	case death["count"] != int64(1):
		l.fault("message %d has died %v times", n, death["count"])
	case reason == "expired" && (from == "ttl" || from == "ttl-quorum"):
	case reason == "rejected" && m.stays[from] != nil && m.stays[from].rejected:
	case reason == "delivery_limit" && from == "quorum":
	default:
		l.fault("message %d has died in %s, %s", n, from, reason)
	}
}

func header(d *amqp.Delivery, name string) int64 {
	n, _ := d.Headers[name].(int64)
	return n
}

// settles is called before the client says something of a delivery: that ends the message, or gives it back, or rejects it.
func (l *ledger) settles(queue string, n uint64, ends, rejects bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.open[n]
	if m == nil {
		return
	}
	m.ended = m.ended || ends
	s := m.stays[queue]
	s.out, s.rejected = false, s.rejected || rejects
}

// learns counts what the client will know after its next fence.
func (l *ledger) learns() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts++
}

// certain makes facts certain.
func (l *ledger) certain(life int, facts []fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if life == l.life {
		l.facts -= len(facts)
	}
	for _, f := range facts {
		m := l.open[f.number]
		if m == nil {
			continue
		}
		m.seen, m.gone = true, m.gone || f.gone
		if f.queue == "dead" {
			m.moved = f.queue
		}
		s := m.stays[f.queue]
		s.delivered = true
		s.acquired, s.failures = max(s.acquired, f.acquired), max(s.failures, f.failures)
	}
}

// missing are the messages that were confirmed and have not ended.
func (l *ledger) missing() (numbers []uint64) {
	for n, m := range l.open {
		if m.confirmed && !m.ended {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// complete tells whether nothing is missing, nothing can come any more that is still to wait, and all that was said is certain.
func (l *ledger) complete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts == 0 && time.Now().After(l.latest.Add(100*time.Millisecond)) && len(l.missing()) == 0
}

// close accounts for all messages, whose queues are empty.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.missing() {
		l.fault("message %d was confirmed and is lost", n)
	}
	for _, g := range l.groups {
		done, undone := g.acked && !g.back, g.acked && g.back
		for _, n := range g.letters {
			m := l.open[n]
			done = done || m.seen
			undone = undone || !m.seen && !m.ended // what ended before it was certain says nothing
		}
		if done && undone {
			l.fault("a transaction was done in part: of messages %d, %v acknowledged one that is back: %v", g.letters, g.acked, g.back)
		}
	}
	l.settled, l.groups = l.last, nil
	clear(l.open)
}
