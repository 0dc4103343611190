package dormouse

import (
	"maps"
	"slices"

	"github.com/dormousemq/dormouse/internal/ladder"
)

// A declaration is one exchange, queue or binding to declare.
type declaration struct {
	exchange string // the exchange to declare, or to bind
	kind     string
	queue    string // the queue to declare, or to bind
	source   string // set for a binding: where from
	key      string
	args     map[string]any
	feeder   string // set for a queue that must be there already: the fixed delay that leads to it
}

// declarations lists what a topology consists of, in stages: what is in one can be declared in any order, and needs those before. The
// ladder is apart, because it can be told from its entry whether it is there.
func (t *Topology) declarations(l *ladder.Ladder) (ladderStages, stages [][]declaration, err error) {
	if err := t.Validate(); err != nil {
		return nil, nil, err
	}
	if !t.WithoutLadder {
		ladderStages = ladderDeclarations(l, t.LadderType)
	}
	var exchanges, queues, bindings []declaration
	bind := func(queue string, list []Binding) {
		for _, b := range list {
			bindings = append(bindings, declaration{queue: queue, source: b.Exchange, key: b.RoutingKey, args: b.Args})
		}
	}
	// Destinations are bound when they are used, but a user who may only publish cannot do that.
	due := func(d declaration, destination string) {
		if !t.WithoutLadder {
			d.source, d.key = l.Due(), ladder.DestinationPattern(destination)
			bindings = append(bindings, d)
		}
	}
	for _, x := range t.Exchanges {
		exchanges = append(exchanges, x.declaration(l))
		due(declaration{exchange: x.Name}, ladder.ExchangeDestination(x.Name))
	}
	for _, q := range t.Queues {
		queues = append(queues, q.parkedDeclaration(), q.declaration())
		bind(q.Name, q.Bindings)
		due(declaration{queue: q.Name}, ladder.QueueDestination(q.Name))
	}
	var targets, delays []declaration
	for _, f := range t.FixedDelays {
		delays = append(delays, f.declaration())
		bind(f.Queue, f.Bindings)
		if f.Exchange == "" && !t.declares(f.RoutingKey) {
			targets = append(targets, declaration{queue: f.RoutingKey, feeder: f.Queue})
		}
	}
	return ladderStages, [][]declaration{exchanges, queues, targets, delays, bindings}, nil
}

// declares reports whether the topology makes the queue.
func (t *Topology) declares(queue string) bool {
	return slices.ContainsFunc(t.Queues, func(q Queue) bool { return q.Name == queue }) ||
		slices.ContainsFunc(t.FixedDelays, func(f FixedDelay) bool { return f.Queue == queue })
}

// queueArgs are the arguments that every queue of a type gets. Without the strategy at-least-once, which needs reject-publish, a
// dead letter is removed before its target has it.
func queueArgs(t QueueType, deadLetters bool) map[string]any {
	args := map[string]any{"x-queue-type": string(t)}
	if t == Quorum && deadLetters {
		args["x-dead-letter-strategy"] = "at-least-once"
		args["x-overflow"] = "reject-publish"
	}
	return args
}

// ladderDeclarations lists the ladder in stages. The entry comes after the lanes and its bindings after all others, so that nothing
// enters a ladder that leads nowhere.
func ladderDeclarations(l *ladder.Ladder, t QueueType) [][]declaration {
	t = t.orQuorum()
	unrouted := declaration{queue: l.Unrouted(), args: queueArgs(t, false)}
	if t == Quorum {
		unrouted.args["x-delivery-limit"] = unlimitedDeliveries
	}
	exchanges := []declaration{
		{exchange: l.Unrouted(), kind: "fanout"},
		{exchange: l.Due(), kind: "topic", args: map[string]any{"alternate-exchange": l.Unrouted()}},
	}
	for _, name := range l.Exchanges()[1:] {
		exchanges = append(exchanges, declaration{exchange: name, kind: "topic"})
	}
	queues := []declaration{unrouted}
	for _, lane := range l.Lanes() {
		args := queueArgs(t, true)
		args["x-message-ttl"] = lane.TTL.Milliseconds()
		args["x-dead-letter-exchange"] = lane.Next
		queues = append(queues, declaration{queue: lane.Queue, args: args})
	}
	bindings := []declaration{{queue: l.Unrouted(), source: l.Unrouted()}}
	var ofEntry []declaration
	for _, b := range l.Bindings() {
		d := declaration{exchange: b.ToExchange, queue: b.Queue, source: b.Exchange, key: b.Key}
		if b.Exchange == l.Entry() {
			ofEntry = append(ofEntry, d)
		} else {
			bindings = append(bindings, d)
		}
	}
	return [][]declaration{exchanges, queues, bindings, {{exchange: l.Entry(), kind: "topic"}}, ofEntry}
}

func (x *Exchange) declaration(l *ladder.Ladder) declaration {
	d := declaration{exchange: x.Name, kind: x.Kind, args: map[string]any{"alternate-exchange": l.Unrouted()}}
	if d.kind == "" {
		d.kind = "topic"
	}
	if x.Alternate != "" {
		d.args["alternate-exchange"] = x.Alternate
	}
	maps.Copy(d.args, x.Args)
	return d
}

// parkedDeclaration is the parking lot of a queue.
func parkedDeclaration(queue string, t QueueType) declaration {
	args := queueArgs(t.orQuorum(), false)
	if t.orQuorum() == Quorum {
		args["x-delivery-limit"] = unlimitedDeliveries
	}
	return declaration{queue: ParkedQueue(queue), args: args}
}

func (q *Queue) parkedDeclaration() declaration {
	d := parkedDeclaration(q.Name, q.Type)
	maps.Copy(d.args, q.ParkedArgs)
	return d
}

func (q *Queue) declaration() declaration {
	t := q.Type.orQuorum()
	args := queueArgs(t, true)
	if q.DeadLetterExchange != "" {
		args["x-dead-letter-exchange"] = q.DeadLetterExchange
		if t == Quorum {
			args["x-delivery-limit"] = unlimitedDeliveries
		}
	} else {
		args["x-dead-letter-exchange"] = ""
		args["x-dead-letter-routing-key"] = ParkedQueue(q.Name)
	}
	maps.Copy(args, q.Args)
	return declaration{queue: q.Name, args: args}
}

func (f *FixedDelay) declaration() declaration {
	args := queueArgs(f.Type.orQuorum(), true)
	args["x-message-ttl"] = milliseconds(f.Delay)
	args["x-dead-letter-exchange"] = f.Exchange
	if f.RoutingKey != "" {
		args["x-dead-letter-routing-key"] = f.RoutingKey
	}
	return declaration{queue: f.Queue, args: args}
}
