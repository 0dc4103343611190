package memory

import (
	"runtime"
	"runtime/metrics"
)

// Used is how much memory Go has in use, in bytes: the heap, garbage included, stacks and
// what the runtime needs.
func Used() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64() - samples[2].Value.Uint64()
}

// collect frees what is not used any more.
func collect() { runtime.GC() }
