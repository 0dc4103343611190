package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// delayValue is a flag for a delay: a Go duration, or days before it, as in 7d or 1d12h.
type delayValue time.Duration

func (d *delayValue) Type() string { return "duration" }

func (d *delayValue) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *delayValue) Set(s string) error {
	parsed, err := parseDelay(s)
	*d = delayValue(parsed)
	return err
}

// maxDays keeps a delay within time.Duration; the ladder's own bound is far below.
const maxDays = 100 * 365

func parseDelay(s string) (time.Duration, error) {
	rest, days := s, time.Duration(0)
	if before, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(before, 10, 32)
		if err != nil || n > maxDays {
			return 0, badDelay(s)
		}
		days, rest = time.Duration(n)*24*time.Hour, after
	}
	if rest == "" && days > 0 {
		return days, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || days+d < 0 {
		return 0, badDelay(s)
	}
	return days + d, nil
}

func badDelay(s string) error {
	return fmt.Errorf("%q is not a delay such as 500ms, 30s, 5m, 1h30m or 7d", s)
}
