package management

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dormousemq/dormouse/internal/session"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// samplePeriod is the time between two samples, RabbitMQ's collect_statistics_interval.
const samplePeriod = 5 * time.Second

// sample is what everything had counted at one moment.
type sample struct {
	at        time.Time
	queues    map[*vhost.Queue]queueCounts
	exchanges map[*vhost.Exchange]exchangeCounts
	hosts     map[string]hostCounts
	channels  map[channelKey]session.Counts
	traffic   map[string]traffic // of connections by name
	churn     churn
}

type channelKey struct {
	connection string
	number     uint16
}

type exchangeCounts struct{ in, out uint64 }

type traffic struct{ received, sent session.Traffic }

// samples keeps the last two samples.
type samples struct{ last atomic.Pointer[period] }

// period is the time between two samples, over which rates are taken.
type period struct{ from, to *sample }

// now is the last period; one without a length if there is none.
func (s *samples) now() *period {
	if p := s.last.Load(); p != nil {
		return p
	}
	return &period{&sample{}, &sample{}}
}

// rate is how fast something grew that was a at the beginning and b at the end.
func (p *period) rate(a, b float64) rate {
	if seconds := p.to.at.Sub(p.from.at).Seconds(); !p.from.at.IsZero() && seconds > 0 {
		return rate((b - a) / seconds)
	}
	return 0
}

// counted adds a number and how fast it grew.
func counted[N int | uint64](o *object, name string, now, a, b N, p *period) {
	o.add(name, now)
	o.add(name+"_details", object{{"rate", p.rate(float64(a), float64(b))}})
}

// Run takes samples from the first request on until ctx ends.
func (h *Handler) Run(ctx context.Context) {
	select {
	case <-h.asked:
	case <-ctx.Done():
		return
	}
	h.sample(time.Now())
	ticker := time.NewTicker(samplePeriod)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			h.sample(now)
		case <-ctx.Done():
			return
		}
	}
}

// sample takes a sample, and has the period from the last one to it looked at.
func (h *Handler) sample(now time.Time) {
	before := h.samples.now().to
	s := &sample{
		at:     now,
		queues: map[*vhost.Queue]queueCounts{}, exchanges: map[*vhost.Exchange]exchangeCounts{},
		hosts: map[string]hostCounts{}, channels: map[channelKey]session.Counts{}, traffic: map[string]traffic{},
		churn: h.churnNow(),
	}
	totals := h.Sessions.Totals()
	for _, host := range h.Hosts.All() {
		c := hostCounts{totals: totals[host.Name()]}
		for _, q := range host.Queues() {
			counts := countsOf(q, q.Inspect())
			if old, known := before.queues[q]; known && counts.same(old) {
				if counts.idleSince = old.idleSince; counts.idleSince.IsZero() {
					counts.idleSince = before.at
				}
			}
			s.queues[q] = counts
			c.ready += counts.ready
			c.unacked += counts.unacked
		}
		for _, x := range host.Exchanges() {
			s.exchanges[x] = exchangeCounts{x.PublishedIn(), x.PublishedOut()}
		}
		s.hosts[host.Name()] = c
	}
	for _, c := range h.Sessions.Connections() {
		s.traffic[c.Name] = traffic{c.Received, c.Sent}
		for _, ch := range c.Channels {
			s.channels[channelKey{c.Name, ch.Number}] = ch.Counts
		}
	}
	h.samples.last.Store(&period{before, s})
}
