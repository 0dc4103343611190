package store

import (
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// fault makes the operations of a file system fail, from a moment on until it heals.
type fault struct {
	mu   sync.Mutex
	err  error // nil: all is well
	kind func(errorfs.Op) bool
	skip int // operations of the kind that still succeed
	only int // heal after so many failures; 0: never
	hits int // operations that failed
}

var _ errorfs.Injector = (*fault)(nil)

func (f *fault) String() string { return "fault" }

// MaybeError implements errorfs.Injector.
func (f *fault) MaybeError(op errorfs.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil || op.Kind == errorfs.OpLock || !f.kind(op) {
		return nil
	}
	if f.skip > 0 {
		f.skip--
		return nil
	}
	f.hits++
	err := f.err
	if f.hits == f.only {
		f.err = nil
	}
	return err
}

func (f *fault) set(err error, skip, only int, kind func(errorfs.Op) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.kind, f.skip, f.only, f.hits = err, kind, skip, only, 0
}

func (f *fault) heal() { f.set(nil, 0, 0, nil) }

// paused lets all operations succeed while fn runs.
func (f *fault) paused(fn func()) {
	f.mu.Lock()
	err := f.err
	f.err = nil
	f.mu.Unlock()
	fn()
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
}

func (f *fault) on() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err != nil
}

func (f *fault) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

func isWrite(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

func writesTo(part string) func(errorfs.Op) bool {
	return func(op errorfs.Op) bool { return isWrite(op) && strings.Contains(op.Path, part) }
}

var faultKinds = map[string]func(errorfs.Op) bool{
	"write": isWrite,
	"sync": func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
	},
	"log":      writesTo(".log"),
	"table":    writesTo(".sst"),
	"manifest": writesTo("MANIFEST"),
	"marker":   writesTo("marker"),
	"create":   func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite },
	"rename":   func(op errorfs.Op) bool { return op.Kind == errorfs.OpRename || op.Kind == errorfs.OpLink },
	"remove":   func(op errorfs.Op) bool { return op.Kind == errorfs.OpRemove },
}
