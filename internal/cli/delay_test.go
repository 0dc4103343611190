package cli

import (
	"testing"
	"time"
)

func TestParseDelay(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"500ms":  500 * time.Millisecond,
		"30s":    30 * time.Second,
		"1h30m":  90 * time.Minute,
		"7d":     7 * 24 * time.Hour,
		"1d12h":  36 * time.Hour,
		"0s":     0,
		"399d1s": 399*24*time.Hour + time.Second,
	} {
		if got, err := parseDelay(s); got != want || err != nil {
			t.Errorf("%q: %s, %v; want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"", "d", "7", "-5s", "1.5d", "-1d", "1d-2h", "1h1d", "99999999d", "1d2562047h", "tomorrow"} {
		if got, err := parseDelay(s); err == nil {
			t.Errorf("%q is taken for %s", s, got)
		}
	}
}
