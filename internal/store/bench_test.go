package store

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
)

// window is a publisher that waits when so many of its commits are not confirmed.
type window chan struct{}

func (w window) Committed(_ uint64, err error) {
	if err != nil {
		panic(err)
	}
	<-w
}

func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeVerified(b, s) })
	return s
}

func perSecond(b *testing.B, messages int) {
	b.ReportMetric(float64(messages)*float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	b.ReportMetric(0, "ns/op")
}

var benchSizes = []struct {
	name  string
	bytes int
}{{"100B", 100}, {"1KiB", 1 << 10}}

// BenchmarkPut stores messages durably; each publisher has up to 1,000 that are not confirmed.
func BenchmarkPut(b *testing.B) {
	for _, size := range benchSizes {
		for _, publishers := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/publishers=%d", size.name, publishers), func(b *testing.B) {
				s := openBench(b)
				record := blob(bytes.Repeat([]byte("x"), size.bytes))
				const messages = 8000
				var seq uint64
				for b.Loop() {
					var wg sync.WaitGroup
					for i := range publishers {
						wg.Go(func() {
							w := make(window, 1000)
							for n := range uint64(messages / publishers) {
								w <- struct{}{}
								tx := s.Begin()
								tx.Put(QueueID(i), seq+n, record, false)
								tx.Commit(w, n)
							}
							for range cap(w) {
								w <- struct{}{}
							}
						})
					}
					wg.Wait()
					seq += messages
				}
				perSecond(b, messages)
			})
		}
	}
}

// BenchmarkPutAndWait is the time from Begin to the confirm of a single message.
func BenchmarkPutAndWait(b *testing.B) {
	s := openBench(b)
	record := blob(bytes.Repeat([]byte("x"), 1<<10))
	var seq uint64
	for b.Loop() {
		tx := s.Begin()
		tx.Put(1, seq, record, false)
		if err := tx.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		seq++
	}
}

// BenchmarkPutRemove stores messages durably, and removes each when some more have been stored, as a consumer that keeps up does, or one
// that lags so far behind that all are written.
func BenchmarkPutRemove(b *testing.B) {
	for _, lag := range []int{50, 20_000} {
		for _, confirmed := range []bool{false, true} {
			for _, publishers := range []int{1, 8} {
				b.Run(fmt.Sprintf("lag=%d/confirmed=%v/publishers=%d", lag, confirmed, publishers), func(b *testing.B) {
					benchmarkPutRemove(b, lag/publishers, confirmed, publishers)
				})
			}
		}
	}
}

func benchmarkPutRemove(b *testing.B, lag int, confirmed bool, publishers int) {
	s := openBench(b)
	record := blob(bytes.Repeat([]byte("x"), 1<<10))
	const messages = 80_000
	var seq uint64
	puts := make([][]*Put, publishers)
	for i := range puts {
		puts[i] = make([]*Put, lag)
	}
	b.ReportAllocs()
	for b.Loop() {
		var wg sync.WaitGroup
		for i := range publishers {
			wg.Go(func() {
				q := QueueID(i)
				w := make(window, 1000)
				for n := range uint64(messages / publishers) {
					tx := s.Begin()
					p := tx.Put(q, seq+n, record, false)
					if confirmed {
						w <- struct{}{}
						tx.Commit(w, n)
					} else {
						tx.End()
					}
					slot := &puts[i][(seq+n)%uint64(lag)]
					if *slot != nil {
						tx := s.Begin()
						tx.Delivered(q, seq+n-uint64(lag))
						tx.Remove(q, seq+n-uint64(lag), *slot)
						tx.End()
					}
					*slot = p
				}
				for range cap(w) {
					w <- struct{}{}
				}
			})
		}
		wg.Wait()
		seq += uint64(messages / publishers)
	}
	perSecond(b, messages)
}

const million = 1_000_000

// fill stores a million messages of 1 KiB in queue 1.
func fill(b *testing.B, s *Store) {
	b.Helper()
	record := blob(bytes.Repeat([]byte("x"), 1<<10))
	for seq := range uint64(million) {
		tx := s.Begin()
		tx.Put(1, seq, record, false)
		tx.End()
	}
	barrier(b, s)
}

// BenchmarkFillAndDrain stores a million messages, and then reads them a thousand at a time and removes them.
func BenchmarkFillAndDrain(b *testing.B) {
	for b.Loop() {
		s := openBench(b)
		fill(b, s)
		filled := b.Elapsed()
		var from uint64
		for n := 0; n < million; {
			tx := s.Begin()
			err := s.Scan(1, from, 1000, func(seq uint64, record, _ []byte) error {
				tx.RemoveScanned(1, seq, len(record))
				from = seq + 1
				n++
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			tx.End()
		}
		barrier(b, s)
		b.ReportMetric(million/filled.Seconds(), "filled/s")
		b.ReportMetric(million/(b.Elapsed()-filled).Seconds(), "drained/s")
	}
}

// BenchmarkReopen opens a store of a million messages after a clean end, and reads the first.
func BenchmarkReopen(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, s)
	tx := s.Begin()
	for seq := range uint64(million / 2) {
		tx.RemoveScanned(1, seq, 1<<10)
	}
	tx.End()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if first := scan(b, s, 1, 0, 1); first[0].seq != million/2 {
			b.Fatal(first[0].seq)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
