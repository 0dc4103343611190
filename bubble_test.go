package dormouse

import (
	"context"
	"errors"
	"testing"
	"time"
)

// In a bubble, a day passes in no time: every attempt comes at its moment, to the millisecond.
func TestRetriesOverADay(t *testing.T) {
	inBubble(t, func(t *testing.T, connect func(...func(*Options)) *Client) {
		c := connect()
		defer leave(t, c)
		waits := []time.Duration{100 * time.Millisecond, time.Second, 90 * time.Second, time.Hour, 6 * time.Hour}
		attempts := make(chan time.Time)
		mustConsume(t, c, "work", ConsumeOptions{Retry: RetrySteps(waits...)}, func(context.Context, *Delivery) error {
			attempts <- time.Now()
			return errors.New("again")
		})
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
