package stream

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/store"
)

// segment is a part of a stream that is complete.
type segment struct {
	first, end uint64 // offsets: of its first message, and behind its last
	last       int64  // when its last message arrived, Unix milliseconds
	bytes      uint64 // of its records
	before     uint64 // bytes of all segments that the stream ever had before it

	put *store.Put // nil if it was read from disk
}

func (g *segment) fields() []uint64 {
	return []uint64{g.first, g.end, uint64(g.last), g.bytes, g.before}
}

// AppendTo appends what the store keeps: its fields as varints.
func (g *segment) AppendTo(dst []byte) []byte {
	for _, v := range g.fields() {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

// Size is the length of that.
func (g *segment) Size() int { return len(g.AppendTo(nil)) }

func decodeSegment(b []byte) (*segment, error) {
	g := &segment{}
	last := uint64(0)
	for _, field := range []*uint64{&g.first, &g.end, &last, &g.bytes, &g.before} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, message.ErrEncoding
		}
		*field, b = v, b[n:]
	}
	g.last = int64(last)
	return g, nil
}

// segmentWindow is how many segments are in memory at each end.
const segmentWindow = 64

// segments are the complete segments of a stream, numbered from 0 on. Only the oldest and the
// newest are in memory.
type segments struct {
	store    *store.Store
	id       store.QueueID
	from, to uint64     // numbers: of the oldest, and behind the newest
	oldest   []*segment // from from on
	newest   []*segment // up to to
	bytes    uint64     // of all
}

// openSegments continues what the store has. It also returns the newest segment, nil if there
// is none.
func openSegments(s *store.Store, id store.QueueID) (g segments, newest *segment, err error) {
	g = segments{store: s, id: id, to: s.Counters(id).NextSeq}
	if err := g.load(); err != nil || len(g.oldest) == 0 {
		g.from = g.to
		return g, nil, err
	}
	err = s.Scan(id, g.to-1, 1, func(_ uint64, b, _ []byte) (err error) {
		newest, err = decodeSegment(b)
		return err
	})
	if err != nil {
		return g, nil, err
	}
	if newest == nil {
		return g, nil, fmt.Errorf("segment %d is missing", g.to-1)
	}
	g.bytes = newest.before + newest.bytes - g.oldest[0].before
	return g, newest, nil
}

// load reads the oldest segments.
func (g *segments) load() error {
	behind := g.to - uint64(len(g.newest))
	return g.store.Scan(g.id, g.from, segmentWindow, func(number uint64, b, _ []byte) error {
		if number >= behind {
			return nil
		}
		s, err := decodeSegment(b)
		if err != nil {
			return fmt.Errorf("segment %d: %w", number, err)
		}
		if len(g.oldest) == 0 {
			g.from = number
		}
		g.oldest = append(g.oldest, s)
		return nil
	})
}

// close adds a segment that has just become complete, as a part of tx.
func (g *segments) close(tx *store.Tx, s *segment) {
	s.put = tx.Put(g.id, g.to, s, false)
	g.to++
	g.bytes += s.bytes
	g.newest = append(g.newest, s)
	if len(g.newest) > segmentWindow && g.newest[0].put.Committed() {
		g.newest = g.newest[1:]
	}
}

// oldestSegment returns the oldest segment, nil if there is none.
func (g *segments) oldestSegment() (*segment, error) {
	if len(g.oldest) == 0 && g.from < g.to-uint64(len(g.newest)) {
		if err := g.load(); err != nil {
			g.oldest = nil
			return nil, err
		}
	}
	if len(g.oldest) == 0 {
		g.oldest, g.newest = g.newest, nil
	}
	if len(g.oldest) == 0 {
		return nil, nil
	}
	return g.oldest[0], nil
}

// drop removes the oldest segment, which oldestSegment has returned.
func (g *segments) drop(tx *store.Tx) {
	s := g.oldest[0]
	tx.Remove(g.id, g.from, s.put)
	g.bytes -= s.bytes
	g.from++
	g.oldest = slices.Delete(g.oldest, 0, 1)
}
