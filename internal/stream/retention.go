package stream

import (
	"errors"
	"time"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
)

// roll completes the current segment as a part of tx, and begins another.
func (s *Stream) roll(tx *store.Tx) {
	done := s.current
	done.end, done.last, done.before = s.next, s.newest, s.total
	s.segments.close(tx, &done)
	s.total += done.bytes
	s.current = segment{first: s.next}
	s.full = true
}

// retain drops the oldest segments as long as the stream is larger than it may be, or they
// are older, and sets the timer for the next. The current segment stays, and so does what is
// not written yet. Source: https://www.rabbitmq.com/docs/streams#retention.
func (s *Stream) retain() {
	tx := s.store.Begin()
	defer tx.End()
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	for {
		g, err := s.segments.oldestSegment()
		if err != nil && !errors.Is(err, store.ErrClosed) {
			s.log.Error("cannot read the segments of a stream from the data folder", "error", err)
		}
		if g == nil || err != nil {
			s.due.Stop()
			return
		}
		if !s.exceeded(g, now) {
			s.arm(g)
			return
		}
		if g.end > s.readable.Load() {
			s.full = true // Committed comes back to it
			return
		}
		s.drop(tx, g)
	}
}

// exceeded tells whether g, the oldest segment, is to go.
func (s *Stream) exceeded(g *segment, now time.Time) bool {
	size := s.segments.bytes + s.current.bytes
	return s.settings.MaxBytes != queue.Unlimited && size > uint64(s.settings.MaxBytes) ||
		s.settings.MaxAge != queue.Unlimited && !s.endOfLife(g).After(now)
}

func (s *Stream) endOfLife(g *segment) time.Time {
	return time.UnixMilli(g.last).Add(s.settings.MaxAge)
}

// arm sets the timer for g, the oldest segment.
func (s *Stream) arm(g *segment) {
	if s.settings.MaxAge == queue.Unlimited {
		s.due.Stop()
		return
	}
	s.due.Reset(s.endOfLife(g))
}

// drop removes g, the oldest segment.
func (s *Stream) drop(tx *store.Tx, g *segment) {
	if g.first < s.gaps {
		tx.Purge(s.id, g.first, g.end)
	} else {
		tx.PurgeKnown(s.id, g.first, g.end, g.end-g.first, g.bytes)
	}
	s.segments.drop(tx)
	s.first = g.end
	s.tail.dropBelow(s.first)
}
