package delayed

import (
	"container/heap"
	"encoding/binary"
	"log/slog"
	"slices"
	"time"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

const (
	// window is how many messages of a series are read into memory at once; at most
	// twice as many stay there.
	window = 2048
	// numberBits is how much of a sequence number tells messages apart that are due
	// in the same millisecond. The rest is the due time in milliseconds since 1970,
	// which is enough until the year 2109.
	numberBits = 22
	seriesSize = 1 << numberBits
	endOfTime  = ^uint64(0)
)

// series is a part of the pending messages that has one number in the store. It takes
// seriesSize messages in its life, so that no sequence number is used twice.
//
// Every message below the horizon is in the heap. What is beyond it is on disk, and
// also in memory as long as it may not be written yet.
type series struct {
	store *store.Store
	log   *slog.Logger
	id    store.QueueID
	taken int // messages it has been given since it was made; seriesSize after a restart

	heap     entryHeap
	beyond   []*entry
	forgetAt int // length of beyond at which it is worth looking for what is written
	horizon  uint64
	length   int
	last     uint64 // the highest sequence number that was popped
}

// entry is one pending message.
type entry struct {
	seq    uint64
	msg    *message.Message
	put    *store.Put // nil if it was read from disk
	loaded int        // length of the record then
}

func (e *entry) due() time.Time { return time.UnixMilli(int64(e.seq >> numberBits)) }

// AppendTo appends the record that the store keeps.
func (e *entry) AppendTo(dst []byte) []byte { return e.msg.AppendTo(dst) }

// Size is the length of the record.
func (e *entry) Size() int { return e.msg.EncodedSize() }

// newSeries makes a series for new messages.
func newSeries(s *store.Store, log *slog.Logger, id store.QueueID) *series {
	return &series{store: s, log: log, id: id, horizon: endOfTime}
}

// recoverSeries continues a series that has been stored. It takes no new messages.
func recoverSeries(s *store.Store, log *slog.Logger, id store.QueueID) *series {
	return &series{store: s, log: log, id: id, taken: seriesSize, length: int(s.Counters(id).Messages)}
}

func (s *series) full() bool { return s.taken == seriesSize }

// add takes a message that is due at the given time, rounded up to a millisecond.
func (s *series) add(tx *store.Tx, m *message.Message, due time.Time, transient bool) {
	ms := due.Add(time.Millisecond - 1).UnixMilli()
	e := &entry{seq: uint64(ms)<<numberBits | uint64(s.taken), msg: m}
	s.taken++
	s.length++
	e.put = tx.Put(s.id, e.seq, e, transient)
	if e.seq >= s.horizon {
		s.beyond = append(s.beyond, e)
		if len(s.beyond) > s.forgetAt {
			s.forgetWritten()
		}
		return
	}
	heap.Push(&s.heap, e)
	if len(s.heap) > 2*window {
		s.evict()
	}
}

// forgetWritten drops from memory what is on disk beyond the horizon.
func (s *series) forgetWritten() {
	s.beyond = slices.DeleteFunc(s.beyond, func(e *entry) bool { return e.put == nil || e.put.Committed() })
	s.forgetAt = max(window, 2*len(s.beyond))
}

// evict keeps the window's worth of messages that are due first.
func (s *series) evict() {
	slices.SortFunc(s.heap, func(a, b *entry) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	s.horizon = max(s.heap[window-1].seq, s.last) + 1
	keep, _ := slices.BinarySearchFunc(s.heap, s.horizon, func(e *entry, at uint64) int {
		if e.seq < at {
			return -1
		}
		return 1
	})
	s.beyond = append(s.beyond, s.heap[keep:]...)
	clear(s.heap[keep:])
	s.heap = s.heap[:keep] // sorted, so still a heap
	s.forgetWritten()
}

// first returns the message that is due first, nil if there is none.
func (s *series) first() (*entry, error) {
	if len(s.heap) == 0 && s.length > 0 {
		if err := s.refill(); err != nil {
			return nil, err
		}
	}
	if len(s.heap) == 0 {
		return nil, nil
	}
	return s.heap[0], nil
}

// pop removes the message that first has returned.
func (s *series) pop() {
	e := heap.Pop(&s.heap).(*entry)
	s.length--
	s.last = max(s.last, e.seq)
}

// refill moves the horizon on. What cannot be decoded, or is missing, it leaves out.
func (s *series) refill() error {
	s.forgetWritten()
	unwritten := make(map[uint64]bool, len(s.beyond))
	for _, e := range s.beyond {
		unwritten[e.seq] = true // the scan may come upon it all the same
	}
	scanned, next := 0, s.horizon
	err := s.store.Scan(s.id, s.horizon, window, func(seq uint64, record, _ []byte) error {
		scanned++
		next = seq + 1
		if unwritten[seq] {
			return nil
		}
		m, err := message.Decode(record)
		if err != nil {
			s.log.Error("a delayed message cannot be decoded and is left out", "due", time.UnixMilli(int64(seq>>numberBits)), "error", err)
			s.length--
			return nil
		}
		s.heap = append(s.heap, &entry{seq: seq, msg: m, loaded: len(record)})
		return nil
	})
	if err != nil {
		s.heap = nil
		return err
	}
	if scanned < window {
		next = endOfTime
	}
	s.horizon = next
	s.beyond = slices.DeleteFunc(s.beyond, func(e *entry) bool {
		if e.seq >= next {
			return false
		}
		s.heap = append(s.heap, e)
		return true
	})
	heap.Init(&s.heap)
	switch {
	case len(s.heap) > 0 || s.length == 0:
	case next != endOfTime:
		return s.refill()
	default:
		s.log.Error("delayed messages are missing in the data folder", "messages", s.length)
		s.length = 0
	}
	return nil
}

// remove ends the record of a message that was popped.
func (s *series) remove(tx *store.Tx, e *entry) {
	if e.put != nil {
		tx.Remove(s.id, e.seq, e.put)
		return
	}
	tx.RemoveScanned(s.id, e.seq, e.loaded)
}

// entryHeap has the entry that is due first on top.
type entryHeap []*entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return h[i].seq < h[j].seq }
func (h entryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *entryHeap) Push(x any)        { *h = append(*h, x.(*entry)) }
func (h *entryHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}

// encodeIDs and decodeIDs keep the numbers of the series in a definition.
func encodeIDs(all []*series) []byte {
	var b []byte
	for _, s := range all {
		b = binary.BigEndian.AppendUint64(b, uint64(s.id))
	}
	return b
}

func decodeIDs(b []byte) []store.QueueID {
	var ids []store.QueueID
	for ; len(b) >= 8; b = b[8:] {
		ids = append(ids, store.QueueID(binary.BigEndian.Uint64(b)))
	}
	return ids
}
