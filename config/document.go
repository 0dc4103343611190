package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dormousemq/dormouse"
)

// document is a file as it is written.
type document struct {
	Prefix      string                `yaml:"prefix"`
	CountHeader string                `yaml:"count-header"`
	Ladder      ladderPart            `yaml:"ladder"`
	Exchanges   map[string]exchange   `yaml:"exchanges"`
	Queues      map[string]queue      `yaml:"queues"`
	FixedDelays map[string]fixedDelay `yaml:"fixed-delays"`
}

type ladderPart struct {
	Type       dormouse.QueueType `yaml:"type"`
	MaxDelay   duration           `yaml:"max-delay"`
	Resolution duration           `yaml:"resolution"`
}

type exchange struct {
	Kind      string         `yaml:"kind"`
	Alternate string         `yaml:"alternate"`
	Arguments map[string]any `yaml:"arguments"`
}

type binding struct {
	Exchange  string         `yaml:"exchange"`
	Key       string         `yaml:"key"`
	Arguments map[string]any `yaml:"arguments"`
}

type queue struct {
	Type               dormouse.QueueType `yaml:"type"`
	Bindings           []binding          `yaml:"bindings"`
	DeadLetterExchange string             `yaml:"dead-letter-exchange"`
	Arguments          map[string]any     `yaml:"arguments"`
	ParkingLot         parkingLot         `yaml:"parking-lot"`

	Deadline    duration      `yaml:"deadline"`
	Grace       duration      `yaml:"grace"`
	Concurrency int           `yaml:"concurrency"`
	Prefetch    int           `yaml:"prefetch"`
	Retry       *retryPolicy  `yaml:"retry"`
	Breaker     breakerPolicy `yaml:"breaker"`
}

type parkingLot struct {
	Arguments map[string]any `yaml:"arguments"`
}

type retryPolicy struct {
	Attempts   int                `yaml:"attempts"`
	Steps      []duration         `yaml:"steps"`
	First      duration           `yaml:"first"`
	Factor     float64            `yaml:"factor"`
	Max        duration           `yaml:"max"`
	Jitter     float64            `yaml:"jitter"`
	Exhausted  dormouse.Exhausted `yaml:"exhausted"`
	ParkAtOnce []dormouse.Reason  `yaml:"park-at-once"`
}

type breakerPolicy struct {
	Failures int      `yaml:"failures"`
	Pause    duration `yaml:"pause"`
	MaxPause duration `yaml:"max-pause"`
}

type fixedDelay struct {
	Delay    duration           `yaml:"delay"`
	To       string             `yaml:"to"`
	Exchange string             `yaml:"exchange"`
	Key      string             `yaml:"key"`
	Bindings []binding          `yaml:"bindings"`
	Type     dormouse.QueueType `yaml:"type"`
}

// file is the document as the library takes it. What is wrong goes to c.
func (d *document) file(c *checker) *File {
	f := &File{
		Options: dormouse.Options{
			Prefix: d.Prefix, CountHeader: d.CountHeader,
			MaxDelay: time.Duration(d.Ladder.MaxDelay), Resolution: time.Duration(d.Ladder.Resolution),
		},
		Topology:  dormouse.Topology{LadderType: d.Ladder.Type},
		Consumers: map[string]dormouse.ConsumeOptions{},
	}
	c.check(f.Options.Validate(), "ladder")
	c.check(f.Topology.Validate(), "ladder", "type")
	for _, name := range slices.Sorted(maps.Keys(d.Exchanges)) {
		x := d.Exchanges[name]
		made := dormouse.Exchange{Name: name, Kind: x.Kind, Alternate: x.Alternate, Args: x.Arguments}
		c.check((&dormouse.Topology{Exchanges: []dormouse.Exchange{made}}).Validate(), "exchanges", name)
		f.Topology.Exchanges = append(f.Topology.Exchanges, made)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Queues)) {
		d.addQueue(c, f, name)
	}
	for _, name := range slices.Sorted(maps.Keys(d.FixedDelays)) {
		d.addFixedDelay(c, f, name)
	}
	return f
}

func (d *document) addQueue(c *checker, f *File, name string) {
	q := d.Queues[name]
	made := dormouse.Queue{
		Name: name, Type: q.Type, DeadLetterExchange: q.DeadLetterExchange, Args: q.Arguments, ParkedArgs: q.ParkingLot.Arguments,
		Bindings: bindings(q.Bindings),
	}
	c.check((&dormouse.Topology{Queues: []dormouse.Queue{made}}).Validate(), "queues", name)
	f.Topology.Queues = append(f.Topology.Queues, made)
	if q.Retry == nil {
		for key, set := range map[string]bool{
			"deadline": q.Deadline != 0, "grace": q.Grace != 0, "concurrency": q.Concurrency != 0, "prefetch": q.Prefetch != 0, "breaker": q.Breaker != breakerPolicy{},
		} {
			if set {
				c.fail(fmt.Errorf("%s means nothing without retry, which says how the queue is consumed", key), "queues", name, key)
			}
		}
		return
	}
	o := dormouse.ConsumeOptions{
		Retry:       q.Retry.policy(),
		Concurrency: q.Concurrency, Prefetch: q.Prefetch, Timeout: time.Duration(q.Deadline), Grace: time.Duration(q.Grace),
		Breaker: dormouse.Breaker{Failures: q.Breaker.Failures, Pause: time.Duration(q.Breaker.Pause), MaxPause: time.Duration(q.Breaker.MaxPause)},
	}
	if err := o.Retry.Validate(); err != nil {
		c.fail(err, "queues", name, "retry")
	} else if err := o.Breaker.Validate(); err != nil {
		c.fail(err, "queues", name, "breaker")
	} else if f.Options.Validate() == nil {
		c.check(o.Validate(f.Options), "queues", name)
	}
	f.Consumers[name] = o
}

func (r *retryPolicy) policy() dormouse.RetryPolicy {
	p := dormouse.RetryPolicy{
		MaxAttempts: r.Attempts, Exhausted: r.Exhausted, First: time.Duration(r.First), Factor: r.Factor, Max: time.Duration(r.Max),
		Jitter: r.Jitter, ParkAtOnce: r.ParkAtOnce,
	}
	for _, s := range r.Steps {
		p.Steps = append(p.Steps, time.Duration(s))
	}
	if p.Exhausted == "" {
		p.Exhausted = dormouse.ExhaustedPark
	}
	if p.MaxAttempts == 0 && len(p.Steps) > 0 {
		p.MaxAttempts = len(p.Steps) + 1
	}
	return p
}

func (d *document) addFixedDelay(c *checker, f *File, name string) {
	w := d.FixedDelays[name]
	made := dormouse.FixedDelay{
		Queue: name, Delay: time.Duration(w.Delay), Exchange: w.Exchange, RoutingKey: w.Key, Bindings: bindings(w.Bindings), Type: w.Type,
	}
	switch {
	case (w.To == "") == (w.Exchange == ""):
		c.fail(errors.New("either to, the queue that gets the messages, or exchange is needed"), "fixed-delays", name)
		return
	case w.To != "" && w.Key != "":
		c.fail(errors.New("key goes with exchange, not with to"), "fixed-delays", name, "key")
		return
	case w.To != "":
		made.RoutingKey = w.To
	}
	c.check((&dormouse.Topology{FixedDelays: []dormouse.FixedDelay{made}}).Validate(), "fixed-delays", name)
	f.Topology.FixedDelays = append(f.Topology.FixedDelays, made)
}

func bindings(list []binding) []dormouse.Binding {
	var made []dormouse.Binding
	for _, b := range list {
		made = append(made, dormouse.Binding{Exchange: b.Exchange, RoutingKey: b.Key, Args: b.Arguments})
	}
	return made
}
