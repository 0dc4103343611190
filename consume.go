package dormouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/duration"
	"github.com/dormousemq/dormouse/internal/ladder"
	"github.com/dormousemq/dormouse/internal/retry"
)

// ConsumeOptions are the settings of one [Consumer].
type ConsumeOptions struct {
	// Retry is required; see [RetryPolicy].
	Retry RetryPolicy
	// Concurrency is how many handlers run at once. Default 1.
	Concurrency int
	// Prefetch is how many messages the broker sends ahead. Default and least: Concurrency.
	Prefetch int
	// Timeout is the deadline of each message. Default 15 minutes; keep it below the broker's consumer timeout (30
	// minutes unless configured otherwise).
	Timeout time.Duration
	// Grace is how long a handler may take to return after its context has ended. Then its slot goes to the next
	// message, and what it returns later is ignored. Default 5 s.
	Grace time.Duration
	// Classify, if not nil, sees what the handler returned when that was an error, and returns what to take it for: an error wrapped
	// by [Park], [RetryAfter], [Discard] or [Ignore], a [Snooze], the error itself, or nil for success. So the rules of which errors can
	// be helped by waiting stand in one place.
	Classify func(error) error
	// Breaker pauses the consumer when everything fails. Default off.
	Breaker Breaker
	// Args are arguments of basic.consume, such as x-priority.
	Args map[string]any
}

// Validate names the first option that is wrong for a client with these options.
func (o ConsumeOptions) Validate(client Options) error {
	l, err := client.complete()
	if err != nil {
		return err
	}
	return o.complete(l)
}

// complete fills in the defaults and names the first option that is wrong.
func (o *ConsumeOptions) complete(l *ladder.Ladder) error {
	if o.Concurrency == 0 {
		o.Concurrency = 1
	}
	if o.Prefetch == 0 {
		o.Prefetch = o.Concurrency
	}
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Minute
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	if err := errors.Join(o.Retry.Validate(), o.Breaker.Validate()); err != nil {
		return err
	}
	if longest := retry.Policy(o.Retry).Longest(); longest > l.Max() {
		return fmt.Errorf("retry policy: it can wait %s, and the ladder's maximum is %s", duration.Format(longest), duration.Format(l.Max()))
	}
	switch {
	case o.Concurrency < 1:
		return fmt.Errorf("Concurrency is %d, must be at least 1", o.Concurrency)
	case o.Prefetch < o.Concurrency || o.Prefetch > 65535:
		return fmt.Errorf("Prefetch is %d, must be between Concurrency, %d, and 65535", o.Prefetch, o.Concurrency)
	case o.Timeout < 0 || o.Grace < 0:
		return fmt.Errorf("Timeout %v and Grace %v must not be negative", o.Timeout, o.Grace)
	}
	return nil
}

const (
	consumerTag = "dormouse"
	// settleTime is how long a consumer that is out of time may still take to give its messages back.
	settleTime = 5 * time.Second
	// quietTime is how long deliveries that are under way may take to arrive when a consumer stops.
	quietTime = 100 * time.Millisecond
)

// A Consumer consumes one queue until it is shut down, through reconnects.
type Consumer struct {
	client  *Client
	queue   string
	handler Handler
	o       ConsumeOptions
	args    amqp.Table
	slots   chan struct{} // one for each running handler
	excuses excuses
	fuse    *fuse
	active  sync.WaitGroup // deliveries in progress

	stop     chan struct{} // closed when no more messages are wanted
	stopOnce sync.Once
	handling context.Context // parent of the handlers' contexts
	abort    context.CancelCauseFunc
	settling context.Context // bounds what comes after a handler: publishing copies
	giveUp   context.CancelFunc
	ended    chan struct{}
}

// Consume starts to consume queue. ctx bounds the start only; its values reach the handlers. The queue must exist; its
// parking lot is declared when it is missing, and with a policy that retries, the delay ladder must have been declared.
func (c *Client) Consume(ctx context.Context, queue string, h Handler, o ConsumeOptions) (*Consumer, error) {
	k, err := c.newConsumer(ctx, queue, h, o)
	if err != nil {
		return nil, fmt.Errorf("dormouse: consume %q: %w", queue, err)
	}
	conn, err := c.consume.wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("dormouse: consume %q: %w", queue, err)
	}
	s, err := k.subscribe(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("dormouse: consume %q: %w", queue, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(ErrClosed, s.ch.Close())
	}
	c.consumers[k] = struct{}{}
	go k.run(s)
	return k, nil
}

func (c *Client) newConsumer(ctx context.Context, queue string, h Handler, o ConsumeOptions) (*Consumer, error) {
	if err := validName(queue, longestQueueName); err != nil {
		return nil, err
	}
	if err := o.complete(c.ladder); err != nil {
		return nil, err
	}
	args, err := table(o.Args)
	if err != nil {
		return nil, err
	}
	k := &Consumer{
		client: c, queue: queue, handler: h, o: o, args: args,
		slots: make(chan struct{}, o.Concurrency),
		stop:  make(chan struct{}),
		ended: make(chan struct{}),
	}
	k.fuse = newFuse(queue, o.Breaker, k.reportBreaker)
	life := context.WithoutCancel(ctx)
	k.handling, k.abort = context.WithCancelCause(life)
	k.settling, k.giveUp = context.WithCancel(life)
	return k, nil
}

// Shutdown stops deliveries and waits for the running handlers as long as ctx allows; then their contexts end, and what they do
// not finish is given back to the queue without using up an attempt, for which it takes up to the options' Grace and 5 s more. It
// returns ctx's error in that case.
func (k *Consumer) Shutdown(ctx context.Context) error {
	k.stopOnce.Do(func() { close(k.stop) })
	select {
	case <-k.ended:
		return nil
	case <-ctx.Done():
	}
	k.abort(ErrShutdown)
	timer := time.AfterFunc(k.o.Grace+settleTime, k.giveUp)
	defer timer.Stop()
	<-k.ended
	return context.Cause(ctx)
}

// Done is closed when the consumer has ended, by Shutdown or with the client.
func (k *Consumer) Done() <-chan struct{} { return k.ended }

// abandon ends the consumer with its client: nothing can be settled any more.
func (k *Consumer) abandon() {
	k.stopOnce.Do(func() { close(k.stop) })
	k.abort(ErrClosed)
	k.giveUp()
}

func (k *Consumer) stopping() bool {
	select {
	case <-k.stop:
		return true
	case <-k.client.consume.ctx.Done():
		return true
	default:
		return false
	}
}

// run serves one subscription after the other.
func (k *Consumer) run(s *subscription) {
	defer func() {
		k.active.Wait()
		k.abort(ErrClosed)
		k.giveUp()
		k.client.mu.Lock()
		delete(k.client.consumers, k)
		k.client.mu.Unlock()
		close(k.ended)
	}()
	for s != nil {
		k.serve(s)
		<-s.watched
		if k.stopping() {
			return
		}
		s = k.resubscribe()
	}
}

// resubscribe tries until it succeeds; nil means that the consumer is to end.
func (k *Consumer) resubscribe() *subscription {
	ctx, cancel := context.WithCancel(k.client.consume.ctx)
	defer cancel()
	go func() {
		select {
		case <-k.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for backoff := leastBackoff; ; backoff = min(2*backoff, longestBackoff) {
		conn, err := k.client.consume.wait(ctx)
		if err != nil {
			return nil
		}
		s, err := k.subscribe(ctx, conn)
		if err == nil {
			return s
		}
		if ctx.Err() != nil {
			return nil
		}
		k.client.log.Warn("cannot consume", "queue", k.queue, "error", err, "again in", backoff)
		if !sleep(ctx, backoff) {
			return nil
		}
	}
}

// A subscription is one basic.consume on a channel of its own.
type subscription struct {
	conn       *connection
	ch         *amqp.Channel
	deliveries <-chan amqp.Delivery
	// handling and settling are the consumer's contexts; they end with the channel, too.
	handling, settling context.Context
	lose               context.CancelCauseFunc
	active             sync.WaitGroup
	watched            chan struct{} // closed when the closing of the channel has been dealt with
	acks               sync.RWMutex  // acknowledging takes it for reading

	mu   sync.Mutex
	held map[uint64]*amqp.Delivery // delivered and not settled, by delivery tag
}

// subscribe makes sure that failed messages have somewhere to go, and starts deliveries.
func (k *Consumer) subscribe(ctx context.Context, conn *connection) (*subscription, error) {
	if err := k.prepare(ctx, conn); err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	s := &subscription{conn: conn, ch: ch, watched: make(chan struct{}), held: map[uint64]*amqp.Delivery{}}
	if err := ch.Qos(k.o.Prefetch, 0, false); err != nil {
		return nil, errors.Join(err, ch.Close())
	}
	if s.deliveries, err = ch.Consume(k.queue, consumerTag, false, false, false, false, k.args); err != nil {
		return nil, errors.Join(err, ch.Close())
	}
	var settled context.CancelFunc
	s.settling, settled = context.WithCancel(k.settling)
	handling, lose := context.WithCancelCause(k.handling)
	s.handling = handling
	s.lose = func(cause error) { lose(cause); settled() }
	go k.watch(s, ch.NotifyClose(make(chan *amqp.Error, 1)))
	return s, nil
}

// watch ends the contexts of what the channel delivered when it closes. When it was lost, the return of those messages is excused: this
// process is alive.
func (k *Consumer) watch(s *subscription, closed <-chan *amqp.Error) {
	defer close(s.watched)
	err, lost := <-closed
	if !lost {
		s.lose(ErrClosed)
		return
	}
	s.lose(ErrConnectionLost)
	k.client.log.Warn("consumer lost its channel", "queue", k.queue, "error", err)
	s.mu.Lock()
	held := slices.Collect(maps.Values(s.held))
	s.mu.Unlock()
	fingerprints := make([]string, len(held))
	for i, d := range held {
		fingerprints[i] = fingerprint(d)
	}
	k.excuses.add(time.Now(), fingerprints)
}

// prepare checks the queue, declares its parking lot and binds it at the end of the ladder.
func (k *Consumer) prepare(ctx context.Context, conn *connection) error {
	err := onChannel(ctx, conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(k.queue, true, false, false, false, nil)
		return err
	})
	if err != nil && !isCode(err, amqp.AccessRefused) {
		return err
	}
	parked := parkedDeclaration(k.queue, Quorum)
	err = onChannel(ctx, conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(parked.queue, true, false, false, false, nil)
		return err
	})
	if isCode(err, amqp.NotFound) {
		err = onChannel(ctx, conn, parked.declare)
	}
	if err != nil {
		return fmt.Errorf("parking lot: %w", err)
	}
	if k.o.Retry.MaxAttempts == 1 {
		return nil
	}
	err = onChannel(ctx, conn, func(ch *amqp.Channel) error { return bindDestination(ch, k.client.ladder, &post{queue: k.queue}) })
	if isCode(err, amqp.AccessRefused) {
		k.client.log.Debug("not allowed to bind", "queue", k.queue, "error", err)
		err = nil
	}
	return err
}

// serve hands out deliveries until the subscription or the consumer ends.
func (k *Consumer) serve(s *subscription) {
	for {
		select {
		case d, ok := <-s.deliveries:
			switch {
			case ok:
				k.take(s, d)
			case s.ch.IsClosed():
				return
			default:
				k.client.log.Warn("the broker cancelled the consumer", "queue", k.queue)
				k.finish(s)
				return
			}
		case <-k.stop:
			k.drain(s)
			return
		}
	}
}

// drain stops the deliveries and waits for those in progress. What the broker sends after it has been told to stop is dropped by
// amqp091-go and would look like a crash to the next consumer. So first it is left no room to send anything: acknowledgements are held
// back until the prefetch is used up, or nothing has come for a moment.
func (k *Consumer) drain(s *subscription) {
	s.acks.Lock()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for waiting := true; waiting && s.holds() < k.o.Prefetch; {
		select {
		case d, ok := <-s.deliveries:
			if !ok {
				waiting = false
				break
			}
			k.take(s, d)
			quiet.Reset(quietTime)
		case <-quiet.C:
			waiting = false
		}
	}
	go func() { _ = s.ch.Cancel(consumerTag, false) }() // amqp091-go ends the deliveries, whatever comes of it
	for d := range s.deliveries {
		k.take(s, d)
	}
	s.acks.Unlock()
	k.finish(s)
}

// take begins to process one delivery. The broker's prefetch bounds how many there are.
func (k *Consumer) take(s *subscription, d amqp.Delivery) {
	received := time.Now()
	s.mu.Lock()
	s.held[d.DeliveryTag] = &d
	s.mu.Unlock()
	k.active.Add(1)
	s.active.Go(func() {
		defer k.active.Done()
		k.process(s, &d, received)
	})
}

// finish waits for the deliveries in progress and closes the channel.
func (k *Consumer) finish(s *subscription) {
	s.active.Wait()
	// Errors mean that the channel is closed already. Tag 0 is all that is left: a requeue is no failed delivery for RabbitMQ 4.3, the
	// closing of a channel is.
	_ = s.ch.Nack(0, true, true)
	_ = s.ch.Close()
}

// holds counts what is delivered and not settled.
func (s *subscription) holds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// settled forgets a delivery that was acknowledged or given back.
func (s *subscription) settled(d *amqp.Delivery) {
	s.mu.Lock()
	delete(s.held, d.DeliveryTag)
	s.mu.Unlock()
}
