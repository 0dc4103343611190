package store

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestConcurrentUse runs publishers, consumers and readers of some queues at the same time, with the disk failing now and then.
func TestConcurrentUse(t *testing.T) {
	const queues, messages = 4, 2000
	s := openFailing(t)
	type message struct {
		seq uint64
		p   *Put
	}
	var wg, readers sync.WaitGroup
	stop := make(chan struct{})
	for q := QueueID(1); q <= queues; q++ {
		ready := make(chan message, 50)
		wg.Go(func() {
			defer close(ready)
			for seq := range uint64(messages) {
				tx := s.Begin()
				p := tx.Put(q, seq, blob(fmt.Sprint(q, "/", seq)), seq%5 == 0)
				tx.Put(q+queues, seq, blob("copy"), false)
				ready <- message{seq, p}
				if seq%3 == 0 {
					tx.Commit(printNothing{}, seq)
				} else {
					tx.End()
				}
			}
		})
		wg.Go(func() {
			for m := range ready {
				tx := s.Begin()
				tx.Delivered(q, m.seq)
				if m.seq%10 == 1 {
					tx.Mark(q, m.seq, []byte("kept"))
				} else {
					tx.Remove(q, m.seq, m.p)
				}
				tx.End()
			}
		})
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = s.Scan(q, 0, 100, func(seq uint64, record, mark []byte) error {
					if got, want := string(record), fmt.Sprint(q, "/", seq); got != want {
						t.Errorf("record %d/%d is %q", q, seq, got)
					}
					return nil
				})
				_ = s.Counters(q)
			}
		})
	}
	for _, kind := range []string{"log", "sync", "write"} {
		s.fault.set(fmt.Errorf("injected"), 20, 3, faultKinds[kind])
		_ = s.Begin().Wait(t.Context())
	}
	wg.Wait()
	s.fault.heal()
	settle(t, s.Store)
	close(stop)
	readers.Wait()
	for q := QueueID(1); q <= queues; q++ {
		var want []scanned
		for seq := uint64(1); seq < messages; seq += 10 {
			want = append(want, scanned{seq, fmt.Sprint(q, "/", seq), "kept"})
		}
		wantScan(t, s.Store, q, want...)
		if got, want := s.Counters(q), (Counters{Messages: messages / 10, NextSeq: messages, Delivered: messages - 1}); got.Messages != want.Messages || got.NextSeq != want.NextSeq || got.Delivered != want.Delivered {
			t.Errorf("queue %d: %+v, want %+v", q, got, want)
		}
		if got := s.Counters(q + queues); got.Messages != messages {
			t.Errorf("queue %d: %+v", q+queues, got)
		}
	}
}

type printNothing struct{}

func (printNothing) Committed(uint64, error) {}

// TestConcurrentSameRecord removes each record from two goroutines at once, as an acknowledgement and an expiry may.
func TestConcurrentSameRecord(t *testing.T) {
	s := open(t, vfs.NewMem())
	for seq := range uint64(2000) {
		tx := s.Begin()
		p := tx.Put(1, seq, blob("x"), seq%2 == 0)
		tx.End()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				tx := s.Begin()
				tx.Remove(1, seq, p)
				tx.End()
			})
		}
		wg.Wait()
	}
	barrier(t, s)
	wantScan(t, s, 1)
	if c := s.Counters(1); c.Messages != 0 || c.Bytes != 0 || c.TransientMessages != 0 {
		t.Errorf("counters %+v", c)
	}
}
