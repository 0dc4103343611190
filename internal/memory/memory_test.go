package memory

import (
	"log/slog"
	"math"
	"runtime"
	"slices"
	"testing"
)

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]Limit{
		"40%": {Share: 0.4}, "100 %": {Share: 1}, "2GiB": {Bytes: 2 << 30}, "800MB": {Bytes: 800e6}, "1.5 gb": {Bytes: 1.5e9},
		"1073741824": {Bytes: 1 << 30}, "64kib": {Bytes: 64 << 10}, "7B": {Bytes: 7}, "none": {Bytes: math.MaxUint64},
	} {
		if got, err := ParseLimit(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "0%", "101%", "-1", "0", "x", "NaN", "NaN%", "1e300", "40 percent", "GiB", "Inf"} {
		if got, err := ParseLimit(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestLimitOfWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		limit Limit
		known bool
		want  uint64
	}{
		{Limit{}, true, 400}, {Limit{Share: 0.5}, true, 500}, {Limit{Bytes: 7}, true, 7},
		{Limit{}, false, math.MaxUint64}, {Limit{Bytes: 7}, false, 7},
	} {
		if got := c.limit.Of(1000, c.known); got != c.want {
			t.Errorf("%+v: %d, want %d", c.limit, got, c.want)
		}
	}
}

func TestAvailable(t *testing.T) {
	n, known := Available()
	if runtime.GOOS == "linux" && !known {
		t.Fatal("not known")
	}
	if known && n < 64<<20 {
		t.Errorf("%d bytes", n)
	}
}

func TestUsedFollowsTheHeap(t *testing.T) {
	before := Used()
	b := make([]byte, 64<<20)
	for i := range b {
		b[i] = 1
	}
	if more := Used(); more < before+60<<20 {
		t.Errorf("%d, and %d with 64 MiB more", before, more)
	}
	runtime.KeepAlive(b)
	collect()
	if after := Used(); after > before+30<<20 {
		t.Errorf("%d at first, %d at the end", before, after)
	}
}

func TestAlarm(t *testing.T) {
	var happened []string
	a := Alarm{
		Limit: 100, Logger: slog.New(slog.DiscardHandler),
		Raise: func() { happened = append(happened, "raise") }, Clear: func() { happened = append(happened, "clear") },
	}
	var used, garbage uint64
	for _, step := range []struct{ used, garbage uint64 }{
		{90, 0}, {90, 50}, {101, 50}, {120, 0}, {101, 0}, {100, 50}, {50, 0}, {101, 1},
	} {
		used, garbage = step.used, step.garbage
		a.check(func() uint64 { return used + garbage }, func() { garbage = 0 })
	}
	if want := []string{"raise", "clear", "raise"}; !slices.Equal(happened, want) {
		t.Errorf("%v, want %v", happened, want)
	}
}
