package session

import (
	"testing"

	"pgregory.net/rapid"
)

// publisher keeps account of confirms as clients do. Some settle, on an ack with
// multiple set, every message up to it that is not settled yet. Others report
// messages in order, and take such an ack for all that they have not reported, even
// those that were nacked out of turn.
type publisher struct {
	t        *rapid.T
	want     map[uint64]bool // by sequence number, whether it was acked
	settled  map[uint64]bool
	reported uint64 // all up to here
}

func (p *publisher) confirm(tag uint64, multiple, ack bool) {
	for seq := p.reported + 1; multiple && seq <= tag; seq++ {
		if !p.want[seq] {
			p.t.Fatalf("an ack up to %d reaches over %d, which was not acked", tag, seq)
		}
		if _, done := p.settled[seq]; !done {
			p.settle(seq, ack)
		}
	}
	if !multiple {
		p.settle(tag, ack)
	}
	for {
		if _, done := p.settled[p.reported+1]; !done {
			return
		}
		p.reported++
	}
}

func (p *publisher) settle(seq uint64, ack bool) {
	if _, done := p.settled[seq]; done {
		p.t.Fatalf("message %d was settled twice", seq)
	}
	if want, resolved := p.want[seq]; !resolved || want != ack {
		p.t.Fatalf("message %d was told ack %v; resolved %v, ack %v", seq, ack, resolved, want)
	}
	p.settled[seq] = ack
}

func TestConfirmsTellTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &publisher{t: t, want: map[uint64]bool{}, settled: map[uint64]bool{}}
		c := newConfirms(p.confirm)
		order := rapid.Permutation(sequence(rapid.IntRange(1, 60).Draw(t, "messages"))).Draw(t, "order")
		if rapid.Bool().Draw(t, "mostly in order") {
			order = sequence(len(order))
			for range rapid.IntRange(0, 3).Draw(t, "swaps") {
				i, j := rapid.IntRange(0, len(order)-1).Draw(t, "i"), rapid.IntRange(0, len(order)-1).Draw(t, "j")
				order[i], order[j] = order[j], order[i]
			}
		}
		for _, seq := range order {
			p.want[seq] = rapid.IntRange(0, 4).Draw(t, "nack") > 0
			c.resolve(seq, p.want[seq])
			if rapid.Bool().Draw(t, "flush") {
				c.flush()
			}
		}
		c.flush()
		if len(p.settled) != len(order) || len(c.ahead) != 0 {
			t.Fatalf("%d of %d messages were settled, %d are remembered", len(p.settled), len(order), len(c.ahead))
		}
	})
}

func sequence(n int) []uint64 {
	s := make([]uint64, n)
	for i := range s {
		s[i] = uint64(i + 1)
	}
	return s
}

func TestConfirmsAreGathered(t *testing.T) {
	type confirm struct {
		tag           uint64
		multiple, ack bool
	}
	var got []confirm
	c := newConfirms(func(tag uint64, multiple, ack bool) { got = append(got, confirm{tag, multiple, ack}) })
	for seq := uint64(1); seq <= 100; seq++ {
		c.resolve(seq, true)
	}
	c.flush()
	c.resolve(101, true)
	c.flush()
	c.flush()
	if len(got) != 2 || got[0] != (confirm{100, true, true}) || got[1] != (confirm{101, false, true}) {
		t.Errorf("got %v", got)
	}
}
