package queue

import (
	"cmp"
	"sync/atomic"
)

// windowsLimit is how much the windows of all backlogs together take in memory before
// they are kept small.
const windowsLimit = 16 << 20

// Windows is the memory that the backlogs of many queues take together. Its zero value
// is ready for use.
type Windows struct {
	used  atomic.Int64
	limit int64 // for tests; 0 for windowsLimit
}

// tight tells whether windows are to be small.
func (w *Windows) tight() bool { return w.used.Load() > cmp.Or(w.limit, windowsLimit) }
