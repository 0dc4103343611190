// Package demo shows delays, retries and parking at work, and checks them: it publishes messages with random delays,
// handles them with a worker that fails in every way a worker can, and keeps account of each message by what was really
// received. A run that loses a message, or delivers one early or with a wrong routing key, does not pass.
package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	publishers   = 16
	confirmation = 10 * time.Second       // how long the broker may take to confirm a message
	linger       = 300 * time.Millisecond // how long to look for duplicates when everything has arrived
	patience     = 5 * time.Second        // how long to wait for an arrival once everything is due
	reading      = 20 * time.Second       // how long reading the parking lots may take
	tidyUp       = 30 * time.Second       // how long removing the topology may take; a cluster without one node is slow
)

// A Run is one demonstration. It can be run once.
type Run struct {
	// Disposable says that the broker is this run's own: when interrupted it need not wait for messages on their way.
	Disposable bool

	courier  Courier
	plan     []Message
	ledger   *Ledger
	draining atomic.Bool
	over     chan struct{}
}

// New returns a run of the plan that has not begun.
func New(courier Courier, plan []Message) *Run {
	return &Run{courier: courier, plan: plan, ledger: NewLedger(plan), over: make(chan struct{})}
}

// A Report is what a run has to tell.
type Report struct {
	Result   Result
	Parked   []Parked
	Lateness []Bucket
	Problems []string // what went wrong, in words
	Took     time.Duration
	Left     error // why not all that the run declared could be removed
}

// Progress returns how far the run has come. Safe to call while it runs.
func (r *Run) Progress() Progress { return r.ledger.Progress() }

// Do runs the demonstration and returns the account; whether it is a good one is for Result.Err to say. The error says
// why the run could not be made: the broker cannot be used, or ctx has ended. Messages on their way are then waited for,
// for some seconds, because they would otherwise reach queues that are gone. What was declared is removed in any case.
func (r *Run) Do(ctx context.Context) (report Report, err error) {
	start := time.Now()
	defer close(r.over)
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyUp)
		defer cancel()
		e := r.courier.Remove(ctx)
		switch {
		case e == nil:
		case err == nil:
			report.Left = e
		default:
			err = errors.Join(err, fmt.Errorf("remove what the demonstration declared: %w", e))
		}
	}()
	if err := r.courier.Declare(ctx); err != nil {
		return Report{}, err
	}

	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	idle := make(chan struct{}) // closed when the worker has returned
	go func() {
		defer close(idle)
		if err := r.courier.Work(work, r.handle); err != nil {
			abort(err)
		} else if work.Err() == nil {
			abort(errors.New("the worker stopped by itself"))
		}
	}()
	if err := r.publish(ctx); err != nil {
		abort(err)
	}
	r.await(ctx, idle)
	if ctx.Err() == nil {
		pause(ctx, linger)
	} else if !r.Disposable {
		r.draining.Store(true)
		r.ledger.Abandon()
		r.await(context.WithoutCancel(ctx), idle)
	}
	stop()
	<-idle
	if ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}

	looking, enough := context.WithTimeout(ctx, reading)
	defer enough()
	parked, err := r.courier.Parked(looking)
	if err != nil {
		return Report{}, fmt.Errorf("read the parking lots: %w", err)
	}
	for _, p := range parked {
		r.ledger.Parked(p)
	}
	return Report{
		Result:   r.ledger.Result(),
		Parked:   parked,
		Lateness: r.ledger.Lateness(),
		Problems: r.ledger.Problems(),
		Took:     time.Since(start),
	}, nil
}

// publish publishes the plan and returns the first error, or nil when ctx has ended.
func (r *Run) publish(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range publishers {
		wait.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(r.plan) {
					return
				}
				m := r.plan[i]
				if err := r.publishOne(ctx, m); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

func (r *Run) publishOne(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, confirmation)
	defer cancel()
	r.ledger.Publishing(m.ID, time.Now())
	if err := r.courier.Publish(ctx, m); err != nil {
		return err
	}
	r.ledger.Published(m.ID)
	return nil
}

// await waits until every message is settled, the worker has stopped, ctx has ended, or there is nothing to hope for: all
// is long due and nothing has arrived for a while.
func (r *Run) await(ctx context.Context, idle <-chan struct{}) {
	allDue := maxDelay + MaxAttempts*(Deadline+Grace)
	for _, w := range Waits() {
		allDue += w
	}
	giveUp := time.NewTimer(allDue)
	defer giveUp.Stop()
	var seen Progress
	for {
		select {
		case <-r.ledger.Settled():
			return
		case <-idle:
			return
		case <-ctx.Done():
			return
		case <-giveUp.C:
			now := r.Progress()
			if now == seen {
				return
			}
			seen = now
			giveUp.Reset(patience)
		}
	}
}

// handle is the worker: it notes the arrival, then does what the plan has in mind for the message.
func (r *Run) handle(ctx context.Context, a Arrival) error {
	now := time.Now()
	m, known := r.ledger.Arrived(a, now)
	if !known {
		return nil
	}
	wrong := m.Behaviour.on(a.Attempt)
	if r.draining.Load() {
		wrong = none
	}
	switch wrong {
	case none:
		r.ledger.Delivered(m.ID)
		return nil
	case overruns:
		<-ctx.Done()
		r.failed(m, a.Attempt, deadline(ctx, now))
		return ctx.Err()
	case sticks:
		r.stick(m, a.Attempt, deadline(ctx, now).Add(Grace))
		return nil
	case panics:
		r.failed(m, a.Attempt, time.Now())
		panic("nil pointer in the invoice template")
	default:
		r.failed(m, a.Attempt, time.Now())
		return errors.New("the mail server answered 451: try again later")
	}
}

// deadline is when the context of a handler that began at the given time ends.
func deadline(ctx context.Context, began time.Time) time.Time {
	if d, ok := ctx.Deadline(); ok {
		return d
	}
	return began.Add(Deadline)
}

// stick is a handler that is stuck until the run is over. The success that it reports then comes too late to count.
func (r *Run) stick(m Message, attempt int, lost time.Time) {
	if attempt >= MaxAttempts {
		<-time.After(time.Until(lost))
	}
	r.failed(m, attempt, lost)
	<-r.over
}

// failed notes that the attempt went wrong at the given time.
func (r *Run) failed(m Message, attempt int, at time.Time) {
	if attempt >= MaxAttempts {
		r.ledger.Exhausted(m.ID)
		return
	}
	r.ledger.Retrying(m.ID, attempt, at.Add(Waits()[attempt-1]))
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
