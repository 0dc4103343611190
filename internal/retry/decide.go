package retry

import (
	"slices"
	"time"
)

// A Result is what came out of one attempt.
type Result int

// The results.
const (
	Succeeded   Result = iota
	Failed             // another attempt by the policy
	FailedUntil        // another attempt, but after a time of the handler's choice
	Snoozed            // no attempt at all: again after a time of the handler's choice
	Hopeless           // no other attempt can help
	Worthless          // to be forgotten
)

// An Action is how a delivery ends.
type Action int

// The actions.
const (
	ActDone Action = iota
	ActRetry
	ActSnooze // like ActRetry, and the attempt does not count
	ActPark
	ActDiscard
)

// A Decision is an action and, for ActRetry and ActSnooze, the wait before the next attempt.
type Decision struct {
	Action Action
	Wait   time.Duration
	// Chosen says that the handler chose the wait, so it is kept as exactly as the ladder can.
	Chosen bool
}

// An Attempt is what is to be decided about.
type Attempt struct {
	Number int // from 1
	Result Result
	Reason Reason        // why it failed
	Until  time.Duration // the wait of FailedUntil and Snoozed
}

// Decide says how a delivery ends. random returns numbers in [0, 1) and is called only when there is jitter.
func (p Policy) Decide(a Attempt, random func() float64) Decision {
	switch a.Result {
	case Succeeded:
		return Decision{Action: ActDone}
	case Snoozed:
		return Decision{Action: ActSnooze, Wait: max(a.Until, 0), Chosen: true}
	case Hopeless:
		return Decision{Action: ActPark}
	case Worthless:
		return Decision{Action: ActDiscard}
	}
	switch {
	case slices.Contains(p.ParkAtOnce, a.Reason):
		return Decision{Action: ActPark}
	case a.Number >= p.MaxAttempts && p.Exhausted == Discard:
		return Decision{Action: ActDiscard}
	case a.Number >= p.MaxAttempts:
		return Decision{Action: ActPark}
	case a.Result == FailedUntil:
		return Decision{Action: ActRetry, Wait: max(a.Until, 0), Chosen: true}
	}
	return Decision{Action: ActRetry, Wait: p.Wait(a.Number, random)}
}

// Evidence is what a delivery shows of earlier ones.
type Evidence struct {
	// Counted is the value of the header that counts failed attempts.
	Counted int
	// Rejected is how often the message died here by rejection, by x-death: the count of a loop that the broker runs alone.
	Rejected int
	// DiedUnacked says that it was dead-lettered somewhere after a delivery: rejected, or over a delivery limit.
	DiedUnacked bool
	// HasCount says that the broker sent x-delivery-count or x-acquired-count, as quorum queues do.
	HasCount bool
	// DeliveryCount is x-delivery-count, 0 when absent: RabbitMQ before 4.3 counts every return to the queue, 4.3 only failed
	// deliveries and lost connections.
	DeliveryCount int
	// Redelivered is the flag of basic.deliver. It is all that a classic queue tells.
	Redelivered bool
	// Excused is how many of the earlier deliveries are known not to have failed.
	Excused int
}

// A Count is what the evidence comes to.
type Count struct {
	// Failed attempts so far, crashes not included.
	Failed int
	// Crashes are deliveries that somebody got and never settled.
	Crashes int
	// Carried says that the broker's counts cannot be told apart from those of a queue where the message was before.
	// Since RabbitMQ 4.0 a dead-lettered message takes its delivery count along, and since 4.3 also the redelivered flag to
	// classic queues. Nothing is counted as a crash then; a fresh copy of the message has counts that are its own.
	Carried bool
}

// Assess counts the attempts that a message has used up before this delivery.
func Assess(e Evidence) Count {
	c := Count{Failed: max(e.Counted, 0) + max(e.Rejected, 0)}
	unsettled := e.DeliveryCount
	if !e.HasCount && e.Redelivered {
		unsettled = 1
	}
	if unsettled > 0 && e.DiedUnacked {
		c.Carried = true
		return c
	}
	c.Crashes = max(unsettled-e.Excused, 0)
	return c
}
