// Package duration reads and writes times as people give them to Dormouse: Go's durations, with days before them.
package duration

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// longest keeps a time within what Go can count. In days.
const longest = 100 * 365

// Parse reads a time that is not negative, such as 500ms, 30s, 5m, 1h30m, 7d or 1d12h.
func Parse(s string) (time.Duration, error) {
	rest, days := s, time.Duration(0)
	if before, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(before, 10, 32)
		if err != nil || n > longest {
			return 0, wrong(s)
		}
		days, rest = time.Duration(n)*day, after
	}
	if rest == "" && days > 0 {
		return days, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || days+d < 0 {
		return 0, wrong(s)
	}
	return days + d, nil
}

func wrong(s string) error {
	return fmt.Errorf("%q is not a time such as 500ms, 30s, 5m, 1h30m or 7d", s)
}

// Format writes a time to the millisecond, with its days apart and not as hours by the hundred. [Parse] reads it.
func Format(d time.Duration) string {
	d = d.Round(time.Millisecond)
	days, rest := d/day, d%day
	switch {
	case days == 0:
		return brief(d)
	case rest == 0:
		return fmt.Sprintf("%dd", days)
	}
	return fmt.Sprintf("%dd%s", days, brief(rest))
}

// brief is Go's way to write a duration, without the units that are zero: 1h, not 1h0m0s.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
