package bench

import (
	"bytes"
	"compress/zlib"
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestStampRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Stamp{
			Producer: rapid.IntRange(0, MaxProducers-1).Draw(t, "producer"),
			Number:   rapid.Uint64Range(0, 1<<numberBits-1).Draw(t, "number"),
			Due:      time.Unix(0, rapid.Int64().Draw(t, "due")),
		}
		body := make([]byte, StampSize+rapid.IntRange(0, 8).Draw(t, "more"))
		s.Put(body)
		if got, ok := ReadStamp(body); !ok || got != s {
			t.Fatalf("%v is read as %v, %t", s, got, ok)
		}
		if _, ok := ReadStamp(body[:StampSize-1]); ok {
			t.Fatal("a short body has a stamp")
		}
	})
}

func TestLedgerCountsEachMessageOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger(3)
		have := map[Stamp]bool{}
		var duplicates, foreign int64
		near := rapid.Uint64Range(0, 70)
		far := rapid.Uint64Range(1<<pageBits-2, 1<<pageBits+2)
		for range rapid.IntRange(0, 200).Draw(t, "arrivals") {
			s := Stamp{Producer: rapid.IntRange(0, 3).Draw(t, "producer"), Number: rapid.OneOf(near, far).Draw(t, "number")}
			fresh := s.Producer < 3 && !have[s]
			switch {
			case s.Producer == 3:
				foreign++
			case have[s]:
				duplicates++
			}
			if l.Arrive(s) != fresh {
				t.Fatalf("%v counts as fresh: %t", s, !fresh)
			}
			if fresh {
				have[s] = true
			}
		}
		if l.Received() != int64(len(have)) || l.Duplicates() != duplicates || l.Foreign() != foreign {
			t.Fatalf("received %d, duplicates %d, foreign %d, want %d, %d, %d", l.Received(), l.Duplicates(), l.Foreign(), len(have), duplicates, foreign)
		}
	})
}

func TestLedgerIsCompleteWhenAllHaveArrived(t *testing.T) {
	for _, known := range []string{"before", "after"} {
		l := NewLedger(2)
		if known == "before" {
			l.Expect(2000)
		}
		var wg sync.WaitGroup
		for producer := range 2 {
			wg.Go(func() {
				for i := range uint64(1000) {
					l.Arrive(Stamp{Producer: producer, Number: i})
				}
			})
		}
		wg.Wait()
		if known == "after" {
			select {
			case <-l.Complete():
				t.Fatal("complete before it is known how many there are")
			default:
			}
			l.Expect(2000)
		}
		<-l.Complete()
	}
}

// Brokers confirm in any order, one by one or many at a time; the window must know how many are confirmed.
func TestWindowCountsConfirms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWindow()
		n := rapid.IntRange(1, 40).Draw(t, "messages")
		confirmed := make([]bool, n+1)
		for range rapid.IntRange(0, 60).Draw(t, "confirms") {
			number := rapid.IntRange(1, n).Draw(t, "number")
			multiple := rapid.Bool().Draw(t, "multiple")
			w.confirm(uint64(number), multiple)
			confirmed[number] = true
			for i := 1; multiple && i <= number; i++ {
				confirmed[i] = true
			}
		}
		open := n
		for _, c := range confirmed {
			if c {
				open--
			}
		}
		if !w.room(uint64(n), open+1) || w.room(uint64(n), open) {
			t.Fatalf("of %d messages %d are unconfirmed; the window has %d confirmed", n, open, w.confirmed.Load())
		}
	})
}

func TestLateness(t *testing.T) {
	l, more := NewLateness(), NewLateness()
	for ms := range 99 {
		l.Record(time.Duration(ms+1) * time.Millisecond)
	}
	more.Record(-3 * time.Millisecond)
	l.add(more)
	if l.Early() != 1 {
		t.Errorf("%d early, want 1", l.Early())
	}
	s := l.Summary()
	if math.Abs(s.P50-49) > 1.1 || math.Abs(s.P99-98) > 1.1 || math.Abs(s.Max-99) > 0.2 || s.Earliest != -3 {
		t.Errorf("summary %+v", s)
	}
	var counted int64
	last := time.Duration(0)
	for _, b := range l.Buckets() {
		if counted += b.Count; b.UpTo <= last {
			t.Errorf("bucket %v follows %v", b.UpTo, last)
		}
		last = b.UpTo
	}
	if counted != 100 {
		t.Errorf("the buckets count %d of 100", counted)
	}
	if empty := NewLateness(); empty.Summary() != (Summary{}) || len(empty.Buckets()) != 0 {
		t.Error("an empty distribution has a summary or buckets")
	}
}

func TestPaceNeverRunsAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pace{start: time.Unix(0, 0), rate: rapid.Float64Range(0.5, 1e6).Draw(t, "rate")}
		now := p.start.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "after")))
		n := p.due(now, math.MaxInt64)
		if at := p.at(n - 1); at.After(now.Add(time.Microsecond)) {
			t.Fatalf("at %v %d events are due, the last of them at %v", now, n, at)
		}
		if next := p.at(n); next.Before(now.Add(-time.Microsecond)) {
			t.Fatalf("at %v only %d events are due, the next since %v", now, n, next)
		}
	})
}

func TestCompareTakesTheMedianOfTheRoundsRatios(t *testing.T) {
	rounds := func(values ...float64) (all []Result) {
		for _, v := range values {
			var r Result
			r.add("rate", v, "/s")
			r.add("none", 0, "ms")
			all = append(all, r)
		}
		return all
	}
	got := Compare(rounds(10, 60, 20), rounds(10, 20, 10))
	want := Ratio{Name: "rate", Unit: "/s", First: 20, Second: 10, Ratio: 2, Low: 1, High: 3}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v alone", got, want)
	}
	if Compare(rounds(1, 2), rounds(1)) != nil {
		t.Error("rounds that do not belong together are compared")
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 2}, 2}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("nothing has a median")
	}
}

func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, n := rapid.IntRange(0, 100).Draw(t, "total"), rapid.IntRange(1, 20).Draw(t, "n")
		names := make([]string, total)
		sum, parts := 0, 0
		for i := range n {
			sum += share(total, n, i)
			parts += len(part(names, n, i))
		}
		if sum != total || parts != total {
			t.Fatalf("%d in %d shares are %d, in %d parts %d", total, n, sum, n, parts)
		}
	})
}

// What compresses would make a broker that compresses look small.
func TestBodiesDoNotCompress(t *testing.T) {
	b := newBodies(100)
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	const n = 300
	for i := range uint64(n) {
		body := b.next(Stamp{Number: i})
		if s, ok := ReadStamp(body); !ok || s.Number != i {
			t.Fatalf("body %d begins with %v", i, s)
		}
		if _, err := w.Write(body[StampSize:]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || packed.Len() < n*(100-StampSize)*9/10 {
		t.Errorf("%d bytes are packed into %d, %v", n*(100-StampSize), packed.Len(), err)
	}
}
