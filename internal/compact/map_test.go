package compact

import (
	"maps"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMapIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Map[int, int]
		want := map[int]int{}
		all, keys := m.All(), m.Keys()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			from, n := rapid.IntRange(0, 5000).Draw(t, "from"), rapid.IntRange(1, 5000).Draw(t, "n")
			set := rapid.Bool().Draw(t, "set")
			for k := from; k < from+n; k++ {
				if set {
					m.Set(k, n)
					want[k] = n
				} else {
					m.Delete(k)
					delete(want, k)
				}
			}
			if got := maps.Collect(all); !maps.Equal(got, want) || m.Len() != len(want) {
				t.Fatalf("%d entries, want %d", m.Len(), len(want))
			}
			if got := len(slices.Collect(keys)); got != len(want) {
				t.Fatalf("%d keys, want %d", got, len(want))
			}
			if v, ok := m.Get(from); ok != set || set && v != n {
				t.Fatalf("Get: %d, %v", v, ok)
			}
		}
	})
}

func TestMapGivesMemoryBack(t *testing.T) {
	const n = 1 << 18
	before := heap()
	var m Map[int, [2]int]
	for k := range n {
		m.Set(k, [2]int{})
	}
	full := heap() - before
	for k := range n - 10 {
		m.Delete(k)
	}
	if left := heap() - before; left > full/10 {
		t.Errorf("%d KiB with %d entries, and %d KiB with %d", full>>10, n, left>>10, m.Len())
	}
}

func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
