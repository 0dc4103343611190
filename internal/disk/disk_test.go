package disk

import (
	"errors"
	"log/slog"
	"testing"
)

func TestAlarm(t *testing.T) {
	on, n := false, 0
	a := &Alarm{
		Limit: 100, Logger: slog.New(slog.DiscardHandler),
		Raise: func() { on, n = true, n+1 }, Clear: func() { on = false },
	}
	for _, step := range []struct {
		name    string
		free    uint64
		failure error
		on      bool
		n       int // alarms so far
	}{
		{"enough", 100, nil, false, 0},
		{"too little", 99, nil, true, 1},
		{"still too little", 0, nil, true, 1},
		{"enough again", 1000, nil, false, 1},
		{"no writes", 1000, errors.New("read-only"), true, 2},
		{"writes again", 1000, nil, false, 2},
	} {
		a.check(step.free, step.failure)
		if on != step.on || n != step.n {
			t.Errorf("%s: alarm %v, the %d.; want %v, the %d.", step.name, on, n, step.on, step.n)
		}
	}
}

func TestCheckOfAFolderThatIsNotThere(t *testing.T) {
	a := &Alarm{
		Dir: "no such folder", Limit: 1 << 60, Logger: slog.New(slog.DiscardHandler),
		Failure: func() error { return nil }, Raise: func() { t.Error("an alarm, although nothing is known") },
	}
	a.Check()
}

func TestFree(t *testing.T) {
	n, err := Free(t.TempDir())
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	if err == nil && (n == 0 || n > 1<<60) {
		t.Errorf("%d octets are free", n)
	}
}
