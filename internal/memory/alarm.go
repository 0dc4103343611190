package memory

import (
	"context"
	"log/slog"
	"time"
)

// Interval is how often an Alarm looks at the memory.
const Interval = time.Second

// Alarm tells when more memory is used than the limit, and when that is over. Set all
// exported fields before the first Check.
type Alarm struct {
	// Limit is how much may be used, in bytes.
	Limit uint64
	// Used is how much is used, in bytes, garbage included.
	Used func() uint64
	// Raise and Clear are called in turn, Raise first.
	Raise, Clear func()
	Logger       *slog.Logger

	raised bool
}

// Run checks the memory until ctx ends.
func (a *Alarm) Run(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.Check()
		case <-ctx.Done():
			return
		}
	}
}

// Check looks at the memory now. It must not be called while Run runs.
func (a *Alarm) Check() { a.check(a.Used, collect) }

// check believes that there is too much only once garbage has been collected.
func (a *Alarm) check(used func() uint64, collect func()) {
	n := used()
	if n > a.Limit {
		collect()
		n = used()
	}
	switch high := n > a.Limit; {
	case high && !a.raised:
		a.Logger.Error("more memory is used than the limit allows; publishers wait until consumers have made room", "used", n, "limit", a.Limit)
		a.raised = true
		a.Raise()
	case !high && a.raised:
		a.Logger.Info("memory is within its limit again", "used", n, "limit", a.Limit)
		a.raised = false
		a.Clear()
	}
}
