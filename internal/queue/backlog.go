package queue

import (
	"errors"
	"log/slog"

	"github.com/dormousemq/dormouse/internal/store"
)

// How much of a backlog stays in memory at each end, and how many messages are read
// at once.
const (
	windowMessages = 2048 // while nobody consumes
	windowGrowth   = 16   // times that at most, while somebody does
	windowFloor    = 256  // when the windows of all queues take too much
	windowBytes    = 8 << 20
	loadMessages   = 1024
)

var errEnough = errors.New("enough is read")

// backlog is a first-in-first-out list of messages of which only the two ends need
// be in memory:
//
//	oldest  [ head, in memory | on disk only | tail, in memory ]  newest
//
// New messages go to the head while it is short and nothing lies behind it, else to
// the tail, whose messages are all stored. What the tail has beyond its window moves
// to disk as soon as it is written. The head is refilled from disk in order. After a
// restart everything is on disk and nothing need be read to know how much it is.
//
// The window grows each time that the head is refilled from disk, until a consumer that
// lags finds the messages in memory. It is small again when the backlog is empty.
type backlog struct {
	store *store.Store
	log   *slog.Logger
	id    store.QueueID
	next  uint64 // sequence number of the next message

	windows *Windows
	least   int // window at first
	most    int // what it may grow to
	window  int // most messages in memory at each end

	// countsProperties says that a message weighs as much as its body and properties.
	countsProperties bool

	head, tail           ring
	headBytes, tailBytes int64 // what they take in memory
	weights              int64 // of the messages in head and tail

	disk      int    // messages on disk only
	diskBytes int64  // length of their records
	diskFrom  uint64 // none of them comes before this
	delivered uint64 // messages up to here had been delivered before the restart
}

// newBacklog continues a backlog that has been stored before, or starts one.
func newBacklog(s *store.Store, log *slog.Logger, id store.QueueID, windows *Windows, least, most int) *backlog {
	c := s.Counters(id)
	return &backlog{
		store: s, log: log, id: id, windows: windows, least: least, most: most, window: least, next: max(c.NextSeq, c.Delivered+1),
		disk: int(c.Messages), diskBytes: int64(c.Bytes), delivered: c.Delivered,
	}
}

// bytes is how much there is, about: on disk the whole record counts.
func (b *backlog) bytes() int64 { return b.weights + b.diskBytes }

func (b *backlog) len() int { return b.head.len() + b.disk + b.tail.len() }

// spills tells whether the next message goes to the tail and so must be stored.
func (b *backlog) spills() bool {
	return b.disk > 0 || b.tail.len() > 0 || b.beyond(b.head.len()+1, b.headBytes)
}

// beyond tells whether so much is more than one end may have in memory.
func (b *backlog) beyond(messages int, bytes int64) bool {
	return messages > b.window || bytes >= windowBytes || messages > windowFloor && b.windows.tight()
}

// push appends e, whose sequence number it has given by take, to the tail if that was
// what spills said, else to the head.
func (b *backlog) push(e *Entry, spills bool) {
	if !spills {
		b.head.pushBack(e)
		b.hold(&b.headBytes, e)
		return
	}
	b.tail.pushBack(e)
	b.hold(&b.tailBytes, e)
	for b.beyond(b.tail.len(), b.tailBytes) && b.tail.at(0).written() {
		old := b.tail.popFront()
		b.drop(&b.tailBytes, old)
		if b.disk == 0 {
			b.diskFrom = old.seq
		}
		b.disk++
		b.diskBytes += int64(old.Size())
	}
}

// hold counts what e takes at an end, and drop takes it back.
func (b *backlog) hold(end *int64, e *Entry) {
	n := int64(e.msg.Memory())
	*end += n
	b.windows.used.Add(n)
	b.weights += e.weight()
}

func (b *backlog) drop(end *int64, e *Entry) {
	n := int64(e.msg.Memory())
	*end -= n
	b.windows.used.Add(-n)
	b.weights -= e.weight()
}

func (e *Entry) written() bool { return e.stored && (e.put == nil || e.put.Committed()) }

// take gives the next sequence number.
func (b *backlog) take() uint64 {
	seq := b.next
	b.next++
	return seq
}

// peek returns the oldest message without taking it, nil if there is none.
func (b *backlog) peek() (*Entry, error) {
	if b.head.len() == 0 {
		if err := b.refill(); err != nil {
			return nil, err
		}
		if b.head.len() == 0 {
			return nil, nil
		}
	}
	return b.head.at(0), nil
}

// pop takes what peek has returned.
func (b *backlog) pop() *Entry {
	e := b.head.popFront()
	b.drop(&b.headBytes, e)
	if b.len() == 0 {
		b.window = b.least
	}
	return e
}

func (b *backlog) refill() error {
	if b.disk == 0 {
		b.head, b.tail = b.tail, b.head
		b.headBytes, b.tailBytes = b.tailBytes, 0
		return nil
	}
	end := b.next
	if b.tail.len() > 0 {
		end = b.tail.at(0).seq
	}
	load := min(loadMessages, b.window, b.disk)
	if b.windows.tight() {
		load = min(load, windowFloor)
	}
	b.window = min(2*b.window, b.most)
	more := false
	err := b.store.Scan(b.id, b.diskFrom, load, func(seq uint64, record, mark []byte) error {
		if seq >= end {
			return errEnough
		}
		more = true
		if e := b.load(seq, record, mark); e != nil {
			b.keep(e)
		}
		if b.headBytes >= windowBytes {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if !more {
		b.log.Error("messages are missing in the data folder", "messages", b.disk, "from number", b.diskFrom)
		b.disk, b.diskBytes = 0, 0
	}
	if b.head.len() == 0 {
		return b.refill()
	}
	return nil
}

// load takes the next record from disk. It returns nil if that cannot be decoded.
func (b *backlog) load(seq uint64, record, mark []byte) *Entry {
	b.disk--
	b.diskBytes -= int64(len(record))
	b.diskFrom = seq + 1
	e, err := decodeEntry(record)
	if err != nil {
		b.log.Error("a message cannot be decoded and is left out", "number", seq, "error", err)
		return nil
	}
	e.level, e.seq, e.redelivered = b, seq, seq <= b.delivered || e.failures > 0
	e.readMark(mark)
	return e
}

// keep puts what was loaded at the end of the head.
func (b *backlog) keep(e *Entry) {
	b.head.pushBack(e)
	b.hold(&b.headBytes, e)
}

// purge drops what is on disk only as a part of tx, and returns what is in memory,
// which may not be written yet, for the caller to remove one by one.
func (b *backlog) purge(tx *store.Tx) []*Entry {
	inMemory := make([]*Entry, 0, b.head.len()+b.tail.len())
	for _, r := range []*ring{&b.head, &b.tail} {
		for i := range r.len() {
			inMemory = append(inMemory, r.at(i))
		}
	}
	if b.disk > 0 {
		end := b.next
		if b.tail.len() > 0 {
			end = b.tail.at(0).seq
		}
		tx.Purge(b.id, b.diskFrom, end)
	}
	b.clear()
	return inMemory
}

// clear forgets all messages.
func (b *backlog) clear() {
	b.windows.used.Add(-b.headBytes - b.tailBytes)
	b.head, b.tail, b.headBytes, b.tailBytes = ring{}, ring{}, 0, 0
	b.window = b.least
	b.weights, b.disk, b.diskBytes = 0, 0, 0
}
