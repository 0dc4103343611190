package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// Reject measures how fast rejected messages reach a dead-letter queue: persistent messages wait in a queue, consumers
// reject all of them, and the time runs until the last is in the dead-letter queue. Then they are consumed there and
// counted.
type Reject struct {
	Messages            int64
	Size                int // of a body, in bytes
	Consumers, Prefetch int
	QueueType           string
}

// Name says which case it is.
func (w Reject) Name() string { return fmt.Sprintf("%d x %d B", w.Messages, w.Size) }

// Run measures one broker. The error is of the measurement; what the broker did wrong is in the Result.
func (w Reject) Run(ctx context.Context, t Target) (r Result, err error) {
	s, err := openSite(ctx, t)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.clean(ctx)) }()
	dead, err := s.declareQueue("dead", w.QueueType, nil)
	if err != nil {
		return r, err
	}
	work, err := s.declareQueue("work", w.QueueType, wire.Table{
		{Name: "x-dead-letter-exchange", Value: ""}, {Name: "x-dead-letter-routing-key", Value: dead},
	})
	if err != nil {
		return r, err
	}
	r = Result{Workload: "reject", Case: w.Name(), Broker: s.c.product}
	if err := preload(ctx, t, PublisherOptions{Key: work}, w.Messages, w.Size); err != nil {
		return r, err
	}
	r.Published = w.Messages
	if err := w.reject(ctx, t, s, work, dead, &r); err != nil {
		return r, err
	}
	err = drain(ctx, t, dead, &r)
	return r, err
}

// depthEvery is how often the depth of the dead-letter queue is asked for.
const depthEvery = 10 * time.Millisecond

func (w Reject) reject(ctx context.Context, t Target, s *site, work, dead string, r *Result) error {
	l := newLoad(ctx, t, 1)
	defer l.end()
	t.Progress.begin("reject")
	before, err := t.Process.use()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := l.consume(w.Consumers, ConsumerOptions{Queue: work, Prefetch: w.Prefetch, Verdict: RejectIt}); err != nil {
		return l.failure(err)
	}
	arrived, since := int64(0), start
	for arrived < w.Messages && time.Since(since) < t.patience() {
		if err := sleep(l.ctx, depthEvery); err != nil {
			return err
		}
		depth, err := s.depth(dead)
		if err != nil {
			return err
		}
		if depth > arrived {
			arrived, since = depth, time.Now()
		}
	}
	after, err := t.Process.use()
	if err != nil {
		return err
	}
	r.add("dead-letter rate", perSecond(arrived, since.Sub(start)), "/s")
	r.addCPU(before, after, w.Messages)
	return nil
}

// preload publishes n messages that are confirmed.
func preload(ctx context.Context, t Target, o PublisherOptions, n int64, size int) error {
	l := newLoad(ctx, t, 1)
	defer l.end()
	t.Progress.begin("fill the queue")
	o.Persistent, o.InFlight = true, preloadInFlight
	p, err := l.publisher(o)
	if err != nil {
		return l.failure(err)
	}
	bodies := newBodies(size)
	for i := range n {
		if err := p.Publish(Message{Body: bodies.next(Stamp{Number: uint64(i), Due: time.Now()})}); err != nil {
			return l.failure(err)
		}
		t.Progress.published.Add(1)
	}
	return l.failure(p.Wait())
}

// drain consumes what was published and settles the account. How fast it is becomes a figure.
func drain(ctx context.Context, t Target, queue string, r *Result) error {
	l := newLoad(ctx, t, 1)
	defer l.end()
	t.Progress.begin("drain the queue")
	start := time.Now()
	if err := l.consume(1, ConsumerOptions{Queue: queue, Prefetch: drainPrefetch, Verdict: AckMany}); err != nil {
		return l.failure(err)
	}
	last, err := l.await(r.Published, start)
	if err != nil {
		return err
	}
	l.end()
	r.settle(l.ledger, nil)
	r.add("drain rate", perSecond(r.Received, last.Sub(start)), "/s")
	return nil
}

const drainPrefetch = 2000
