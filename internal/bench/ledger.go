package bench

import (
	"sync"
	"sync/atomic"
)

// Ledger keeps account of which messages have arrived. It is safe for concurrent use, and takes a bit for each message.
type Ledger struct {
	producers  []pages
	received   atomic.Int64 // distinct
	duplicates atomic.Int64
	foreign    atomic.Int64
	expected   atomic.Int64 // -1 while it is not known
	once       sync.Once
	complete   chan struct{}
}

const (
	pageBits  = 22 // of the number: a page is for four million messages
	pageCount = 1 << 10
)

type (
	page  [1 << pageBits / 64]uint64
	pages [pageCount]atomic.Pointer[page]
)

// NewLedger returns a ledger for so many producers, at most MaxProducers.
func NewLedger(producers int) *Ledger {
	l := &Ledger{producers: make([]pages, producers), complete: make(chan struct{})}
	l.expected.Store(-1)
	return l
}

// Arrive records a message, and tells whether it came for the first time.
func (l *Ledger) Arrive(s Stamp) bool {
	at := s.Number >> pageBits
	if s.Producer >= len(l.producers) || at >= pageCount {
		l.foreign.Add(1)
		return false
	}
	slot := &l.producers[s.Producer][at]
	p := slot.Load()
	if p == nil {
		slot.CompareAndSwap(nil, new(page))
		p = slot.Load()
	}
	bit := s.Number & (1<<pageBits - 1)
	mask := uint64(1) << (bit % 64)
	if atomic.OrUint64(&p[bit/64], mask)&mask != 0 {
		l.duplicates.Add(1)
		return false
	}
	if l.received.Add(1) == l.expected.Load() {
		l.finish()
	}
	return true
}

// Expect says how many messages were published in all. Complete is closed when as many have arrived.
func (l *Ledger) Expect(n int64) {
	l.expected.Store(n)
	if l.received.Load() == n {
		l.finish()
	}
}

func (l *Ledger) finish() { l.once.Do(func() { close(l.complete) }) }

// Complete is closed when as many messages have arrived as Expect said.
func (l *Ledger) Complete() <-chan struct{} { return l.complete }

// Received is how many different messages have arrived.
func (l *Ledger) Received() int64 { return l.received.Load() }

// Duplicates is how many messages have come once more.
func (l *Ledger) Duplicates() int64 { return l.duplicates.Load() }

// Foreign is how many messages have come that nobody here has published.
func (l *Ledger) Foreign() int64 { return l.foreign.Load() }
