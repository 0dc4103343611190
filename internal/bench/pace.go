package bench

import (
	"context"
	"time"
)

// pace spreads a number of events evenly over time.
type pace struct {
	start time.Time
	rate  float64 // events per second, 0 for no limit
}

// due is how many events are due by now, of n.
func (p pace) due(now time.Time, n int64) int64 {
	if p.rate == 0 {
		return n
	}
	return min(n, int64(now.Sub(p.start).Seconds()*p.rate)+1)
}

// at is when event number i, from 0 on, is due.
func (p pace) at(i int64) time.Time {
	if p.rate == 0 {
		return p.start
	}
	return p.start.Add(time.Duration(float64(i) / p.rate * float64(time.Second)))
}

// each calls f with 0 to n-1, each when it is due, and flush whenever it is to wait.
func (p pace) each(ctx context.Context, n int64, f func(i int64) error, flush func() error) error {
	for i := int64(0); i < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		upTo := i + 1000
		if p.rate > 0 {
			if upTo = p.due(time.Now(), n); upTo <= i {
				if err := flush(); err != nil {
					return err
				}
				if err := sleep(ctx, time.Until(p.at(i))); err != nil {
					return err
				}
				continue
			}
		}
		for ; i < min(upTo, n); i++ {
			if err := f(i); err != nil {
				return err
			}
		}
	}
	return flush()
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
