package stream

import (
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/queue"
)

// counted fails the test unless the store has counted exactly what is there.
func (b *bench) counted() {
	b.Helper()
	b.idle()
	b.publish(text("counted"))
	b.idle()
	b.publish() // nothing, but behind what retention did
	c := b.store.Counters(streamID)
	if c.Messages != b.next-b.first || c.Bytes != b.segments.bytes+b.current.bytes {
		b.Fatalf("counted %d of %d bytes, there are %d of %d", c.Messages, c.Bytes, b.next-b.first, b.segments.bytes+b.current.bytes)
	}
	if n := b.store.Counters(streamID + 1).Messages; n != b.segments.to-b.segments.from {
		b.Fatalf("%d segments are stored, %d to %d are there", n, b.segments.from, b.segments.to)
	}
}

func TestRetentionBySize(t *testing.T) {
	b := newBench(t, func(s *queue.Settings) { s.SegmentBytes, s.MaxBytes = 1000, 5000 })
	defer func() { b.shut() }()
	for range 50 {
		b.fill(20)
		b.idle()
		if size := b.segments.bytes + b.current.bytes; size > 5000+1000 {
			t.Fatalf("%d bytes", size)
		}
	}
	b.counted()
	if first := b.consume(1, from("first")).take(1)[0].Offset; first == 0 || first != b.first {
		t.Fatalf("begins at %d, want %d", first, b.first)
	}
	first := b.first
	b.restart()
	if b.first != first || b.current.bytes == 0 || b.current.bytes > 1100 {
		t.Fatalf("begins at %d after the restart, before at %d; %d bytes in the current segment", b.first, first, b.current.bytes)
	}
	b.counted()
}

func TestCurrentSegmentStays(t *testing.T) {
	b := newBench(t, func(s *queue.Settings) { s.SegmentBytes, s.MaxBytes, s.MaxAge = 1<<20, 10, time.Second })
	defer b.shut()
	b.fill(1000)
	b.clock.Advance(time.Hour)
	b.idle()
	if b.first != 0 || b.Counts().Ready != 1000 {
		t.Fatalf("%d are left from %d on", b.Counts().Ready, b.first)
	}
}

// Segments go when their newest message is of age: at that moment, whether or not
// anything is published.
func TestRetentionByAge(t *testing.T) {
	b := newBench(t, func(s *queue.Settings) { s.SegmentBytes, s.MaxAge = 1000, time.Hour })
	defer func() { b.shut() }()
	var ends []uint64 // of the segments, which are a minute apart
	for n := 0; len(ends) < 10; n++ {
		segments := b.segments.to
		b.fill(1)
		if b.segments.to > segments {
			ends = append(ends, b.current.first)
			b.clock.Advance(time.Minute)
		}
	}
	b.idle()
	if b.first != 0 {
		t.Fatalf("begins at %d", b.first)
	}
	// The first segment was complete with its last message, published at the start.
	b.clock.Advance(50*time.Minute - 1)
	if b.first != 0 {
		t.Fatalf("begins at %d before the hour is over", b.first)
	}
	b.clock.Advance(1)
	if b.first != ends[0] {
		t.Fatalf("begins at %d, want %d", b.first, ends[0])
	}
	b.clock.Advance(3 * time.Minute)
	if b.first != ends[3] {
		t.Fatalf("begins at %d after three minutes, want %d", b.first, ends[3])
	}
	b.restart()
	b.clock.Advance(2 * time.Minute)
	if b.first != ends[5] {
		t.Fatalf("begins at %d after the restart, want %d", b.first, ends[5])
	}
	b.clock.Advance(100 * time.Hour)
	if b.first != ends[9] {
		t.Fatalf("begins at %d, want the current segment's %d", b.first, ends[9])
	}
	b.counted()
}

func TestConfigureRetainsAtOnce(t *testing.T) {
	b := newBench(t, func(s *queue.Settings) { s.SegmentBytes = 1000 })
	defer b.shut()
	b.fill(500)
	k := b.consume(1, from("first"))
	k.take(1)
	s := b.Settings()
	s.MaxBytes = 2000
	b.Configure(s)
	if size := b.segments.bytes + b.current.bytes; size > 2000 || b.first == 0 {
		t.Fatalf("%d bytes from %d on", size, b.first)
	}
	b.counted()
	// A consumer that was within what is gone goes on with what is left.
	d := k.take(0)
	settle(append(d, queue.Delivery{Queue: k.Queue(), Entry: new(queue.Entry)}))
	if got := k.take(1)[0].Offset; got != b.first && got != 1 {
		t.Fatalf("it goes on with %d, want %d", got, b.first)
	}
}

// However many segments there are, few are in memory.
func TestManySegments(t *testing.T) {
	b := newBench(t, func(s *queue.Settings) { s.SegmentBytes = 1 })
	defer func() { b.shut() }()
	for range 50 {
		b.fill(100)
	}
	if n := len(b.segments.oldest) + len(b.segments.newest); n > 4*segmentWindow {
		t.Fatalf("%d of %d segments are in memory", n, b.segments.to)
	}
	b.restart()
	if n := len(b.segments.oldest) + len(b.segments.newest); n > segmentWindow || b.segments.to-b.segments.from != 4999 {
		t.Fatalf("%d of %d segments are in memory", n, b.segments.to-b.segments.from)
	}
	s := b.Settings()
	s.MaxBytes = 0
	b.Configure(s)
	if b.first != 4999 {
		t.Fatalf("begins at %d", b.first)
	}
	b.counted()
}
