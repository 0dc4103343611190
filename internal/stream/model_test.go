package stream

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/wire"
)

// model is what a stream must hold: when each message arrived, in whole seconds.
type model struct {
	at    []int64
	first uint64
}

// Random publishing, consuming, waiting, retention and restarts: consumers get exactly what
// is there from where they asked for on, and what is gone is whole segments of the oldest.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t, func(s *queue.Settings) {
			s.SegmentBytes = rapid.SampledFrom([]int64{1, 200, 3000, 1 << 20}).Draw(t, "segment")
			s.MaxBytes = rapid.SampledFrom([]int64{queue.Unlimited, queue.Unlimited, 1000, 20000}).Draw(t, "bytes")
			s.MaxAge = rapid.SampledFrom([]time.Duration{queue.Unlimited, queue.Unlimited, 30 * time.Second}).Draw(t, "age")
		})
		defer func() { b.shut() }()
		b.tail = rapid.SampledFrom([]int{1, 10, 3000}).Draw(t, "tail")
		b.restart()
		m := &model{}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				b.idle()
				if b.next != uint64(len(m.at)) || b.first < m.first || b.first > b.next {
					t.Fatalf("from %d to %d; before it began at %d, and %d were published", b.first, b.next, m.first, len(m.at))
				}
				if b.settings.MaxBytes == queue.Unlimited && b.settings.MaxAge == queue.Unlimited && b.first != 0 {
					t.Fatalf("begins at %d without retention", b.first)
				}
				m.first = b.first
			},
			"publish": func(t *rapid.T) {
				for range rapid.IntRange(1, 60).Draw(t, "messages") {
					m.at = append(m.at, b.clock.Now().Unix())
					b.fill(1)
				}
			},
			"publish many": func(t *rapid.T) {
				n := rapid.IntRange(1, 400).Draw(t, "messages")
				for range n {
					m.at = append(m.at, b.clock.Now().Unix())
				}
				b.fill(n)
			},
			"wait": func(t *rapid.T) {
				b.clock.Advance(time.Duration(rapid.IntRange(1, 60).Draw(t, "seconds")) * time.Second)
			},
			"restart": func(*rapid.T) { b.restart() },
			"from a number": func(t *rapid.T) {
				n := uint64(rapid.IntRange(0, len(m.at)+5).Draw(t, "offset"))
				m.expect(t, b, int64(n), max(n, m.first))
			},
			"from a time": func(t *rapid.T) {
				at := start.Unix() + int64(rapid.IntRange(0, 600).Draw(t, "at"))
				want := m.first
				for want < uint64(len(m.at)) && m.at[want] < at {
					want++
				}
				m.expect(t, b, wire.Timestamp(at), want)
			},
			"from an end": func(*rapid.T) {
				m.expect(t, b, "first", m.first)
				m.expect(t, b, "next", uint64(len(m.at)))
				m.expect(t, b, "last", max(m.first, uint64(len(m.at))-min(1, uint64(len(m.at)))))
			},
		})
	})
}

// expect consumes all from where on and compares it with what must come from want on.
func (m *model) expect(t *rapid.T, b *bench, where any, want uint64) {
	b.idle()
	k := b.consume(1<<20, from(where))
	b.idle()
	got := k.take(k.has())
	if n := max(want, uint64(len(m.at))) - want; uint64(len(got)) != n {
		t.Fatalf("from %v on came %d, want %d from %d on", where, len(got), n, want)
	}
	for i, d := range got {
		if offset := want + uint64(i); d.Offset != offset || string(d.Message.Body) != strconv.FormatUint(offset, 10) {
			t.Fatalf("number %d from %v on is %q at %d", i, where, d.Message.Body, d.Offset)
		}
	}
	k.Queue().Cancel(&k.Consumer)
}
