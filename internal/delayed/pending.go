package delayed

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
)

// releaseBatch is how many messages leave in one unit of work.
const releaseBatch = 256

// Options make a Pending. All fields must be set.
type Options struct {
	// Key is the definition under which it keeps the numbers that it has in the store.
	Key   string
	Store *store.Store
	Clock clock.Clock
	// NewID gives it a number in the store that nobody has had.
	NewID func() store.QueueID
	// Transient messages do not outlive the process.
	Transient bool
	// Release sends a message that is due on its way as a part of tx, and returns the
	// queues that it reached, which have Settle called once tx has ended.
	Release func(tx *store.Tx, m *message.Message) []queue.Target
	Logger  *slog.Logger
}

// Pending is a set of messages that wait until they are due. Its methods are safe for
// concurrent use.
type Pending struct {
	o Options

	mu        sync.Mutex
	all       []*series // the last one takes new messages
	releasing bool
	closed    bool
	timer     clock.Timer
	timerAt   time.Time // zero if it is not set

	unreadable bool // messages could not be read, which is tried again
}

// readAgainAfter is when messages that could not be read are tried again.
const readAgainAfter = time.Second

// Open continues the set that value, the definition of its key, tells of, or starts an
// empty one if it is nil. Call Start when messages may be released.
func Open(o Options, value []byte) *Pending {
	p := &Pending{o: o}
	p.timer = o.Clock.AfterFunc(p.release)
	for _, id := range decodeIDs(value) {
		p.all = append(p.all, recoverSeries(o.Store, o.Logger, id))
	}
	return p
}

// IDs are the numbers that it has in the store.
func (p *Pending) IDs() []store.QueueID {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]store.QueueID, len(p.all))
	for i, s := range p.all {
		ids[i] = s.id
	}
	return ids
}

// Len is how many messages wait.
func (p *Pending) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, s := range p.all {
		n += s.length
	}
	return n
}

// Start releases what is due, and from now on what becomes due.
func (p *Pending) Start() { p.release() }

// Add takes m, as a part of tx, until due.
func (p *Pending) Add(tx *store.Tx, m *message.Message, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if len(p.all) == 0 || p.all[len(p.all)-1].full() {
		p.all = append(p.all, newSeries(p.o.Store, p.o.Logger, p.o.NewID()))
		p.keepIDs(tx)
	}
	p.all[len(p.all)-1].add(tx, m, due, p.o.Transient)
	p.arm()
}

// arm sets the timer for the message that is due first.
func (p *Pending) arm() {
	_, e := p.first()
	switch {
	case p.unreadable:
		p.unreadable = false
		p.timerAt = p.o.Clock.Now().Add(readAgainAfter)
		p.timer.Reset(p.timerAt)
	case e == nil:
		p.timer.Stop()
		p.timerAt = time.Time{}
	case !e.due().Equal(p.timerAt):
		p.timerAt = e.due()
		p.timer.Reset(p.timerAt)
	}
}

// first returns the message that is due first and where it is, nil if there is none.
func (p *Pending) first() (*series, *entry) {
	var in *series
	var first *entry
	for _, s := range p.all {
		e, err := s.first()
		if err != nil {
			if !errors.Is(err, store.ErrClosed) && !p.unreadable {
				p.unreadable = true
				p.o.Logger.Error("cannot read the messages of a delayed-message exchange from the data folder", "error", err)
			}
			continue
		}
		if e != nil && (first == nil || e.seq>>numberBits < first.seq>>numberBits) {
			in, first = s, e
		}
	}
	return in, first
}

// release sends what is due on its way. One goroutine at a time does it, so that
// messages leave in order.
func (p *Pending) release() {
	p.mu.Lock()
	p.timerAt = time.Time{}
	if p.releasing {
		p.mu.Unlock()
		return
	}
	p.releasing = true
	p.mu.Unlock()
	for p.releaseSome() {
	}
}

// releaseSome releases a batch of what is due, and returns false if that was all.
func (p *Pending) releaseSome() bool {
	now := p.o.Clock.Now()
	tx := p.o.Store.Begin()
	batch := p.takeDue(tx, now)
	var reached []queue.Target
	for _, m := range batch {
		reached = append(reached, p.o.Release(tx, m)...)
	}
	tx.End()
	for _, q := range reached {
		q.Settle()
	}
	return len(batch) > 0
}

// takeDue removes a batch of what is due. If there is nothing it ends the release and
// sets the timer.
func (p *Pending) takeDue(tx *store.Tx, now time.Time) (due []*message.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(due) < releaseBatch {
		s, e := p.first()
		if e == nil || e.due().After(now) {
			break
		}
		s.pop()
		s.remove(tx, e)
		due = append(due, e.msg)
	}
	p.dropEmpty(tx)
	if len(due) == 0 {
		p.releasing = false
		if !p.closed {
			p.arm()
		}
	}
	return due
}

// dropEmpty ends the series that are empty and take nothing any more.
func (p *Pending) dropEmpty(tx *store.Tx) {
	done := func(s *series) bool { return s.length == 0 && s.full() }
	if !slices.ContainsFunc(p.all, done) {
		return
	}
	p.all = slices.DeleteFunc(p.all, func(s *series) bool {
		if !done(s) {
			return false
		}
		tx.DropQueue(s.id)
		return true
	})
	p.keepIDs(tx)
}

func (p *Pending) keepIDs(tx *store.Tx) {
	if !p.o.Transient {
		tx.SetDefinition(p.o.Key, encodeIDs(p.all))
	}
}

// Delete drops all messages as a part of tx, and ends the set.
func (p *Pending) Delete(tx *store.Tx) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		tx.DropQueue(s.id)
	}
	tx.DeleteDefinition(p.o.Key)
	p.end()
}

// Close ends the set in memory only: what is stored stays. Close the store first.
func (p *Pending) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

func (p *Pending) end() {
	p.closed = true
	p.all = nil
	p.timer.Stop()
}
