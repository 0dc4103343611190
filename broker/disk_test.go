package broker

import (
	"errors"
	"log/slog"
	"testing"
)

// alarms counts them.
type alarms struct {
	on     bool
	reason string
	n      int
}

func (a *alarms) Block(reason string) { a.on, a.reason, a.n = true, reason, a.n+1 }
func (a *alarms) Unblock()            { a.on = false }

func TestDisk(t *testing.T) {
	var free uint64
	var freeErr, failure error
	var a alarms
	d := &disk{
		limit: 100, alarm: &a, log: slog.New(slog.DiscardHandler),
		free: func() (uint64, error) { return free, freeErr }, err: func() error { return failure },
	}
	for _, step := range []struct {
		name             string
		free             uint64
		freeErr, failure error
		on               bool
		n                int // alarms so far
	}{
		{"enough", 100, nil, nil, false, 0},
		{"too little", 99, nil, nil, true, 1},
		{"still too little", 0, nil, nil, true, 1},
		{"enough again", 1000, nil, nil, false, 1},
		{"nothing known", 0, errors.New("no such disk"), nil, false, 1},
		{"no writes", 1000, nil, errors.New("read-only"), true, 2},
		{"writes again", 1000, nil, nil, false, 2},
	} {
		free, freeErr, failure = step.free, step.freeErr, step.failure
		d.check()
		if a.on != step.on || a.n != step.n {
			t.Errorf("%s: alarm %v, the %d.; want %v, the %d.", step.name, a.on, a.n, step.on, step.n)
		}
	}
	if a.reason != "low on disk" {
		t.Errorf("reason %q", a.reason)
	}
}

func TestFreeSpace(t *testing.T) {
	n, err := freeSpace(t.TempDir())
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	if err == nil && (n == 0 || n > 1<<60) {
		t.Errorf("%d octets are free", n)
	}
}
