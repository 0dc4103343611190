package stream

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
)

// Options make a stream.
type Options struct {
	Name     string
	VHost    string // for the texts of exceptions
	Settings queue.Settings
	ID       store.QueueID // the first of its numbers in the store
	Store    *store.Store
	Clock    clock.Clock
	Logger   *slog.Logger

	tail int // messages that stay in memory, for tests; 0 for tailMessages
}

// Stream is one stream. All its methods are safe for concurrent use.
type Stream struct {
	name  string
	text  string // as exceptions call it
	id    store.QueueID
	store *store.Store
	clock clock.Clock
	log   *slog.Logger

	readable  atomic.Uint64 // behind the last offset that is written; changed with mu
	delivered atomic.Uint64 // messages, and
	settled   atomic.Uint64 // those of them that were settled, since the start

	mu       sync.Mutex
	settings queue.Settings
	ended    bool
	first    uint64 // the oldest offset
	next     uint64 // the offset of the next message
	newest   int64  // when the newest message arrived, Unix milliseconds
	tail     tail
	segments segments  // that are complete
	current  segment   // that is being written; end, last and before are not kept up
	total    uint64    // bytes of all complete segments that it ever had
	gaps     uint64    // messages may be missing below this offset, since a crash
	readers  []*reader // in the order of their subscription

	due    clock.Timer // of the oldest segment
	full   bool        // there may be segments to drop
	again  clock.Timer // to look again when the disk has failed
	active sync.WaitGroup
}

// New makes a stream of what the store holds for its numbers.
func New(o Options) *Stream {
	s := &Stream{
		name: o.Name, text: fmt.Sprintf("queue '%s' in vhost '%s'", o.Name, o.VHost), id: o.ID,
		store: o.Store, clock: o.Clock, log: o.Logger.With("stream", o.Name),
		settings: o.Settings, tail: tail{messages: tailMessages},
	}
	if o.tail > 0 {
		s.tail.messages = o.tail
	}
	s.open()
	s.due = s.clock.AfterFunc(s.retain)
	s.again = s.clock.AfterFunc(s.lookAgain)
	return s
}

// open reads the oldest and the newest message and segment. What cannot be read is as if it
// were not there: damage to one stream must not keep the broker from starting.
func (s *Stream) open() {
	all, complete, err := openSegments(s.store, s.id+1)
	if err != nil {
		s.log.Error("cannot read the segments of a stream from the data folder; what they hold is not dropped any more", "error", err)
		all, complete = segments{store: s.store, id: s.id + 1, from: all.to, to: all.to}, nil
	}
	s.segments = all
	c := s.store.Counters(s.id)
	s.first, s.next = c.NextSeq, c.NextSeq
	s.readable.Store(s.next)
	if c.Messages == 0 {
		return
	}
	var damaged [2]error
	s.first, _, damaged[0] = s.moment(0)
	_, s.newest, damaged[1] = s.moment(s.next - 1)
	if err := errors.Join(damaged[:]...); err != nil {
		s.log.Error("cannot read the messages at the ends of a stream from the data folder", "error", err)
	}
	if c.Messages != s.next-s.first {
		s.gaps = s.next
	}
	s.current.first = s.first
	if complete != nil {
		s.current.first, s.total = complete.end, complete.before+complete.bytes
		s.newest = max(s.newest, complete.last)
	}
	s.current.bytes = c.Bytes - min(c.Bytes, s.segments.bytes)
}

// moment returns the first offset that is not below from, and when its message arrived.
func (s *Stream) moment(from uint64) (offset uint64, at int64, err error) {
	found := false
	err = s.store.Scan(s.id, from, 1, func(seq uint64, b, _ []byte) (err error) {
		offset, found = seq, true
		at, _, err = decodeTime(b)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("from offset %d on: %w", from, errMissing)
	}
	return offset, at, err
}

var errMissing = errors.New("there are no messages")

// Name is the stream's name.
func (s *Stream) Name() string { return s.name }

// ID is the first of its numbers in the store.
func (s *Stream) ID() store.QueueID { return s.id }

// Levels is how many numbers it has: one for its messages and one for its segments.
func (s *Stream) Levels() store.QueueID { return s.settings.Levels() }

// Settings are those in effect.
func (s *Stream) Settings() queue.Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// Configure puts other settings in the place of those in effect. Retention and the size of
// segments follow them at once.
func (s *Stream) Configure(settings queue.Settings) {
	s.mu.Lock()
	s.settings = settings
	s.mu.Unlock()
	s.retain()
}

// Start begins to drop what is older than it may be.
func (s *Stream) Start() { s.retain() }

// Declared says that the stream was declared again, which means nothing to it.
func (s *Stream) Declared() {}

// Counts returns how many messages there are. RabbitMQ counts no consumers of streams
// where it tells those of queues.
func (s *Stream) Counts() queue.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return queue.Counts{Ready: int(s.next - s.first)}
}

// Enqueue appends m as a part of tx. Consumers get it when it is written.
func (s *Stream) Enqueue(tx *store.Tx, m *message.Message) queue.Outcome {
	now := s.clock.Now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return queue.Gone
	}
	if s.next > s.current.first && s.current.bytes >= uint64(s.settings.SegmentBytes) {
		s.roll(tx)
	}
	s.newest = max(s.newest, now)
	r := &record{offset: s.next, at: s.newest, msg: m}
	r.put = tx.Put(s.id, r.offset, r, false)
	s.next++
	s.current.bytes += uint64(r.Size())
	s.tail.push(r)
	tx.Notify(s, r.offset)
	return queue.Accepted
}

// Settle does nothing: what follows from a message follows when it is written.
func (s *Stream) Settle() {}

// Committed is called by the store when the message with that offset, and all before it
// that were written with it, are on disk.
func (s *Stream) Committed(offset uint64, err error) {
	if err != nil {
		if !errors.Is(err, store.ErrClosed) {
			s.again.Reset(s.clock.Now().Add(lookAgain))
		}
		return
	}
	if offset < s.readable.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.readable.Store(s.tail.written(s.next))
	for _, r := range s.readers {
		r.wake()
	}
	if s.full {
		s.full = false
		s.active.Go(s.retain)
	}
}

// lookAgain is how long after a failure of the disk the stream looks what is written.
const lookAgain = time.Second

func (s *Stream) lookAgain() {
	s.mu.Lock()
	next := s.next
	for _, r := range s.readers {
		r.wake()
	}
	s.mu.Unlock()
	s.store.Begin().Commit(s, next)
}

// read returns records from an offset on, at most limit of them and about so many bytes,
// and the offset to go on from.
func (s *Stream) read(from uint64, limit, bytes int) (list []*record, next uint64, err error) {
	s.mu.Lock()
	from = max(from, s.first)
	end := s.readable.Load()
	if from >= end {
		s.mu.Unlock()
		return nil, from, nil
	}
	if from >= s.tail.first(s.next) {
		for _, r := range s.tail.from(from) {
			if r.offset >= end || limit == 0 || bytes <= 0 {
				break
			}
			list = append(list, r)
			from, limit, bytes = r.offset+1, limit-1, bytes-r.msg.Memory()
		}
		s.mu.Unlock()
		return list, from, nil
	}
	s.mu.Unlock()
	err = s.store.Scan(s.id, from, limit, func(offset uint64, b, _ []byte) error {
		if offset >= end || bytes <= 0 {
			return errEnough
		}
		r, err := decodeRecord(offset, b)
		if err != nil {
			return fmt.Errorf("message %d: %w", offset, err)
		}
		list = append(list, r)
		from, bytes = offset+1, bytes-r.msg.Memory()
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return list, from, nil
	case err == nil && len(list) < limit:
		return list, end, nil
	}
	return list, from, err
}

var errEnough = errors.New("enough")

// Delete ends the stream as a part of tx, unless check, called locked, refuses: its messages
// are dropped, its consumers told. It counts none of the messages, as RabbitMQ.
func (s *Stream) Delete(tx *store.Tx, check func(queue.Counts) error) (int, error) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return 0, queue.ErrDeleted
	}
	if check != nil {
		if err := check(queue.Counts{Ready: int(s.next - s.first), Consumers: len(s.readers)}); err != nil {
			s.mu.Unlock()
			return 0, err
		}
	}
	gone := s.end()
	tx.DropQueue(s.id)
	tx.DropQueue(s.id + 1)
	s.mu.Unlock()
	for _, r := range gone {
		r.consumer.Sink.QueueGone(r.consumer)
	}
	return 0, nil
}

// Close ends the stream in memory only: what is stored stays. Close the store first.
func (s *Stream) Close() {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.active.Wait()
}

// end ends the stream and returns the consumers that it had.
func (s *Stream) end() []*reader {
	gone := s.readers
	s.ended, s.readers, s.tail = true, nil, tail{}
	s.due.Stop()
	s.again.Stop()
	for _, r := range gone {
		r.leave()
	}
	return gone
}
