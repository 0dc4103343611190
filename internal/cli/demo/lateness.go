package demo

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Lateness is the distribution of how late messages were, from one microsecond to a minute.
type Lateness struct {
	hist *hdrhistogram.Histogram // microseconds
}

const latest = time.Minute

// NewLateness returns an empty distribution.
func NewLateness() *Lateness {
	return &Lateness{hist: hdrhistogram.New(1, latest.Microseconds(), 3)}
}

// Record adds one delivery; what is later than a minute counts as a minute.
func (l *Lateness) Record(late time.Duration) {
	_ = l.hist.RecordValue(min(late, latest).Microseconds()) // cannot be out of range
}

// Summary returns the median, the 99th percentile and the maximum.
func (l *Lateness) Summary() Summary {
	return Summary{
		P50: milliseconds(l.hist.ValueAtQuantile(50)),
		P99: milliseconds(l.hist.ValueAtQuantile(99)),
		Max: milliseconds(l.hist.Max()),
	}
}

// A Bucket counts the deliveries that were later than the bucket before it, and at most UpTo late.
type Bucket struct {
	UpTo  time.Duration // 0 means without bound
	Count int64
}

// Buckets returns the counts from the first to the last bucket that is not empty.
func (l *Lateness) Buckets() []Bucket {
	var bounds []time.Duration
	for _, ms := range []float64{0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 125, 250, 500, 1000} {
		bounds = append(bounds, time.Duration(ms*float64(time.Millisecond)))
	}
	counts := make([]int64, len(bounds)+1)
	for _, bar := range l.hist.Distribution() {
		i := 0
		for i < len(bounds) && bar.To > bounds[i].Microseconds() {
			i++
		}
		counts[i] += bar.Count
	}
	first, last := -1, -1
	for i, n := range counts {
		if n > 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return nil
	}
	var buckets []Bucket
	for i := first; i <= last; i++ {
		b := Bucket{Count: counts[i]}
		if i < len(bounds) {
			b.UpTo = bounds[i]
		}
		buckets = append(buckets, b)
	}
	return buckets
}

func milliseconds(us int64) float64 {
	return math.Round(float64(us)/10) / 100
}
