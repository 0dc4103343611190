package demo

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Ledger keeps account of every message of a run: what was published, what arrived when and with which key, what was
// finished, what was found in the parking lot. It believes only what it is told has happened. Safe for concurrent use.
type Ledger struct {
	mu       sync.Mutex
	entries  map[string]*entry
	plan     []*entry      // in the order of the plan
	left     int           // messages that are not settled yet
	settled  chan struct{} // closed when left becomes 0
	progress Progress
	early    int
	wrongKey int
	surplus  int // arrivals, and copies in the parking lot, beyond the one expected
	lateness *Lateness
	problems []string
}

type entry struct {
	message   Message
	due       time.Time // of attempt dueOf
	dueOf     int       // 0 until the message is about to be published
	attempt   int       // highest attempt that arrived
	published bool      // confirmed by the broker
	settled   bool      // the worker is through with it
	delivered bool
	parked    int // copies found in the parking lot
}

// maxProblems bounds the lines that explain what went wrong; the counts stay exact.
const maxProblems = 10

// Progress is how far a run has come.
type Progress struct {
	Planned   int
	Published int // confirmed by the broker
	Delivered int
	Retries   int // deliveries after the first attempt
	Exhausted int // given up by the worker, on their way to the parking lot
}

// NewLedger returns the account of the planned messages, of which nothing has happened yet.
func NewLedger(plan []Message) *Ledger {
	l := &Ledger{
		entries:  make(map[string]*entry, len(plan)),
		left:     len(plan),
		settled:  make(chan struct{}),
		progress: Progress{Planned: len(plan)},
		lateness: NewLateness(),
	}
	for _, m := range plan {
		e := &entry{message: m}
		l.entries[m.ID] = e
		l.plan = append(l.plan, e)
	}
	if l.left == 0 {
		close(l.settled)
	}
	return l
}

// Publishing notes the instant before a message is published. Its delay counts from here: an arrival before now plus
// the delay is early whatever the broker does.
func (l *Ledger) Publishing(id string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	e.due, e.dueOf = now.Add(e.message.Delay), 1
}

// Published notes that the broker confirmed the message.
func (l *Ledger) Published(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[id].published = true
	l.progress.Published++
}

// Arrived notes one delivery and returns the planned message, or false when no such message was published.
func (l *Ledger) Arrived(a Arrival, now time.Time) (Message, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[a.ID]
	if e == nil {
		l.problem("a message with the unknown id %q arrived in %s", a.ID, a.Queue)
		return Message{}, false
	}
	if a.Key != e.message.Key || a.Queue != e.message.Queue {
		l.wrongKey++
		l.problem("%s arrived in %s with key %q, expected in %s with key %q", a.ID, a.Queue, a.Key, e.message.Queue, e.message.Key)
	}
	if a.Attempt <= e.attempt {
		l.surplus++
		l.problem("attempt %d of %s arrived again", a.Attempt, a.ID)
		return e.message, true
	}
	e.attempt = a.Attempt
	if a.Attempt > 1 {
		l.progress.Retries++
	}
	if a.Attempt != e.dueOf {
		l.problem("attempt %d of %s arrived, expected attempt %d", a.Attempt, a.ID, e.dueOf)
	} else if late := now.Sub(e.due); late < 0 {
		l.early++
		l.problem("attempt %d of %s arrived %s early", a.Attempt, a.ID, -late)
	} else {
		l.lateness.Record(late)
	}
	return e.message, true
}

// Retrying notes that the attempt went wrong and that the next one is due at the given time, not before.
func (l *Ledger) Retrying(id string, attempt int, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[id]; attempt+1 > e.dueOf { // a duplicate of the attempt does not move it
		e.due, e.dueOf = due, attempt+1
	}
}

// Delivered notes that the worker finished the message.
func (l *Ledger) Delivered(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	if !e.delivered {
		e.delivered = true
		l.progress.Delivered++
	}
	l.settle(e)
}

// Exhausted notes that the last attempt went wrong: the message must turn up in the parking lot.
func (l *Ledger) Exhausted(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	if !e.settled {
		l.progress.Exhausted++
	}
	l.settle(e)
}

// Abandon takes the messages that were never published out of what Settled waits for.
func (l *Ledger) Abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.plan {
		if e.dueOf == 0 {
			l.settle(e)
		}
	}
}

func (l *Ledger) settle(e *entry) {
	if e.settled {
		return
	}
	e.settled = true
	if l.left--; l.left == 0 {
		close(l.settled)
	}
}

// Settled is closed when the worker has delivered or given up every message.
func (l *Ledger) Settled() <-chan struct{} { return l.settled }

// Parked notes one copy found in the parking lot.
func (l *Ledger) Parked(p Parked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[p.ID]
	if e == nil {
		l.problem("a message with the unknown id %q is parked for %s", p.ID, p.Queue)
		return
	}
	if e.parked++; e.parked > 1 || e.delivered {
		l.surplus++
		l.problem("%s is parked as well", p.ID)
	}
}

// Progress returns how far the run has come.
func (l *Ledger) Progress() Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.progress
}

// Lateness returns how late the attempts arrived that were expected and not early.
func (l *Ledger) Lateness() []Bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lateness.Buckets()
}

// Result returns the account as it stands.
func (l *Ledger) Result() Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Result{
		Early:      l.early,
		Duplicates: l.surplus,
		Retries:    l.progress.Retries,
		WrongKey:   l.wrongKey,
		Lateness:   l.lateness.Summary(),
	}
	for _, e := range l.plan {
		switch {
		case !e.published:
			continue
		case e.delivered:
			r.Delivered++
		case e.parked > 0:
			r.Parked++
		default:
			r.Lost++
		}
		r.Published++
	}
	return r
}

// Problems explains in words what Result counts, as far as it fits on a screen.
func (l *Ledger) Problems() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	problems := slices.Clone(l.problems)
	for _, e := range l.plan {
		if e.published && !e.delivered && e.parked == 0 && len(problems) < maxProblems {
			problems = append(problems, fmt.Sprintf("%s is lost: it was seen at %d of %d attempts", e.message.ID, e.attempt, MaxAttempts))
		}
	}
	return problems
}

func (l *Ledger) problem(format string, args ...any) {
	if len(l.problems) < maxProblems {
		l.problems = append(l.problems, fmt.Sprintf(format, args...))
	}
}
