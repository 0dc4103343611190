package cli

import (
	"time"

	"github.com/dormousemq/dormouse/internal/duration"
)

// delayValue is a flag for a delay: a Go duration, or days before it, as in 7d or 1d12h.
type delayValue time.Duration

func (d *delayValue) Type() string { return "duration" }

func (d *delayValue) String() string {
	if *d == 0 {
		return ""
	}
	return duration.Format(time.Duration(*d))
}

func (d *delayValue) Set(s string) error {
	parsed, err := duration.Parse(s)
	*d = delayValue(parsed)
	return err
}
