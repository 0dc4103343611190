package demo

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// The policy every message of the demonstration is handled by. The waits grow, and all are multiples of the ladder's
// resolution, so that lateness measures the broker and not the rounding.
const (
	Deadline    = 400 * time.Millisecond // how long a handler may take
	Grace       = 100 * time.Millisecond // how much longer, if it takes no notice of that, before it loses its place
	MaxAttempts = 4                      // deliveries before a message is parked

	minDelay  = 100 * time.Millisecond
	maxDelay  = 5 * time.Second
	delayStep = 100 * time.Millisecond
)

// Waits returns the wait before the second, third and fourth attempt.
func Waits() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}
}

// Behaviour is what the worker does with a message.
type Behaviour int

// The behaviours. Those that always go wrong end in the parking lot, the others are delivered in the end.
const (
	Succeeds Behaviour = iota
	FailsTwice
	OverrunsOnce
	PanicsOnce
	AlwaysFails
	AlwaysStuck
	AlwaysPanics
)

// failure is how one attempt goes wrong.
type failure int

const (
	none failure = iota
	fails
	overruns // and returns when its context ends
	sticks   // and takes no notice of its context
	panics
)

// on returns how the given attempt, counted from 1, goes wrong.
func (b Behaviour) on(attempt int) failure {
	switch {
	case b == FailsTwice && attempt <= 2, b == AlwaysFails:
		return fails
	case b == OverrunsOnce && attempt == 1:
		return overruns
	case b == AlwaysStuck:
		return sticks
	case b == PanicsOnce && attempt == 1, b == AlwaysPanics:
		return panics
	}
	return none
}

// A Message is one message of the plan. It goes to an exchange when Exchange is set, else straight to Queue.
type Message struct {
	ID        string
	Exchange  string
	Key       string // the routing key it is published with, and must arrive with
	Queue     string // where it must arrive
	Delay     time.Duration
	Behaviour Behaviour
}

// Names are the exchange and the queues of one run. They carry the run's id, so runs on one broker do not meet.
type Names struct {
	Exchange string // topic; routes order.* to Orders
	Orders   string
	Emails   string
}

// NewNames returns the names of the run.
func NewNames(run string) Names {
	prefix := "dormouse.demo." + run
	return Names{Exchange: prefix + ".events", Orders: prefix + ".orders", Emails: prefix + ".emails"}
}

// Binding is the key that binds the orders queue to the topic exchange.
const Binding = "order.*"

// Plan returns count messages in random order: half to the topic exchange and half straight to a queue, with random
// delays. In every twenty-five, two fail twice, one overruns its deadline, one panics, and one never succeeds.
func Plan(count int, run string, random *rand.Rand) []Message {
	names := NewNames(run)
	keys := []string{"order.created", "order.paid", "order.cancelled"}
	hopeless := []Behaviour{AlwaysFails, AlwaysStuck, AlwaysFails, AlwaysPanics}
	plan := make([]Message, count)
	for i := range plan {
		m := Message{
			ID:    fmt.Sprintf("%s-%04d", run, i+1),
			Queue: names.Emails,
			Key:   names.Emails,
			Delay: minDelay + delayStep*time.Duration(random.IntN(int((maxDelay-minDelay)/delayStep)+1)),
		}
		if i%2 == 0 {
			m.Exchange, m.Queue, m.Key = names.Exchange, names.Orders, keys[random.IntN(len(keys))]
		}
		switch i % 25 {
		case 0, 4:
			m.Behaviour = FailsTwice
		case 1:
			m.Behaviour = OverrunsOnce
		case 2:
			m.Behaviour = PanicsOnce
		case 3:
			m.Behaviour = hopeless[i/25%len(hopeless)]
		}
		plan[i] = m
	}
	random.Shuffle(count, func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	return plan
}
