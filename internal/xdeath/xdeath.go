// Package xdeath keeps the history of a message's deaths as RabbitMQ 4 does: it records them, decides whether a dead
// letter is going in a circle, and reads the x-death header on the client's side.
//
// The broker owns the history. An x-death header that a client publishes is an ordinary header and is never turned into
// a history, see https://www.rabbitmq.com/docs/dlx.
package xdeath

import (
	"slices"
	"time"
)

// The reasons for which a queue lets a message die.
const (
	Rejected      = "rejected"       // a consumer refused it with requeue=false
	Expired       = "expired"        // its time to live was over
	MaxLen        = "maxlen"         // the queue was longer than its limit
	DeliveryLimit = "delivery_limit" // it came back too often
)

// A Death stands for all deaths in one queue for one reason. Its fields tell of the first of them, only Count
// covers all.
type Death struct {
	Queue    string
	Reason   string
	Exchange string   // where the message had been published before it died
	Keys     []string // its routing keys with CC, without BCC
	Count    int64
	Time     time.Time // of the first death; the header carries whole seconds

	// OriginalExpiration is the message's own expiration in milliseconds, which dead-lettering removes, or "" when it
	// had none.
	OriginalExpiration string
}

// Deaths are ordered by recency, the latest first, with one entry for each pair of queue and reason.
type Deaths []Death

// Count returns how often the message died in the queue for the reason.
func (d Deaths) Count(queue, reason string) int64 {
	if i := d.index(queue, reason); i >= 0 {
		return d[i].Count
	}
	return 0
}

func (d Deaths) index(queue, reason string) int {
	return slices.IndexFunc(d, func(x Death) bool { return x.Queue == queue && x.Reason == reason })
}

// History is all that a broker remembers of a message's deaths. It never changes: [History.Record] returns a new one,
// because a message is shared by all the queues it is in. A nil History is that of a message that never died.
type History struct {
	Deaths Deaths

	FirstQueue, FirstReason, FirstExchange string // headers x-first-death-*, set once
	LastQueue, LastReason, LastExchange    string // headers x-last-death-*, set each time
}

// An Event is one death as it happens. The exchange, keys and expiration are those that the message had in the queue
// where it died.
type Event struct {
	Queue              string
	Reason             string
	Exchange           string
	Keys               []string // not copied; must not change afterwards
	Time               time.Time
	OriginalExpiration string
}

// Record returns the history with one more death. A repeated pair of queue and reason only counts and moves to the
// front.
func (h *History) Record(e Event) *History {
	next := &History{FirstQueue: e.Queue, FirstReason: e.Reason, FirstExchange: e.Exchange}
	var before Deaths
	if h != nil {
		next.FirstQueue, next.FirstReason, next.FirstExchange = h.FirstQueue, h.FirstReason, h.FirstExchange
		before = h.Deaths
	}
	next.LastQueue, next.LastReason, next.LastExchange = e.Queue, e.Reason, e.Exchange

	next.Deaths = make(Deaths, 1, len(before)+1)
	if i := before.index(e.Queue, e.Reason); i >= 0 {
		next.Deaths[0] = before[i]
		next.Deaths[0].Count++
		next.Deaths = append(append(next.Deaths, before[:i]...), before[i+1:]...)
		return next
	}
	next.Deaths[0] = Death{
		Queue: e.Queue, Reason: e.Reason, Exchange: e.Exchange, Keys: e.Keys,
		Count: 1, Time: e.Time, OriginalExpiration: e.OriginalExpiration,
	}
	next.Deaths = append(next.Deaths, before...)
	return next
}

// Cycle reports whether a message that died for the reason must not be dead-lettered to the target queue, because it
// was there before and no consumer had a hand in its way back. The history already contains the present death.
//
// The deaths are read from the latest to the latest one in the target itself: the way back is automatic, and so a
// cycle, if nothing on it was a rejection. A target in which the message never died makes no cycle.
func (h *History) Cycle(target, reason string) bool {
	if h == nil || reason == Rejected {
		return false
	}
	for _, d := range h.Deaths {
		if d.Reason == Rejected {
			return false
		}
		if d.Queue == target {
			return true
		}
	}
	return false
}
