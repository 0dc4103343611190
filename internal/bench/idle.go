package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dormousemq/dormouse/internal/wire"
)

// Idle measures what many queues, connections and channels cost that have nothing to do: the memory of the broker, and
// the throughput of a busy pair beside them by that of the pair alone. Each queue has a consumer as long as there are
// channels.
type Idle struct {
	Queues, Connections, Channels int
	Busy                          Throughput
}

// Name says which case it is.
func (w Idle) Name() string {
	return fmt.Sprintf("%d queues, %d connections, %d channels beside %s", w.Queues, w.Connections, w.Channels, w.Busy.Name())
}

// Run measures one broker. The error is of the measurement; what the broker did wrong is in the Result.
func (w Idle) Run(ctx context.Context, t Target) (r Result, err error) {
	s, err := openSite(ctx, t)
	if err != nil {
		return r, err
	}
	var crowd []*connection
	defer func() {
		for _, c := range crowd {
			c.close()
		}
		t.Progress.begin("clean up")
		err = errors.Join(err, s.clean(ctx))
	}()
	r = Result{Workload: "idle", Case: w.Name(), Broker: s.c.product}
	busy, err := s.declareQueue("busy", w.Busy.QueueType, nil)
	if err != nil {
		return r, err
	}
	var alone, beside Result
	if err := w.Busy.measure(ctx, t, []string{busy}, &alone); err != nil {
		return r, err
	}
	before, err := t.Process.resident()
	if err != nil {
		return r, err
	}
	t.Progress.begin("connect")
	if crowd, err = w.gather(ctx, t, s); err != nil {
		return r, err
	}
	after, err := t.Process.resident()
	if err != nil {
		return r, err
	}
	if err := w.Busy.measure(ctx, t, []string{busy}, &beside); err != nil {
		return r, err
	}
	r.Published, r.Received = alone.Published+beside.Published, alone.Received+beside.Received
	r.Lost, r.Duplicates = alone.Lost+beside.Lost, alone.Duplicates+beside.Duplicates
	r.Foreign, r.Early = alone.Foreign+beside.Foreign, alone.Early+beside.Early
	r.Lateness, r.Histogram = beside.Lateness, beside.Histogram
	one, _ := alone.Metric("throughput")
	two, _ := beside.Metric("throughput")
	r.add("throughput alone", one.Value, "/s")
	r.add("throughput beside them", two.Value, "/s")
	r.add("kept", 100*two.Value/one.Value, "%")
	if after > 0 {
		r.add("memory", float64(after)/(1<<20), "MiB")
		r.add("memory before", float64(before)/(1<<20), "MiB")
	}
	return r, nil
}

// gatherers is how many connections are set up at a time.
const gatherers = 8

// gather makes the connections with their channels, queues and consumers.
func (w Idle) gather(ctx context.Context, t Target, s *site) ([]*connection, error) {
	names := make([]string, w.Queues)
	for i := range names {
		names[i] = fmt.Sprintf("%s.idle.%d", s.name, i)
	}
	s.queues = append(s.queues, names...)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	crowd := make([]*connection, w.Connections)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range gatherers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= w.Connections || ctx.Err() != nil {
					return
				}
				c, err := connect(ctx, t.URL)
				if err == nil {
					crowd[i] = c
					err = w.furnish(c, share(w.Channels, w.Connections, i), part(names, w.Connections, i), w.Busy.QueueType)
				}
				if err != nil {
					fail(err)
					return
				}
				t.Progress.published.Add(1)
			}
		})
	}
	wg.Wait()
	made := crowd[:0]
	for _, c := range crowd {
		if c != nil {
			made = append(made, c)
		}
	}
	return made, context.Cause(ctx)
}

// furnish opens channels on a connection, declares queues, and gives each channel a consumer as long as there are queues.
func (w Idle) furnish(c *connection, channels int, queues []string, kind string) error {
	for number := 2; number <= channels; number++ { // 1 is open
		if err := c.openChannel(uint16(number)); err != nil {
			return err
		}
	}
	for i, q := range queues {
		declare := &wire.QueueDeclare{Queue: q, Durable: true, Arguments: wire.Table{{Name: "x-queue-type", Value: kind}}}
		if _, err := call[*wire.QueueDeclareOk](c, 1, declare); err != nil {
			return err
		}
		if i < channels {
			if _, err := call[*wire.BasicConsumeOk](c, uint16(i+1), &wire.BasicConsume{Queue: q}); err != nil {
				return err
			}
		}
	}
	return nil
}

// share is how much of total goes to number i of n.
func share(total, n, i int) int { return total*(i+1)/n - total*i/n }

// part is the part of names that goes to number i of n.
func part(names []string, n, i int) []string { return names[len(names)*i/n : len(names)*(i+1)/n] }
