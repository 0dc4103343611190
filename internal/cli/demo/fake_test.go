package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// faults says what the fake courier does wrong. Each names the message it happens to, by its number in the plan.
type faults struct {
	lose, repeat, hurry, misroute, misdeliver, unpark, parkTwice int
	refuse                                                       error // every publish
	removal                                                      error
	silent                                                       bool // the parking lots do not answer
}

var honest = faults{lose: -1, repeat: -1, hurry: -1, misroute: -1, misdeliver: -1, unpark: -1, parkTwice: -1}

// fakeCourier is a broker and a worker in memory, in which everything takes exactly as long as it should.
type fakeCourier struct {
	faults faults

	mu       sync.Mutex
	numbers  map[string]int
	parked   []Parked
	declared bool
	removed  bool

	ready chan Arrival
	lanes sync.WaitGroup
}

func newFake(plan []Message, f faults) *fakeCourier {
	c := &fakeCourier{faults: f, numbers: map[string]int{}, ready: make(chan Arrival, 10*len(plan))}
	for i, m := range plan {
		c.numbers[m.ID] = i
	}
	return c
}

func (c *fakeCourier) Declare(context.Context) error {
	c.declared = true
	return nil
}

func (c *fakeCourier) Remove(context.Context) error {
	c.removed = true
	return c.faults.removal
}

func (c *fakeCourier) Publish(_ context.Context, m Message) error {
	if c.faults.refuse != nil {
		return c.faults.refuse
	}
	a := Arrival{ID: m.ID, Queue: m.Queue, Key: m.Key, Attempt: 1}
	delay := m.Delay
	switch c.numbers[m.ID] {
	case c.faults.lose:
		return nil
	case c.faults.repeat:
		c.send(a, delay)
	case c.faults.hurry:
		delay -= time.Millisecond
	case c.faults.misroute:
		a.Key = "order.lost"
	case c.faults.misdeliver:
		a.Queue = "elsewhere"
	}
	c.send(a, delay)
	return nil
}

func (c *fakeCourier) send(a Arrival, delay time.Duration) {
	c.lanes.Go(func() {
		<-time.After(delay)
		c.ready <- a
	})
}

func (c *fakeCourier) Work(ctx context.Context, handle func(context.Context, Arrival) error) error {
	var handlers sync.WaitGroup
	defer handlers.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-c.ready:
			handlers.Go(func() {
				if err := c.attempt(handle, a); err == nil {
					return
				} else if a.Attempt >= MaxAttempts {
					c.park(a, err)
				} else {
					wait := Waits()[a.Attempt-1]
					a.Attempt++
					c.send(a, wait)
				}
			})
		}
	}
}

// attempt runs the handler under the deadline and leaves it behind when it does not keep it.
func (c *fakeCourier) attempt(handle func(context.Context, Arrival) error, a Arrival) error {
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				result <- fmt.Errorf("panic: %v", p)
			}
		}()
		result <- handle(ctx, a)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-time.After(Grace):
		return ctx.Err()
	}
}

func (c *fakeCourier) park(a Arrival, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := Parked{ID: a.ID, Queue: a.Queue, Key: a.Key, Reason: "error", Error: err.Error(), Attempts: a.Attempt}
	switch c.numbers[a.ID] {
	case c.faults.unpark:
		return
	case c.faults.parkTwice:
		c.parked = append(c.parked, p)
	}
	c.parked = append(c.parked, p)
}

func (c *fakeCourier) Parked(ctx context.Context) ([]Parked, error) {
	if c.faults.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.parked), nil
}

var errRefused = errors.New("no permission to write to the exchange")
