package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dormousemq/dormouse"
	"github.com/dormousemq/dormouse/internal/ladder"
	"github.com/dormousemq/dormouse/internal/wire"
)

// Way is how messages are delayed.
type Way string

// The ways.
const (
	Lane    Way = "lane"      // a queue with a time to live, whose dead letters go to the work queue
	Ladder  Way = "ladder"    // the delay ladder
	Delayed Way = "x-delayed" // an exchange of type x-delayed-message
)

// route is a way as it was declared.
type route struct {
	way      Way
	queue    string // where the messages arrive
	lane     string // where they wait, of Lane
	exchange string // of the others
	ladder   *ladder.Ladder
}

// declareWay declares a work queue and what leads to it after a delay. A lane has the time to live; with 0 each message
// brings its own.
func (s *site) declareWay(ctx context.Context, way Way, kind string, ttl time.Duration) (route, error) {
	r := route{way: way}
	var err error
	if way == Ladder {
		return s.declareLadder(ctx, kind)
	}
	if r.queue, err = s.declareQueue("work", kind, nil); err != nil {
		return r, err
	}
	if way == Delayed {
		r.exchange, err = s.declareDelayed(r.queue)
		return r, err
	}
	arguments := wire.Table{{Name: "x-dead-letter-exchange", Value: ""}, {Name: "x-dead-letter-routing-key", Value: r.queue}}
	if ttl > 0 {
		arguments = append(arguments, wire.Field{Name: "x-message-ttl", Value: ttl.Milliseconds()})
	}
	r.lane, err = s.declareQueue("lane", kind, arguments)
	return r, err
}

// declareLadder declares a ladder of its own by the client library, as programs do.
func (s *site) declareLadder(ctx context.Context, kind string) (r route, err error) {
	r = route{way: Ladder, queue: s.name + ".work"}
	if r.ladder, err = ladder.New(ladder.Settings{Prefix: s.name}); err != nil {
		return r, err
	}
	r.exchange = r.ladder.Entry()
	s.exchange = append(s.exchange, r.ladder.Exchanges()...)
	s.exchange = append(s.exchange, r.ladder.Due(), r.ladder.Unrouted())
	for _, lane := range r.ladder.Lanes() {
		s.queues = append(s.queues, lane.Queue)
	}
	s.queues = append(s.queues, r.ladder.Unrouted(), r.queue, r.queue+".parked")
	client, err := dormouse.Connect(ctx, s.url, dormouse.Options{Name: "dormouse bench", Prefix: s.name})
	if err != nil {
		return r, err
	}
	err = client.Declare(ctx, dormouse.Topology{
		LadderType: dormouse.QueueType(kind),
		Queues:     []dormouse.Queue{{Name: r.queue, Type: dormouse.QueueType(kind)}},
	})
	return r, errors.Join(err, client.Close())
}

// options of a publisher that publishes by the way.
func (r route) options(inFlight int) PublisherOptions {
	o := PublisherOptions{Exchange: r.exchange, Key: r.queue, Persistent: true, InFlight: inFlight}
	if r.way == Lane {
		o.Key = r.lane
	}
	return o
}

// delayed returns a message without body that waits for d, rounded up to what the way can do, and how long that is.
// own says that the message brings its time to live with it, where a lane has none.
func (r route) delayed(d time.Duration, own bool) (m Message, rounded time.Duration, err error) {
	ms := int64((d + time.Millisecond - 1) / time.Millisecond)
	rounded = time.Duration(ms) * time.Millisecond
	switch {
	case r.way == Ladder:
		m.Copy, rounded, err = r.ladder.Key(d, ladder.QueueDestination(r.queue))
	case r.way == Delayed:
		m.Delay = ms
	case own:
		m.Expiration = ms
	}
	return m, rounded, err
}

// between is a random duration of at least the first and at most the second.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)+1))
}

// ahead is how far ahead the messages are due that only wait: from an hour to a year.
const (
	aheadLeast = time.Hour
	aheadMost  = 365 * 24 * time.Hour
)

// waitAhead publishes n messages that are due long after the measurement.
func (l *load) waitAhead(r route, n int64, size int) error {
	if n == 0 {
		return nil
	}
	p, err := l.publisher(r.options(preloadInFlight))
	if err != nil {
		return err
	}
	l.target.Progress.begin(fmt.Sprintf("%d messages that wait far ahead", n))
	random := rand.New(rand.NewPCG(1, uint64(n)))
	bodies := newBodies(size)
	for i := range n {
		m, d, err := r.delayed(between(random, aheadLeast, aheadMost), true)
		if err != nil {
			return err
		}
		m.Body = bodies.next(Stamp{Producer: MaxProducers - 1, Number: uint64(i), Due: time.Now().Add(d)})
		if err := p.Publish(m); err != nil {
			return err
		}
		l.target.Progress.published.Add(1)
	}
	defer p.Close()
	return p.Wait()
}

// preloadInFlight is the window of publishers that only prepare a measurement.
const preloadInFlight = 4096
