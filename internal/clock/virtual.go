package clock

import (
	"container/heap"
	"sync"
	"time"
)

// Virtual is a clock that stands still until Advance moves it.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	timers timerHeap
	serial uint64

	advancing sync.Mutex
}

// NewVirtual returns a clock that shows start.
func NewVirtual(start time.Time) *Virtual { return &Virtual{now: start.Round(0)} }

// Now is the time that the clock shows.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// AfterFunc makes a stopped timer. Its function runs inside Advance.
func (v *Virtual) AfterFunc(f func()) Timer {
	return &virtualTimer{clock: v, f: f, index: -1}
}

// Advance moves the clock by d. Every timer due until then fires in order of its
// moment, with the clock showing that moment, before Advance returns; timers that
// those functions set fire too when they are due within d. A negative d is ignored.
func (v *Virtual) Advance(d time.Duration) {
	v.advancing.Lock()
	defer v.advancing.Unlock()
	v.mu.Lock()
	until := v.now.Add(max(d, 0))
	for len(v.timers) > 0 && !v.timers[0].at.After(until) {
		t := heap.Pop(&v.timers).(*virtualTimer)
		if t.at.After(v.now) {
			v.now = t.at
		}
		v.mu.Unlock()
		t.f()
		v.mu.Lock()
	}
	v.now = until
	v.mu.Unlock()
}

type virtualTimer struct {
	clock  *Virtual
	f      func()
	at     time.Time
	serial uint64 // breaks ties in the order of Reset
	index  int    // in the heap; -1 when stopped
}

func (t *virtualTimer) Reset(at time.Time) {
	v := t.clock
	v.mu.Lock()
	defer v.mu.Unlock()
	v.serial++
	t.at, t.serial = at.Round(0), v.serial
	if t.index < 0 {
		heap.Push(&v.timers, t)
	} else {
		heap.Fix(&v.timers, t.index)
	}
}

func (t *virtualTimer) Stop() {
	v := t.clock
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.index >= 0 {
		heap.Remove(&v.timers, t.index)
	}
}

type timerHeap []*virtualTimer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].serial < h[j].serial
	}
	return h[i].at.Before(h[j].at)
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*virtualTimer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}
