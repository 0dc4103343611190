package duration

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"0s": 0, "500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "7d": 7 * day, "1d12h": 36 * time.Hour, "1.5s": 1500 * time.Millisecond,
	} {
		if got, err := Parse(s); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "d", "0d", "5", "-1s", "-1d", "1d-1h", "1h1d", "1d1d", "36501d", "1x", "99999999999999999999d", "9999999h9999999h"} {
		if got, err := Parse(s); err == nil {
			t.Errorf("%q is taken for %v", s, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "1h": time.Hour, "1h0m5s": time.Hour + 5*time.Second, "10m": 10 * time.Minute, "1d": day, "400d": 400 * day,
		"1d1h": 25 * time.Hour, "1.5s": 1500*time.Millisecond + 300, "10s": 10 * time.Second, "20m10s": 20*time.Minute + 10*time.Second,
	} {
		if got := Format(d); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
	}
}

func TestParseReadsWhatFormatWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(longest*day/time.Millisecond)).Draw(t, "ms")) * time.Millisecond
		if got, err := Parse(Format(d)); err != nil || got != d {
			t.Fatalf("%v is written %s, which is read as %v, %v", d, Format(d), got, err)
		}
	})
}
