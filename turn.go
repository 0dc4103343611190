package dormouse

import "context"

// A turn is a lock for work that talks to the broker: waiting for it, and for the work itself, can end.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// do runs f when it is its turn. When ctx ends first, f may still be running, and the turn passes on when it returns.
func (t turn) do(ctx context.Context, f func() error) error {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-t }()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
