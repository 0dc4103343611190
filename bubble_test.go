package dormouse

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dormousemq/dormouse/dormousetest"
)

// In a bubble, a day passes in no time: every attempt comes at its moment, to the millisecond.
func TestRetriesOverADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dormousetest.NewBubbleBroker(t)
		defer b.Close()
		c, err := Connect(t.Context(), b.URL(), Options{Dial: b.Dial, Heartbeat: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		if err := c.Declare(t.Context(), Topology{Queues: []Queue{{Name: "work"}}}); err != nil {
			t.Fatal(err)
		}
		waits := []time.Duration{100 * time.Millisecond, time.Second, 90 * time.Second, time.Hour, 6 * time.Hour}
		attempts := make(chan time.Time)
		_, err = c.Consume(t.Context(), "work", func(context.Context, *Delivery) error {
			attempts <- time.Now()
			return errors.New("again")
		}, ConsumeOptions{Retry: RetrySteps(waits...)})
		if err != nil {
			t.Fatal(err)
		}
		due := time.Now().Add(20 * time.Hour)
		if err := c.Publish(t.Context(), Message{RoutingKey: "work", At: due}); err != nil {
			t.Fatal(err)
		}
		last := <-attempts
		if late := last.Sub(due); late < 0 || late > 100*time.Millisecond {
			t.Errorf("%v late after 20 hours", late)
		}
		for i, wait := range waits {
			at := <-attempts
			if late := at.Sub(last) - wait; late < 0 || late > 100*time.Millisecond {
				t.Errorf("attempt %d: %v late after %v", i+2, late, wait)
			}
			last = at
		}
	})
}
