package dormouse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/ladder"
	"github.com/dormousemq/dormouse/internal/retry"
)

// retryLanes bounds the hops of a retry: a wait with jitter would pass a lane for each of its digits.
const retryLanes = 2

// process takes one delivery from its arrival to its end. This goroutine alone settles it, so a handler's late result changes nothing.
func (k *Consumer) process(s *subscription, d *amqp.Delivery, received time.Time) {
	h := readHistory(d, k.queue, k.client.counter, k.excused(d))
	switch {
	case h.Carried:
		// A fresh copy has counts of its own; the next crash will be told apart.
		k.giveBack(s, d, h.Failed)
		return
	case h.Crashes > 0:
		attempt := h.Failed + h.Crashes
		f := failure{reason: ReasonCrash, err: fmt.Errorf("delivered %d times and never settled", h.Crashes)}
		outcome := k.conclude(s, d, h, retry.Attempt{Number: attempt, Result: retry.Failed, Reason: f.reason}, f)
		k.report(d, AttemptEvent{Attempt: attempt, Outcome: outcome, Reason: f.reason, Err: f.err})
		return
	case !k.enter(s):
		if s.handling.Err() == nil || errors.Is(context.Cause(s.handling), ErrShutdown) {
			k.giveBack(s, d, h.Failed)
		}
		return
	}
	defer func() { <-k.slots }()

	delivery := &Delivery{
		Message:     readMessage(d, k.client.counter),
		Queue:       k.queue,
		Attempt:     h.Failed + 1,
		Redelivered: d.Redelivered,
		Snoozed:     h.snoozed,
		FirstTime:   h.firstTime,
		LastReason:  h.lastReason,
		LastError:   h.lastError,
		DueTime:     moment(d.Headers, headerDueTime),
	}
	event := AttemptEvent{Attempt: delivery.Attempt}
	if !delivery.DueTime.IsZero() {
		event.Lateness = received.Sub(delivery.DueTime)
	}
	began := time.Now()
	r := k.handle(s.handling, delivery)
	event.Took = time.Since(began)
	k.fuse.ended(r)
	if _, err := k.client.ladder.Round(r.after); err != nil {
		r.result, r.err = retry.Hopeless, errors.Join(r.err, err)
	}
	event.Reason, event.Err = r.reason, r.err
	switch {
	case r.interrupted && errors.Is(context.Cause(s.handling), ErrShutdown):
		event.Outcome = k.giveBack(s, d, h.Failed)
	case r.interrupted:
		event.Outcome = OutcomeInterrupted
	default:
		attempt := retry.Attempt{Number: delivery.Attempt, Result: r.result, Reason: r.reason, Until: r.after}
		event.Outcome = k.conclude(s, d, h, attempt, failure{r.reason, r.err, r.stack})
	}
	k.report(d, event)
}

// excused is how many of a message's returns are known to be no crash. Beyond the policy's maximum none is: that message has to do with
// the connections being lost.
func (k *Consumer) excused(d *amqp.Delivery) int {
	if !d.Redelivered {
		return 0
	}
	n := k.excuses.times(func() string { return fingerprint(d) })
	if n > k.o.Retry.MaxAttempts {
		return 0
	}
	return n
}

// enter waits for a slot. False means that the handler is not to be run any more.
func (k *Consumer) enter(s *subscription) bool {
	select {
	case k.slots <- struct{}{}:
	case <-k.stop:
		return false
	case <-s.handling.Done():
		return false
	}
	if k.stopping() || s.handling.Err() != nil || // as well, and select chooses at random
		!k.fuse.pass(s.handling, k.stop) {
		<-k.slots
		return false
	}
	return true
}

// A handled is what came out of running a handler.
type handled struct {
	result retry.Result
	after  time.Duration
	reason Reason
	err    error
	stack  []byte // of a panic
	// interrupted says that its context ended for no fault of its own, before it had a result.
	interrupted bool
}

// handle runs the handler until its deadline and, when its context has ended, for the grace time more.
func (k *Consumer) handle(ctx context.Context, d *Delivery) handled {
	ctx, cancel := context.WithTimeoutCause(ctx, k.o.Timeout, ErrTimeout)
	defer cancel()
	done := make(chan handled, 1) // buffered: nobody may be there for a late result
	go func() { done <- k.call(ctx, d) }()
	select {
	case r := <-done:
		return r.interpret(ctx)
	case <-ctx.Done():
	}
	timer := time.NewTimer(k.o.Grace)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.interpret(ctx)
	case <-timer.C:
	}
	k.client.log.Error("handler ignores the end of its context; its slot is given away and its result will be ignored",
		"queue", k.queue, "message", d.MessageID, "cause", context.Cause(ctx))
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrTimeout) {
		return handled{result: retry.Failed, reason: ReasonTimeout, err: ErrTimeout}
	}
	return handled{interrupted: true, err: cause}
}

// call runs the handler and turns whatever it does into a result.
func (k *Consumer) call(ctx context.Context, d *Delivery) (r handled) {
	returned := false
	defer func() {
		if returned {
			return
		}
		r = handled{result: retry.Failed, reason: ReasonPanic}
		if v := recover(); v != nil {
			r.err = fmt.Errorf("panic: %v", v)
		} else {
			r.err = errors.New("the handler ended its goroutine")
		}
		r.stack = debug.Stack()
		k.client.log.Error("handler panicked", "queue", k.queue, "message", d.MessageID, "error", r.err, "stack", string(r.stack))
	}()
	err := k.handler(ctx, d)
	if err != nil && k.o.Classify != nil {
		err = k.o.Classify(err)
	}
	returned = true
	r = handled{err: err}
	if err == nil {
		return r
	}
	r.result, r.reason = retry.Failed, ReasonError
	if v, ok := errors.AsType[*verdictError](err); ok {
		r.result, r.after = v.result, v.after
	}
	if r.result == retry.Snoozed || r.result == retry.Succeeded {
		r.reason = ""
	}
	return r
}

// interpret sees a failure in the light of how its context ended.
func (r handled) interpret(ctx context.Context) handled {
	if ctx.Err() == nil || r.result != retry.Failed || r.reason != ReasonError {
		return r
	}
	if errors.Is(context.Cause(ctx), ErrTimeout) {
		r.reason = ReasonTimeout
		return r
	}
	r.interrupted = true
	return r
}

// conclude ends a delivery as the policy decides. A copy is stored before the original is acknowledged.
func (k *Consumer) conclude(s *subscription, d *amqp.Delivery, h history, a retry.Attempt, f failure) Outcome {
	decision := retry.Policy(k.o.Retry).Decide(a, rand.Float64)
	now := time.Now()
	first := h.firstTime
	if first.IsZero() {
		first = now
	}
	switch decision.Action {
	case retry.ActRetry:
		p := post{key: ladderSafe(d, k.queue), queue: k.queue, due: now.Add(decision.Wait), lanes: retryLanes}
		if decision.Chosen {
			p.lanes = 0
		}
		p.Publishing = failedCopy(d, s.conn.user, k.queue, k.client.counter, a.Number, first, f)
		if !k.store(s, p) {
			return OutcomeInterrupted
		}
		k.ack(s, d)
		if k.client.hooks.Retry != nil {
			k.client.hooks.Retry(RetryEvent{Queue: k.queue, MessageID: d.MessageId, Attempt: a.Number, Reason: f.reason, Delay: decision.Wait})
		}
		return OutcomeRetried
	case retry.ActSnooze:
		p := post{key: ladderSafe(d, k.queue), queue: k.queue, due: now.Add(decision.Wait)}
		p.Publishing = snoozedCopy(d, s.conn.user, k.queue, k.client.counter, h)
		if !k.store(s, p) {
			return OutcomeInterrupted
		}
		k.ack(s, d)
		return OutcomeSnoozed
	case retry.ActPark:
		p := post{queue: ParkedQueue(k.queue)}
		p.Publishing = parkedCopy(d, s.conn.user, k.queue, k.client.counter, a.Number, first, f)
		if !k.store(s, p) {
			return OutcomeInterrupted
		}
		k.ack(s, d)
		k.client.log.Warn("message parked", "queue", k.queue, "message", d.MessageId, "attempts", a.Number, "reason", f.reason, "error", f.err)
		if k.client.hooks.Parked != nil {
			k.client.hooks.Parked(ParkedEvent{Queue: k.queue, MessageID: d.MessageId, Attempts: a.Number, Reason: f.reason, Err: f.err})
		}
		return OutcomeParked
	}
	if !k.ack(s, d) {
		return OutcomeInterrupted
	}
	if decision.Action == retry.ActDiscard {
		return OutcomeDiscarded
	}
	return OutcomeDone
}

// ladderSafe is the key that a copy keeps on the ladder: the message's own, unless it would be taken for a ladder key.
func ladderSafe(d *amqp.Delivery, queue string) string {
	if _, key := origin(d); !strings.HasPrefix(key, ladder.KeyPrefix) {
		return key
	}
	if strings.HasPrefix(queue, ladder.KeyPrefix) {
		return ""
	}
	return queue
}

// giveBack returns a message to the end of its queue with the attempts it has. A plain requeue would do, but the next consumer could not tell
// it from a crash: only quorum queues since RabbitMQ 4.3 make that difference. The plain requeue is what is left when the copy
// cannot be stored.
func (k *Consumer) giveBack(s *subscription, d *amqp.Delivery, failed int) Outcome {
	p := post{queue: k.queue, Publishing: unchangedCopy(d, s.conn.user, k.queue, k.client.counter, failed)}
	if k.store(s, p) {
		k.ack(s, d)
		return OutcomeRequeued
	}
	if err := d.Nack(false, true); err != nil {
		return OutcomeInterrupted
	}
	s.settled(d)
	return OutcomeRequeued
}

// store publishes a copy, again and again until it is confirmed. A copy that may already be stored is published again: twice is better
// than never. False means that time is up or the original is out of reach, so that the broker will deliver it again.
func (k *Consumer) store(s *subscription, p post) bool {
	for backoff := leastBackoff; ; backoff = min(2*backoff, longestBackoff) {
		err := k.client.pub.publish(s.settling, p).Wait(s.settling)
		if err == nil {
			return true
		}
		if s.settling.Err() != nil || errors.Is(err, ErrClosed) {
			return false
		}
		k.client.log.Error("cannot store the copy of a message; it stays unacknowledged",
			"queue", k.queue, "to", p.queue, "message", p.MessageId, "error", err, "again in", backoff)
		if errors.Is(err, ErrUnroutable) || errors.Is(err, ErrRefused) { // somebody deleted what was there when the consumer began
			if err := k.prepare(s.settling, s.conn); err != nil {
				k.client.log.Error("cannot declare what the copy needs", "queue", k.queue, "error", err)
			}
		}
		if !sleep(s.settling, backoff) {
			return false
		}
	}
}

// ack acknowledges a delivery and reports whether that was possible. If not, the message will be delivered again.
func (k *Consumer) ack(s *subscription, d *amqp.Delivery) bool {
	s.acks.RLock()
	err := d.Ack(false)
	s.acks.RUnlock()
	if err != nil {
		k.client.log.Warn("cannot acknowledge; the message will be delivered again", "queue", k.queue, "message", d.MessageId, "error", err)
		return false
	}
	s.settled(d)
	k.excuses.settled(func() string { return fingerprint(d) })
	return true
}

func (k *Consumer) report(d *amqp.Delivery, e AttemptEvent) {
	if k.client.hooks.Attempt == nil {
		return
	}
	e.Queue, e.MessageID = k.queue, d.MessageId
	k.client.hooks.Attempt(e)
}

func (k *Consumer) reportBreaker(e BreakerEvent) {
	switch e.State {
	case BreakerOpen:
		k.client.log.Error("everything fails; nothing is handled for a while", "queue", e.Queue, "failures", e.Failures, "pause", e.Pause, "error", e.Err)
	case BreakerProbing:
		k.client.log.Info("the pause is over; one message is handled to see", "queue", e.Queue)
	case BreakerClosed:
		k.client.log.Info("messages are handled again", "queue", e.Queue)
	}
	if k.client.hooks.Breaker != nil {
		k.client.hooks.Breaker(e)
	}
}
