// Package disk watches how full the disk of a folder is.
package disk

import (
	"context"
	"log/slog"
	"time"
)

// Interval is how often an Alarm looks at the disk.
const Interval = time.Second

// Alarm tells when the disk of a folder is nearly full, or takes no writes, and when
// that is over. Set all exported fields before the first Check.
type Alarm struct {
	Dir string
	// Limit is how much must be free, in bytes.
	Limit uint64
	// Failure is why the folder cannot be written at the moment, nil if it can.
	Failure func() error
	// Raise and Clear are called in turn, Raise first.
	Raise, Clear func()
	Logger       *slog.Logger
	// Now, if not nil, has the alarm look at once when something is sent.
	Now <-chan struct{}

	raised bool
}

// Run checks the disk until ctx ends.
func (a *Alarm) Run(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.Check()
		case <-a.Now:
			a.Check()
		case <-ctx.Done():
			return
		}
	}
}

// Check looks at the disk now. It must not be called while Run runs.
func (a *Alarm) Check() {
	free, err := Free(a.Dir)
	if err != nil {
		free = a.Limit // nothing is known
	}
	a.check(free, a.Failure())
}

func (a *Alarm) check(free uint64, failure error) {
	switch low := free < a.Limit || failure != nil; {
	case low && !a.raised:
		a.Logger.Error("the disk is nearly full or takes no writes", "free", free, "limit", a.Limit, "error", failure)
		a.raised = true
		a.Raise()
	case !low && a.raised:
		a.Logger.Info("there is room on the disk again", "free", free, "limit", a.Limit)
		a.raised = false
		a.Clear()
	}
}
