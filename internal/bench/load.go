package bench

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const defaultPatience = 10 * time.Second

func (t Target) patience() time.Duration { return cmp.Or(t.Patience, defaultPatience) }

// load is what moves during a measurement: publishers, consumers, and the account of their messages.
type load struct {
	target Target
	ctx    context.Context // ends with the measurement, and when anything fails
	fail   context.CancelCauseFunc
	ledger *Ledger
	late   *Lateness

	working   sync.WaitGroup
	mu        sync.Mutex
	consumers []Consumer
	closers   []func()
}

func newLoad(ctx context.Context, t Target, producers int) *load {
	l := &load{target: t, ledger: NewLedger(producers), late: NewLateness()}
	l.ctx, l.fail = context.WithCancelCause(ctx)
	return l
}

// publisher connects a publisher that ends with the load.
func (l *load) publisher(o PublisherOptions) (Publisher, error) {
	p, err := l.target.Client.Publisher(l.ctx, l.target.URL, o)
	if err != nil {
		return nil, err
	}
	l.closeAtEnd(p.Close)
	return p, nil
}

// closeAtEnd closes a connection when the load ends, or fails: whoever waits for it goes on then.
func (l *load) closeAtEnd(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closers = append(l.closers, f)
	context.AfterFunc(l.ctx, f)
}

// consume starts n consumers.
func (l *load) consume(n int, o ConsumerOptions) error {
	for range n {
		k, err := l.target.Client.Consumer(l.ctx, l.target.URL, o)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.consumers = append(l.consumers, k)
		l.mu.Unlock()
		context.AfterFunc(l.ctx, k.Close)
		l.working.Go(func() {
			late := NewLateness()
			err := k.Run(func(body []byte) { l.arrive(late, body) })
			l.late.add(late)
			if err != nil {
				l.fail(fmt.Errorf("consume: %w", err))
			}
		})
	}
	return nil
}

func (l *load) arrive(late *Lateness, body []byte) {
	now := time.Now()
	s, ok := ReadStamp(body)
	if !ok {
		l.ledger.foreign.Add(1)
		return
	}
	if l.ledger.Arrive(s) {
		late.Record(now.Sub(s.Due))
	}
	l.target.Progress.received.Add(1)
}

// await waits until n messages have arrived, or no more come though all are due. It returns when that was.
func (l *load) await(n int64, lastDue time.Time) (time.Time, error) {
	l.ledger.Expect(n)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	seen, since := l.ledger.Received(), time.Now()
	for {
		select {
		case <-l.ledger.Complete():
			return time.Now(), nil
		case <-l.ctx.Done():
			return time.Time{}, context.Cause(l.ctx)
		case now := <-tick.C:
			if have := l.ledger.Received(); have != seen || now.Before(lastDue) {
				seen, since = have, now
			} else if now.Sub(since) > l.target.patience() {
				return since, nil
			}
		}
	}
}

// end closes all connections and waits for the consumers, so that their lateness counts.
func (l *load) end() {
	l.mu.Lock()
	consumers, closers := l.consumers, l.closers
	l.consumers, l.closers = nil, nil
	l.mu.Unlock()
	for _, k := range consumers {
		k.Close()
	}
	for _, f := range closers {
		f()
	}
	l.working.Wait()
	l.fail(context.Canceled)
}

// failure is why the load failed, or err: an error of a connection that was closed because of another one says nothing.
func (l *load) failure(err error) error {
	if cause := context.Cause(l.ctx); cause != nil && err != nil {
		return cause
	}
	return err
}

// producers runs f for each of n producers and returns the sum of what they have published.
func (l *load) producers(n int, f func(producer int) (int64, error)) (int64, error) {
	var total atomic.Int64
	var wg sync.WaitGroup
	for producer := range n {
		wg.Go(func() {
			published, err := f(producer)
			total.Add(published)
			if err != nil {
				l.fail(fmt.Errorf("publish: %w", err))
			}
		})
	}
	wg.Wait()
	return total.Load(), context.Cause(l.ctx)
}
