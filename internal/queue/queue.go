package queue

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

// Host is what a queue needs around it.
type Host interface {
	// DeadLetter publishes m, which has just died for reason, as a part of tx. It
	// returns the queues that it reached, which have Settle called once tx has ended,
	// and whether there was one and all of them took it.
	DeadLetter(tx *store.Tx, reason string, m *message.Message) (reached []Target, taken bool)
	// Expired says that q was unused for its Expires and is to be deleted.
	Expired(q *Queue)
}

// Options make a queue.
type Options struct {
	Name     string
	Settings Settings
	// ID is the queue's first number in the store. The queue takes one number for
	// each of its priorities.
	ID     store.QueueID
	Store  *store.Store
	Clock  clock.Clock
	Host   Host
	Logger *slog.Logger
	// Windows are shared by all queues. Nil is none shared.
	Windows *Windows

	window int // of the backlogs, which then does not grow, for tests; 0 for windowMessages
}

// Queue is one queue. All its methods are safe for concurrent use.
type Queue struct {
	name     string
	settings Settings
	id       store.QueueID
	store    *store.Store
	clock    clock.Clock
	host     Host
	log      *slog.Logger

	mu       sync.Mutex
	deleted  bool
	levels   []*backlog // of the priorities that have been used, highest first
	windows  *Windows
	window   int // of its backlogs, for tests; 0 for what is usual
	returned returns
	delays   delays
	unacked  int
	lent     int64 // weight of the unacknowledged messages
	served   Served
	full     bool // a quorum queue that refuses messages until it is emptier

	consumers []*Consumer // in order of subscription
	line      line
	active    *Consumer // the one that is served, with SingleActiveConsumer
	heir      *Consumer // the one that takes over from it, when it has settled all it has

	outbox   []dead      // to be dead-lettered, in order
	draining bool        // somebody is at it
	held     []dead      // those that nobody would take
	retry    clock.Timer // of the held ones
	dying    atomic.Bool // the outbox is not empty
	overdue  bool        // messages have expired for which the outbox had no room

	expiry    clock.Timer // of the messages
	expiryAt  int64       // what it is set to, 0 if it is not
	readAgain int64       // when to try again to read messages, 0 if they can be read
	idle      clock.Timer // of the queue, nil until it has an Expires
	used      time.Time   // when the queue was last in use

	holders map[*Consumer]struct{} // may have messages that can lapse
	lapse   clock.Timer            // nil until a message can
	lapseAt int64                  // what it is set to, 0 if it is not
}

// New makes a queue of what the store holds for its number: nothing, or what was
// there before a restart.
func New(o Options) *Queue {
	q := &Queue{
		name: o.Name, settings: o.Settings, id: o.ID, store: o.Store, clock: o.Clock, host: o.Host, log: o.Logger,
		returned: newReturns(o.Settings), holders: map[*Consumer]struct{}{},
	}
	q.windows, q.window = cmp.Or(o.Windows, &Windows{}), o.window
	for i := range o.Settings.Levels() {
		if o.Store.Counters(o.ID+i).Messages > 0 {
			q.level(i)
		}
	}
	if o.Settings.Type == Quorum {
		q.recoverDelays()
	}
	q.expiry = q.clock.AfterFunc(q.expiryDue)
	q.retry = q.clock.AfterFunc(q.retryHeld)
	return q
}

// Start sets the timers of a queue that has been made, and expires what is due.
func (q *Queue) Start() {
	q.Touch()
	q.expiryDue()
}

// level is the backlog of a priority.
func (q *Queue) level(priority store.QueueID) *backlog {
	id := q.id + priority
	i, found := slices.BinarySearchFunc(q.levels, id, func(b *backlog, id store.QueueID) int { return cmp.Compare(id, b.id) })
	if !found {
		least, most := windowMessages, windowGrowth*windowMessages
		if q.window > 0 {
			least, most = q.window, q.window
		}
		b := newBacklog(q.store, q.log.With("queue", q.name), id, q.windows, least, most)
		b.countsProperties = q.settings.Type == Quorum
		q.levels = slices.Insert(q.levels, i, b)
	}
	return q.levels[i]
}

// Name is the queue's name.
func (q *Queue) Name() string { return q.name }

// ID is the queue's first number in the store.
func (q *Queue) ID() store.QueueID { return q.id }

// Levels is how many numbers of the store it has, from ID on.
func (q *Queue) Levels() store.QueueID {
	s := q.Settings()
	return s.Levels()
}

// Settings are those in effect.
func (q *Queue) Settings() Settings {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.settings
}

// Counts are the numbers that queue.declare-ok and the like tell.
type Counts struct {
	Ready, Unacked, Consumers int
	// Bound is how many consumers RabbitMQ tells of in queue.declare-ok. Of a quorum queue these are also
	// those that have left it, each basic.get being one, while they have messages to settle, but
	// not those that wait until they become the single active one.
	Bound int
	// Delayed messages wait for their next delivery and are not ready.
	Delayed int
}

// Counts returns how much is in the queue.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts()
}

func (q *Queue) counts() Counts {
	c := Counts{Ready: q.ready(), Unacked: q.unacked, Consumers: len(q.consumers), Delayed: len(q.delays.heap)}
	c.Bound = c.Consumers
	if q.settings.SingleActiveConsumer && q.settings.Type == Quorum {
		c.Bound = min(c.Bound, 1)
	}
	for holder := range q.holders {
		left := holder.queue == nil || q.settings.SingleActiveConsumer && holder != q.active
		if left && holder.out.first != nil {
			c.Bound++
		}
	}
	return c
}

func (q *Queue) ready() int {
	n := q.returned.len()
	for _, b := range q.levels {
		n += b.len()
	}
	return n
}

func (q *Queue) readyBytes() int64 {
	n := q.returned.bytes
	for _, b := range q.levels {
		n += b.bytes()
	}
	return n
}

// Outcome is what became of a message that was to be enqueued.
type Outcome int

// The outcomes of Enqueue.
const (
	Accepted Outcome = iota
	Rejected         // the queue is full and refuses
	Gone             // the queue has been deleted
)

// Enqueue adds m as a part of tx and gives it to a consumer if one waits. Call Settle
// once tx has ended.
func (q *Queue) Enqueue(tx *store.Tx, m *message.Message) Outcome {
	now := q.clock.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return Gone
	}
	e := q.newEntry(m, now)
	if q.refuses(e) {
		if q.settings.Overflow == RejectPublishDLX {
			q.bury(tx, e, reasonMaxLength, now)
		}
		return Rejected
	}
	q.append(tx, e)
	q.pump(tx, now)
	if q.settings.Overflow == DropHead {
		q.dropHead(tx, now)
	}
	q.expire(tx, now)
	if e.failures > 0 {
		// A classic queue too, once it has kept the message, tells that it had failed
		// in the queue before: RabbitMQ 4.3.
		e.redelivered = true
	}
	return Accepted
}

func (q *Queue) newEntry(m *message.Message, now time.Time) *Entry {
	priority := min(m.Priority, int(q.settings.MaxPriority))
	if m.Priority == message.NoPriority {
		priority = int(q.settings.DefaultPriority)
	}
	e := &Entry{msg: m, level: q.level(store.QueueID(priority)), failures: m.Failures}
	ttl := q.settings.TTL
	if m.Expiration != message.NoExpiration && (ttl == Unlimited || m.Expiration < ttl) {
		ttl = m.Expiration
	}
	if ttl != Unlimited {
		e.expires = now.Add(ttl).UnixNano()
	}
	e.redelivered = q.settings.Type == Quorum && e.failures > 0
	return e
}

// append puts e at the end of its level.
func (q *Queue) append(tx *store.Tx, e *Entry) {
	e.seq = e.level.take()
	durable := q.settings.stores(e.msg.Persistent)
	spills := e.level.spills()
	if durable || spills {
		e.put, e.stored = tx.Put(e.level.id, e.seq, e, !durable), true
	}
	e.level.push(e, spills)
}

// change runs f locked, within a unit of work, and then does what follows from it.
func (q *Queue) change(f func(tx *store.Tx, now time.Time)) {
	tx := q.store.Begin()
	q.changeIn(tx, func(now time.Time) { f(tx, now) })
	tx.End()
	q.Settle()
}

// changeIn runs f locked, as a part of tx.
func (q *Queue) changeIn(tx *store.Tx, f func(now time.Time)) {
	now := q.clock.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return
	}
	f(now)
	q.pump(tx, now)
	q.expire(tx, now)
}
