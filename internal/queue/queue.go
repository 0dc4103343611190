package queue

import (
	"cmp"
	"errors"
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

// pump gives ready messages to the consumers that wait for them.
func (q *Queue) pump(tx *store.Tx, now time.Time) {
	for len(q.line) > 0 {
		c := q.line[0]
		if !c.hasCredit() {
			q.line.leave(c)
			continue
		}
		e := q.peekLive(tx, now)
		if e == nil {
			return
		}
		if !c.Sink.Deliver(c, q.delivery(e, q.ready()-1)) {
			q.line.leave(c)
			continue
		}
		q.pop(e)
		q.served.delivered(e, c.NoAck)
		q.handOut(tx, e, c, now)
		q.line.served()
	}
}

func (q *Queue) delivery(e *Entry, remaining int) Delivery {
	d := Delivery{Queue: q, Entry: e, Message: e.msg, Redelivered: e.redelivered, Remaining: remaining}
	if q.settings.Type == Quorum {
		d.Counts = message.Counts{Returns: e.returns, Failures: e.failures}
		if e.returns == 0 {
			d.Counts.Returns = e.msg.Returns // what it brought along is told until it comes back here: RabbitMQ 4.3
		}
	}
	return d
}

// handOut records that e has been delivered to c.
func (q *Queue) handOut(tx *store.Tx, e *Entry, c *Consumer, now time.Time) {
	if c.NoAck {
		q.remove(tx, e)
		return
	}
	e.consumer = c
	q.unacked++
	q.lent += e.weight()
	c.unacked++
	if q.settings.Type == Quorum {
		q.watch(e, c, now)
	}
	if e.stored {
		tx.Delivered(e.level.id, e.seq)
	}
}

// peekLive returns the next message that is to be delivered, after dropping those at
// its front that have expired. A message that expires this very moment may still go
// to a consumer that waits, which is what a TTL of zero means.
func (q *Queue) peekLive(tx *store.Tx, now time.Time) *Entry {
	for {
		e := q.peek()
		if e == nil || !e.expired(now.Add(-1)) {
			return e
		}
		q.pop(e)
		q.bury(tx, e, reasonExpired, now)
	}
}

// peek returns the next message in order: what came back, then by priority. In a
// classic queue a returned message takes its old place.
func (q *Queue) peek() *Entry {
	back := q.returned.peek()
	if back != nil && q.returned.ahead {
		return back
	}
	for _, b := range q.levels {
		if back != nil && back.level == b && (b.head.len() == 0 || back.seq < b.head.at(0).seq) {
			return back
		}
		e, err := b.peek()
		if err != nil {
			q.unreadable(err)
			return nil
		}
		if e != nil {
			return e
		}
	}
	return back
}

// unreadableIf says that messages cannot be read if err is not nil.
func (q *Queue) unreadableIf(err error) {
	if err != nil {
		q.unreadable(err)
	}
}

// unreadable says that messages cannot be read, unless that is because the broker stops,
// and has that tried again.
func (q *Queue) unreadable(err error) {
	if errors.Is(err, store.ErrClosed) || q.readAgain != 0 {
		return
	}
	q.log.Error("cannot read the messages of a queue from the data folder", "queue", q.name, "error", err)
	q.readAgain = q.clock.Now().Add(readAgainAfter).UnixNano()
}

// readAgainAfter is when a queue that could not be read is tried again.
const readAgainAfter = time.Second

func (q *Queue) pop(e *Entry) {
	if q.returned.peek() == e {
		q.returned.pop()
		return
	}
	e.level.pop()
}

// Get takes one message, without a subscription. by is who gets it, used for this call
// only: with NoAck the message is done at once; else Sink, if there is one, has TimedOut
// called if the message is not settled in time. The second result is false if there is
// no message.
func (q *Queue) Get(by *Consumer) (Delivery, bool) {
	now := q.clock.Now()
	tx := q.store.Begin()
	q.mu.Lock()
	e := q.peekLive(tx, now.Add(1))
	var d Delivery
	if e != nil {
		q.pop(e)
		d = q.delivery(e, q.ready())
		q.served.got(e, by.NoAck)
		q.handOut(tx, e, by, now)
	} else {
		q.served.GetEmpty++
	}
	q.expire(tx, now)
	q.mu.Unlock()
	tx.End()
	q.Touch()
	q.Settle()
	return d, e != nil
}

// remove ends e.
func (q *Queue) remove(tx *store.Tx, e *Entry) {
	switch {
	case !e.stored:
		return
	case e.put == nil:
		tx.RemoveScanned(e.level.id, e.seq, e.loaded)
	default:
		tx.Remove(e.level.id, e.seq, e.put)
	}
	e.stored = false
}

// release takes e from the unacknowledged ones. It returns false if e is none of them
// any more.
func (q *Queue) release(e *Entry) bool {
	if e.lapsed {
		q.settleLapsed(e)
		return false
	}
	if e.due != 0 {
		q.unwatch(e)
	}
	q.unacked--
	q.lent -= e.weight()
	e.consumer.unacked--
	q.elect()
	q.resume(e.consumer)
	return true
}

// Ack ends entries that have been delivered, each once, as a part of tx. Call Settle once
// tx has ended, also after Reject and Requeue.
func (q *Queue) Ack(tx *store.Tx, entries ...*Entry) {
	q.changeIn(tx, func(time.Time) {
		q.served.Ack += uint64(len(entries))
		for _, e := range entries {
			if q.release(e) {
				q.remove(tx, e)
			}
		}
	})
}

// Reject ends entries that have been delivered and dead-letters them. failed tells
// whether that counts as a failed delivery (basic.reject) or not (basic.nack).
func (q *Queue) Reject(tx *store.Tx, failed bool, entries ...*Entry) {
	q.changeIn(tx, func(now time.Time) {
		for _, e := range entries {
			if q.release(e) {
				q.cameBack(e, failed)
				q.bury(tx, e, reasonRejected, now)
			}
		}
	})
}

// Requeue gives entries back that have been delivered. failed tells whether that
// counts as a failed delivery (basic.reject, a lost channel) or not (basic.nack,
// basic.recover). Source: the table of RabbitMQ 4.3 in
// https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling.
func (q *Queue) Requeue(tx *store.Tx, failed bool, entries ...*Entry) {
	q.changeIn(tx, func(now time.Time) {
		for _, e := range entries {
			if q.release(e) {
				q.cameBack(e, failed)
				q.giveBack(tx, e, now, failed)
			}
		}
		if q.settings.Type == Quorum {
			q.pump(tx, now) // what a consumer takes at once is not dropped
		}
		if q.settings.Overflow == DropHead {
			q.dropHead(tx, now)
		}
	})
}

// cameBack counts that e came back from a consumer. A classic queue counts failures
// only, and tells them to nobody but the queue that e is dead-lettered to.
func (q *Queue) cameBack(e *Entry, failed bool) {
	e.consumer = nil
	e.redelivered = true
	if failed {
		e.failures++
	}
	if failed || q.settings.Type == Quorum {
		e.returns++
	}
}

// giveBack puts e among the returned messages, at once or after a delay.
func (q *Queue) giveBack(tx *store.Tx, e *Entry, now time.Time, failed bool) {
	if limit := q.settings.DeliveryLimit; limit >= 0 && int64(e.failures) > limit {
		q.bury(tx, e, reasonDeliveryLimit, now)
		return
	}
	if delay := q.settings.Retry.delay(failed, e.failures); delay > 0 {
		e.due = now.Add(delay).UnixNano()
		q.delays.push(e)
		q.armDelays()
	} else {
		q.returned.push(e)
	}
	if e.stored {
		tx.Mark(e.level.id, e.seq, e.mark())
	}
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
