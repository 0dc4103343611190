package bench

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Lateness is the distribution of how long after their time messages arrived, from one microsecond to an hour, and of how
// many were early. The time of a message that was not delayed is that of its publishing. It is safe for concurrent use.
type Lateness struct {
	mu       sync.Mutex
	hist     *hdrhistogram.Histogram // microseconds
	earliest time.Duration
	early    int64
}

const latest = time.Hour

// NewLateness returns an empty distribution.
func NewLateness() *Lateness {
	return &Lateness{hist: hdrhistogram.New(1, latest.Microseconds(), 3), earliest: math.MaxInt64}
}

// Record adds one message; negative is early.
func (l *Lateness) Record(late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.earliest = min(l.earliest, late)
	if late < 0 {
		l.early++
	}
	_ = l.hist.RecordValue(max(0, min(late, latest)).Microseconds()) // cannot be out of range
}

// add adds all of other, which nobody uses any more.
func (l *Lateness) add(other *Lateness) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hist.Merge(other.hist)
	l.earliest = min(l.earliest, other.earliest)
	l.early += other.early
}

// Early is how many messages came before their time.
func (l *Lateness) Early() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.early
}

// Summary is what is said of a Lateness, in milliseconds.
type Summary struct {
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	Max      float64 `json:"max"`
	Earliest float64 `json:"earliest"` // the least; negative is before its time
}

// Summary returns the median, the 99th percentile, the maximum and the least.
func (l *Lateness) Summary() Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hist.TotalCount() == 0 {
		return Summary{}
	}
	return Summary{
		P50: milliseconds(l.hist.ValueAtQuantile(50)), P99: milliseconds(l.hist.ValueAtQuantile(99)),
		Max: milliseconds(l.hist.Max()), Earliest: milliseconds(l.earliest.Microseconds()),
	}
}

func milliseconds(us int64) float64 { return float64(us) / 1000 }

// Bucket counts the messages that were later than the bucket before it, and at most UpTo late.
type Bucket struct {
	UpTo  time.Duration `json:"up_to_ns"` // 0 means without bound
	Count int64         `json:"count"`
}

// Buckets returns the counts from the first to the last bucket that is not empty.
func (l *Lateness) Buckets() []Bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []Bucket{}
	for _, us := range []int64{50, 100, 250, 500, 1e3, 2e3, 3e3, 5e3, 8e3, 12e3, 20e3, 50e3, 100e3, 250e3, 500e3, 1e6, 2e6, 5e6, 10e6, 30e6} {
		all = append(all, Bucket{UpTo: time.Duration(us) * time.Microsecond})
	}
	all = append(all, Bucket{})
	for _, bar := range l.hist.Distribution() {
		i := 0
		for all[i].UpTo != 0 && bar.From > all[i].UpTo.Microseconds() {
			i++
		}
		all[i].Count += bar.Count
	}
	for len(all) > 0 && all[0].Count == 0 {
		all = all[1:]
	}
	for len(all) > 0 && all[len(all)-1].Count == 0 {
		all = all[:len(all)-1]
	}
	return all
}
