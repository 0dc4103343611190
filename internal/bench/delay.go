package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Delay measures how late delayed messages arrive, and how fast.
type Delay struct {
	Way Way
	// Burst makes all messages due at one moment, Most after the beginning; a lane's messages then bring their own time
	// to live. Otherwise the delays are random between Least and Most, and Most alone in a lane.
	Burst       bool
	Least, Most time.Duration
	Messages    int64
	Rate        float64 // of publishing, messages a second; 0 is as fast as the broker takes them
	Ahead       int64   // so many more messages wait, due in an hour to a year
	Size        int     // of a body, in bytes

	Consumers, Prefetch, InFlight int
	Verdict                       Verdict
	QueueType                     string
}

// Name says which case it is.
func (w Delay) Name() string {
	name := fmt.Sprintf("%s %d x %d B, ", w.Way, w.Messages, w.Size)
	switch {
	case w.Burst:
		name += "all due at once"
	case w.Way == Lane:
		name += "after " + w.Most.String()
	default:
		name += fmt.Sprintf("after %v to %v", w.Least, w.Most)
	}
	if w.Rate > 0 {
		name += fmt.Sprintf(", %g/s", w.Rate)
	}
	if w.Ahead > 0 {
		name += fmt.Sprintf(", %d waiting", w.Ahead)
	}
	return name
}

// Run measures one broker. The error is of the measurement; what the broker did wrong is in the Result.
func (w Delay) Run(ctx context.Context, t Target) (r Result, err error) {
	s, err := openSite(ctx, t)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.clean(ctx)) }()
	t.Progress.begin(w.Name())
	ttl := w.Most
	if w.Burst {
		ttl = 0
	}
	way, err := s.declareWay(ctx, w.Way, w.QueueType, ttl)
	if err != nil {
		return r, err
	}
	r = Result{Workload: "delay", Case: w.Name(), Broker: s.c.product}
	err = w.measure(ctx, t, way, &r)
	return r, err
}

func (w Delay) measure(ctx context.Context, t Target, way route, r *Result) error {
	l := newLoad(ctx, t, 1)
	defer l.end()
	if err := l.waitAhead(way, w.Ahead, w.Size); err != nil {
		return l.failure(err)
	}
	t.Progress.begin(w.Name())
	if err := l.consume(w.Consumers, ConsumerOptions{Queue: way.queue, Prefetch: w.Prefetch, Verdict: w.Verdict}); err != nil {
		return l.failure(err)
	}
	p, err := l.publisher(way.options(w.InFlight))
	if err != nil {
		return l.failure(err)
	}
	before, err := t.Process.use()
	if err != nil {
		return err
	}
	start := time.Now()
	firstDue, lastDue, err := w.publish(l, p, way, start)
	if err != nil {
		return l.failure(err)
	}
	publishedAt := time.Now()
	if w.Burst && publishedAt.After(lastDue) {
		return fmt.Errorf("publishing took %.1f s, but the messages were due after %v: choose a longer --delay", publishedAt.Sub(start).Seconds(), w.Most)
	}
	resident, err := t.Process.resident()
	if err != nil {
		return err
	}
	last, err := l.await(w.Messages, lastDue)
	if err != nil {
		return err
	}
	after, err := t.Process.use()
	if err != nil {
		return err
	}
	l.end()
	r.Published = w.Messages
	r.settle(l.ledger, l.late)
	r.add("publish rate", perSecond(w.Messages, publishedAt.Sub(start)), "/s")
	r.add("arrival rate", perSecond(r.Received, last.Sub(firstDue)), "/s")
	r.add("late p50", r.Lateness.P50, "ms")
	r.add("late p99", r.Lateness.P99, "ms")
	r.add("late max", r.Lateness.Max, "ms")
	r.addCPU(before, after, w.Messages)
	if resident > 0 {
		r.add("memory when published", float64(resident)/(1<<20), "MiB")
	}
	return nil
}

// publish publishes all messages and returns when the first and the last of them are due.
func (w Delay) publish(l *load, p Publisher, way route, start time.Time) (firstDue, lastDue time.Time, err error) {
	random := rand.New(rand.NewPCG(2, uint64(w.Messages)))
	bodies := newBodies(w.Size)
	moment := start.Add(w.Most)
	err = pace{start: start, rate: w.Rate}.each(l.ctx, w.Messages, func(i int64) error {
		now := time.Now()
		d := w.Most
		switch {
		case w.Burst:
			d = max(moment.Sub(now), 0)
		case w.Way != Lane:
			d = between(random, w.Least, w.Most)
		}
		m, d, err := way.delayed(d, w.Burst)
		if err != nil {
			return err
		}
		due := now.Add(d)
		if firstDue.IsZero() || due.Before(firstDue) {
			firstDue = due
		}
		if due.After(lastDue) {
			lastDue = due
		}
		m.Body = bodies.next(Stamp{Number: uint64(i), Due: due})
		l.target.Progress.published.Add(1)
		return p.Publish(m)
	}, p.Flush)
	if err == nil {
		err = p.Wait()
	}
	return firstDue, lastDue, err
}

// resident is Resident, or 0 where the process is not known.
func (p Process) resident() (int64, error) {
	if p.ID == 0 {
		return 0, nil
	}
	return p.Resident()
}
