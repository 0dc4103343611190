package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Queue is the Way of a backlog that waits in a queue for a consumer.
const Queue Way = "queue"

// Backlog measures what N waiting messages cost: the rate at which they are published, at the beginning and at the end,
// memory and disk when they wait, and the time from the start of the broker to its first message, for each way to restart
// it. A backlog in a queue is consumed and counted at the end.
type Backlog struct {
	// Way is where messages wait: in a Queue, in a Lane with a time to live, or in a Delayed exchange.
	Way      Way
	Messages int64
	Size     int // of a body, in bytes
	// Most is how long the delay is in a Lane, and the longest in a Delayed exchange, where they are random.
	Most      time.Duration
	InFlight  int
	QueueType string
}

// Name says which case it is.
func (w Backlog) Name() string { return fmt.Sprintf("%s %d x %d B", w.Way, w.Messages, w.Size) }

// Run measures one broker. The error is of the measurement; what the broker did wrong is in the Result.
func (w Backlog) Run(ctx context.Context, t Target) (r Result, err error) {
	s, err := openSite(ctx, t)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.clean(ctx)) }()
	t.Progress.begin(w.Name())
	r = Result{Workload: "backlog", Case: w.Name(), Broker: s.c.product}
	var way route
	if w.Way == Queue {
		way.way = Queue
		way.queue, err = s.declareQueue("work", w.QueueType, nil)
	} else {
		way, err = s.declareWay(ctx, w.Way, w.QueueType, w.Most)
	}
	if err != nil {
		return r, err
	}
	if err := w.publish(ctx, t, way, &r); err != nil {
		return r, err
	}
	if err := w.weigh(t, &r); err != nil {
		return r, err
	}
	for _, restart := range t.Restarts {
		if t, err = w.restart(ctx, t, s, restart, way, &r); err != nil {
			return r, err
		}
	}
	err = w.count(ctx, t, s, way, &r)
	return r, err
}

// tenths is in how many parts the publish rate is told.
const tenths = 10

func (w Backlog) publish(ctx context.Context, t Target, way route, r *Result) error {
	l := newLoad(ctx, t, 1)
	defer l.end()
	p, err := l.publisher(way.options(w.InFlight))
	if err != nil {
		return l.failure(err)
	}
	before, err := t.Process.use()
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(3, uint64(w.Messages)))
	bodies := newBodies(w.Size)
	var rates []float64
	uses := []usage{before}
	start := time.Now()
	began, from := start, int64(0)
	for i := range w.Messages {
		var m Message
		var d time.Duration
		if w.Way != Queue {
			if m, d, err = way.delayed(between(random, w.Most/2, w.Most), false); err != nil {
				return err
			}
		}
		m.Body = bodies.next(Stamp{Number: uint64(i), Due: time.Now().Add(d)})
		if err := p.Publish(m); err != nil {
			return l.failure(err)
		}
		t.Progress.published.Add(1)
		if (i+1)*tenths/w.Messages > int64(len(rates)) {
			now := time.Now()
			used, err := t.Process.use()
			if err != nil {
				return err
			}
			rates, uses = append(rates, perSecond(i+1-from, now.Sub(began))), append(uses, used)
			began, from = now, i+1
		}
	}
	if err := p.Wait(); err != nil {
		return l.failure(err)
	}
	end := time.Now()
	after, err := t.Process.use()
	if err != nil {
		return err
	}
	r.Published = w.Messages
	r.add("publish rate", perSecond(w.Messages, end.Sub(start)), "/s")
	r.add("publish rate, first tenth", rates[0], "/s")
	r.add("publish rate, last tenth", rates[len(rates)-1], "/s")
	r.add("publish rate, slowest tenth", slices.Min(rates), "/s")
	r.addCPU(before, after, w.Messages)
	if last := len(uses) - 1; after.broker > 0 {
		r.add("broker CPU per message, first tenth", perMessage(uses[1].broker-before.broker, w.Messages/tenths), "us")
		r.add("broker CPU per message, last tenth", perMessage(uses[last].broker-uses[last-1].broker, w.Messages/tenths), "us")
	}
	return nil
}

func (w Backlog) weigh(t Target, r *Result) error {
	resident, err := t.Process.resident()
	if err != nil {
		return err
	}
	if resident > 0 {
		r.add("memory", float64(resident)/(1<<20), "MiB")
	}
	if t.Process.Dir == "" {
		return nil
	}
	disk, err := t.Process.Disk()
	if err != nil {
		return err
	}
	r.add("disk per message", float64(disk)/float64(w.Messages), "B")
	return nil
}

// startPatience bounds how long a broker may take to start.
const startPatience = 10 * time.Minute

// restart restarts the broker and measures how long it takes until a message comes out: the first of the queue, or one
// that was published to another queue when none is due.
func (w Backlog) restart(ctx context.Context, t Target, s *site, restart Restart, way route, r *Result) (Target, error) {
	t.Progress.begin("restart: " + restart.Name)
	s.c.close()
	url, process, began, err := restart.Do(ctx)
	if err != nil {
		return t, fmt.Errorf("restart, %s: %w", restart.Name, err)
	}
	t.URL, t.Process, s.url = url, process, url
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		err := s.reopen(ctx, url)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return t, errors.Join(context.Cause(ctx), err)
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return t, err
		}
	}
	r.add("start after "+restart.Name+", connected", time.Since(began).Seconds(), "s")
	queue := way.queue
	if w.Way != Queue {
		if queue, err = s.declareQueue("probe", w.QueueType, nil); err != nil {
			return t, err
		}
		if err := preload(ctx, t, PublisherOptions{Key: queue}, 1, w.Size); err != nil {
			return t, err
		}
	}
	if err := first(ctx, t, queue, w.Way == Queue); err != nil {
		return t, err
	}
	r.add("start after "+restart.Name+", first message", time.Since(began).Seconds(), "s")
	resident, err := process.resident()
	if err == nil && resident > 0 {
		r.add("memory after "+restart.Name, float64(resident)/(1<<20), "MiB")
	}
	return t, err
}

// first waits for one message of a queue. With back it goes back to where it was.
func first(ctx context.Context, t Target, queue string, back bool) error {
	verdict := AckEach
	if back {
		verdict = "" // leaves it unacknowledged
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k, err := t.Client.Consumer(ctx, t.URL, ConsumerOptions{Queue: queue, Prefetch: 1, Verdict: verdict})
	if err != nil {
		return err
	}
	defer k.Close()
	arrived := make(chan struct{}, 1)
	failed := make(chan error, 1)
	go func() {
		failed <- k.Run(func([]byte) {
			select {
			case arrived <- struct{}{}:
			default:
			}
		})
	}()
	select {
	case <-arrived:
		return nil
	case err := <-failed:
		return errors.Join(err, errors.New("the broker has cancelled the consumer before its first message"))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// count settles the account of what waits.
func (w Backlog) count(ctx context.Context, t Target, s *site, way route, r *Result) error {
	switch w.Way {
	case Queue:
		return drain(ctx, t, way.queue, r)
	case Lane:
		waiting, err := s.depth(way.lane)
		if err != nil {
			return err
		}
		r.Received = waiting
	default: // AMQP does not tell how many wait; what is due too early would be in the work queue
		early, err := s.depth(way.queue)
		if err != nil {
			return err
		}
		r.Received, r.Early = w.Messages, early
	}
	r.Lost = r.Published - r.Received
	return nil
}
