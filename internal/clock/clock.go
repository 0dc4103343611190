// Package clock is where the broker takes its time from: the machine's clock in
// production, a clock that only moves when told to in tests.
//
// A timer's function may find that its moment has been postponed meanwhile, so it
// reads Now and decides again; nothing due is ever found early, because the real
// clock never fires before its time.
package clock

import "time"

// Clock tells the time and calls back when a moment is reached.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc makes a timer that calls f at the moment given to Reset. It is
	// stopped at first. f must not block for long.
	AfterFunc(f func()) Timer
}

// Timer calls its function once for each Reset that is not overtaken by another
// Reset or by Stop.
type Timer interface {
	// Reset arms the timer for at, in place of any moment set before. A moment
	// that is past fires at once.
	Reset(at time.Time)
	// Stop disarms the timer. A call that has begun already goes on.
	Stop()
}

// Real is the machine's clock. Inside a testing/synctest bubble it is the bubble's.
func Real() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(f func()) Timer {
	t := time.AfterFunc(time.Hour, f)
	t.Stop()
	return realTimer{t}
}

type realTimer struct{ t *time.Timer }

func (t realTimer) Reset(at time.Time) { t.t.Reset(time.Until(at)) }
func (t realTimer) Stop()              { t.t.Stop() }
