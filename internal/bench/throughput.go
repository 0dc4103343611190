package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Mode is how much a publisher asks of the broker.
type Mode string

// The modes.
const (
	Transient  Mode = "transient"  // messages need not survive, no confirms
	Persistent Mode = "persistent" // persistent messages, no confirms
	Confirmed  Mode = "confirmed"  // persistent messages, each confirmed
)

// Throughput measures how many messages go through queues while they are published as fast as the broker takes them.
// All of them have to arrive; the rate is their number by the time from the first publish to the last arrival.
type Throughput struct {
	Mode                 Mode
	Size                 int // of a body, in bytes
	Producers, Consumers int // consumers for each queue
	Queues               int
	QueueType            string
	InFlight, Prefetch   int
	Verdict              Verdict
	Duration             time.Duration // of publishing, unless Messages says when to end
	Messages             int64         // in all; 0 is as many as Duration allows
}

// Name says which case it is.
func (w Throughput) Name() string {
	name := fmt.Sprintf("%s %d B %dx%d", w.Mode, w.Size, w.Producers, w.Consumers)
	if w.Queues > 1 {
		name += fmt.Sprintf(" on %d queues", w.Queues)
	}
	if w.Verdict != AckEach {
		name += " ack " + string(w.Verdict)
	}
	return name
}

// Run measures one broker. The error is of the measurement; what the broker did wrong is in the Result.
func (w Throughput) Run(ctx context.Context, t Target) (r Result, err error) {
	s, err := openSite(ctx, t)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.clean(ctx)) }()
	var queues []string
	for i := range w.Queues {
		q, err := s.declareQueue(fmt.Sprint("q", i), w.QueueType, nil)
		if err != nil {
			return r, err
		}
		queues = append(queues, q)
	}
	r = Result{Workload: "throughput", Case: w.Name(), Broker: s.c.product}
	err = w.measure(ctx, t, queues, &r)
	return r, err
}

// measure runs the load on queues that are there.
func (w Throughput) measure(ctx context.Context, t Target, queues []string, r *Result) error {
	l := newLoad(ctx, t, w.Producers)
	defer l.end()
	t.Progress.begin(w.Name())
	for _, q := range queues {
		if err := l.consume(w.Consumers, ConsumerOptions{Queue: q, Prefetch: w.Prefetch, Verdict: w.Verdict}); err != nil {
			return l.failure(err)
		}
	}
	var publishers []Publisher
	for i := range w.Producers {
		o := PublisherOptions{Key: queues[i%len(queues)], Persistent: w.Mode != Transient}
		if w.Mode == Confirmed {
			o.InFlight = w.InFlight
		}
		p, err := l.publisher(o)
		if err != nil {
			return l.failure(err)
		}
		publishers = append(publishers, p)
	}
	before, err := t.Process.use()
	if err != nil {
		return err
	}
	start := time.Now()
	published, err := l.producers(w.Producers, func(producer int) (int64, error) {
		return w.publish(publishers[producer], producer, start.Add(w.Duration), t.Progress)
	})
	publishedAt := time.Now()
	if err != nil {
		return err
	}
	last, err := l.await(published, publishedAt)
	if err != nil {
		return err
	}
	after, err := t.Process.use()
	if err != nil {
		return err
	}
	l.end()
	r.Published = published
	r.settle(l.ledger, l.late)
	r.add("throughput", perSecond(r.Received, last.Sub(start)), "/s")
	r.add("publish rate", perSecond(published, publishedAt.Sub(start)), "/s")
	r.addCPU(before, after, published)
	r.add("latency p50", r.Lateness.P50, "ms")
	r.add("latency p99", r.Lateness.P99, "ms")
	return nil
}

// publish is the work of one producer.
func (w Throughput) publish(p Publisher, producer int, end time.Time, progress *Progress) (n int64, err error) {
	bodies := newBodies(w.Size)
	share := w.Messages / int64(w.Producers)
	if int64(producer) < w.Messages%int64(w.Producers) {
		share++
	}
	for ; w.Messages == 0 || n < share; n++ {
		now := time.Now()
		if w.Messages == 0 && now.After(end) {
			break
		}
		if err := p.Publish(Message{Body: bodies.next(Stamp{Producer: producer, Number: uint64(n), Due: now})}); err != nil {
			return n, err
		}
		progress.published.Add(1)
	}
	return n, p.Wait()
}

func perSecond(n int64, d time.Duration) float64 { return float64(n) / d.Seconds() }

// addCPU adds the processor time for each message, of the broker if its process is known, and of this client.
func (r *Result) addCPU(before, after usage, messages int64) {
	if after.broker > 0 {
		r.add("broker CPU per message", perMessage(after.broker-before.broker, messages), "us")
	}
	if after.client > 0 {
		r.add("client CPU per message", perMessage(after.client-before.client, messages), "us")
	}
}

// perMessage is in microseconds.
func perMessage(d time.Duration, messages int64) float64 {
	return d.Seconds() * 1e6 / float64(max(messages, 1))
}
