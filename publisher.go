package dormouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/ladder"
)

// A publisher sends messages and learns their fate. It uses one channel at a time, which the broker closes when it dislikes
// a message; the next message then opens another.
type publisher struct {
	link   *link
	ladder *ladder.Ladder
	hooks  Hooks
	// slots bounds what is sent and not confirmed. Each message holds one until its fate is known.
	slots chan struct{}

	opening turn
	mu      sync.Mutex
	session *confirmChannel
	routes  *routes // used by opening only
}

func newPublisher(l *link, lad *ladder.Ladder, maxInFlight int, h Hooks) *publisher {
	return &publisher{link: l, ladder: lad, hooks: h, slots: make(chan struct{}, maxInFlight), opening: newTurn()}
}

// refuse is the handle of a message that is not sent.
func (p *publisher) refuse(msg *post, err error) *Confirmation {
	c := newConfirmation(msg)
	c.resolve(p.hooks, ErrNotSent, err)
	return c
}

// publish sends a message as soon as there is a connection that takes it. A message that certainly did not get through is sent
// again; as soon as it might have, its fate is told instead.
func (p *publisher) publish(ctx context.Context, msg post) *Confirmation {
	c := newConfirmation(&msg)
	select {
	case p.slots <- struct{}{}:
	case <-p.link.ctx.Done():
		c.resolve(p.hooks, ErrNotSent, ErrClosed)
		return c
	case <-ctx.Done():
		c.resolve(p.hooks, ErrNotSent, context.Cause(ctx))
		return c
	}
	for {
		s, err := p.open(ctx)
		if err == nil {
			var ready envelope
			if ready, err = p.prepare(ctx, s, &msg); err == nil {
				c.event.Delay = ready.delay
				err = s.send(c, ready)
			}
		}
		switch {
		case err == nil:
			return c
		case errors.Is(err, amqp.ErrClosed):
			continue // this session is gone; open waits for another
		}
		reason := ErrNotSent
		if failed, ok := errors.AsType[*sendError](err); ok {
			reason, err = ErrUnknown, failed.err
		} else if isChannelException(err) {
			reason = ErrRefused
		}
		c.resolve(p.hooks, reason, err)
		<-p.slots
		return c
	}
}

// prepare makes sure that the message has somewhere to go, and puts it into the form in which it is sent: straight to its
// exchange, or to the ladder. The delay is reckoned from now, as late as possible, so it is never too long.
func (p *publisher) prepare(ctx context.Context, s *confirmChannel, msg *post) (envelope, error) {
	if err := s.conn.gate.pass(ctx, s.conn.gone); err != nil {
		return envelope{}, err
	}
	if msg.wait(time.Now()) > 0 {
		if _, err := p.ladder.Round(msg.wait(time.Now())); err != nil {
			return envelope{}, err
		}
		if err := s.routes.bindDestination(ctx, msg); err != nil {
			return envelope{}, err
		}
	} else if err := s.routes.checkExchange(ctx, msg.exchange); err != nil {
		return envelope{}, err
	}
	ready, err := msg.seal(p.ladder, time.Now(), s.conn.keepsPriority)
	if err != nil {
		return envelope{}, err
	}
	return ready, checkHeaderFrame(&ready.msg, s.conn.Config.FrameSize)
}

// open returns the session on the live connection, which it opens if need be.
func (p *publisher) open(ctx context.Context) (*confirmChannel, error) {
	for {
		if p.link.ctx.Err() != nil {
			return nil, ErrClosed
		}
		if s := p.live(); s != nil {
			return s, nil
		}
		conn, err := p.link.wait(ctx)
		if err != nil {
			return nil, err
		}
		if err := conn.gate.pass(ctx, conn.gone); err != nil && !errors.Is(err, amqp.ErrClosed) {
			return nil, err
		}
		err = p.opening.do(ctx, func() error {
			if p.live() != nil || conn.IsClosed() {
				return nil
			}
			return p.openOn(conn)
		})
		if err != nil && !conn.IsClosed() {
			return nil, err
		}
	}
}

// live returns the present session if it is of use.
func (p *publisher) live() *confirmChannel {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil || p.session.ch.IsClosed() {
		return nil
	}
	return p.session
}

func (p *publisher) openOn(conn *connection) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	if p.routes == nil || p.routes.conn != conn {
		p.routes = newRoutes(conn, p.ladder, p.link.log)
	}
	s := &confirmChannel{
		p:      p,
		conn:   conn,
		ch:     ch,
		routes: p.routes,
		// A message is returned at most once and holds a slot until its return has been read, so this is never full.
		returns:  ch.NotifyReturn(make(chan amqp.Return, cap(p.slots))),
		closed:   ch.NotifyClose(make(chan *amqp.Error, 1)),
		returned: map[string][]amqp.Return{},
	}
	p.mu.Lock()
	p.session = s
	p.mu.Unlock()
	return nil
}

// flush waits until the fate of everything sent is known: until it can have all slots.
func (p *publisher) flush(ctx context.Context) error {
	taken := 0
	defer func() {
		for range taken {
			<-p.slots
		}
	}()
	for range cap(p.slots) {
		select {
		case p.slots <- struct{}{}:
			taken++
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// A confirmChannel is one channel in confirm mode.
type confirmChannel struct {
	p       *publisher
	conn    *connection
	ch      *amqp.Channel
	routes  *routes
	returns chan amqp.Return
	closed  chan *amqp.Error

	mu       sync.Mutex
	returned map[string][]amqp.Return // by message id
	awaited  int                      // messages sent whose fate is not known
	ending   *ending
}

// An ending is what is known when the channel has closed.
type ending struct {
	err error
	// alone says that a single message was on its way, so an exception can only be about it.
	alone bool
}

// A sendError means that writing the message failed when it may already have been complete.
type sendError struct{ err error }

func (e *sendError) Error() string { return e.err.Error() }

// send hands the message to amqp091-go and awaits its confirm in the background. An error that is amqp.ErrClosed means
// that not all of it was written, so it is not stored.
func (s *confirmChannel) send(c *Confirmation, e envelope) error {
	s.mu.Lock()
	s.awaited++
	s.mu.Unlock()
	c.sent = time.Now()
	confirm, err := s.ch.PublishWithDeferredConfirm(e.exchange, e.key, true, false, e.msg)
	if err != nil {
		s.mu.Lock()
		s.awaited--
		s.mu.Unlock()
		if errors.Is(err, amqp.ErrClosed) {
			return err
		}
		return &sendError{err}
	}
	go func() {
		<-confirm.Done()
		reason, cause := s.fate(confirm.Acked(), &e)
		c.resolve(s.p.hooks, reason, cause)
		<-s.p.slots
	}()
	return nil
}

// fate is what became of a message whose confirm, good or bad, has come.
func (s *confirmChannel) fate(acked bool, e *envelope) (reason, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.awaited-- }()
	switch {
	case acked:
		// The broker returns a message before it acknowledges it, and amqp091-go passes both on in order.
		if r, ok := s.takeReturn(e); ok {
			return ErrUnroutable, nowhere(r)
		}
		return nil, nil
	case !s.ch.IsClosed():
		return ErrNacked, nil
	}
	s.readEnding()
	switch {
	case s.ending == nil: // a nack just before the channel closed
		return ErrUnknown, nil
	case s.ending.alone:
		return ErrRefused, s.ending.err
	default:
		return ErrUnknown, s.ending.err
	}
}

// readEnding reads why the channel closed. amqp091-go tells that before it resolves the outstanding confirms.
func (s *confirmChannel) readEnding() {
	if s.ending != nil {
		return
	}
	select {
	case err, ok := <-s.closed:
		if ok {
			s.ending = &ending{err: err, alone: s.awaited == 1 && isChannelException(err)}
		} else {
			s.ending = &ending{err: ErrClosed}
		}
	default:
	}
}

// isChannelException reports whether the broker closed only the channel: AMQP 0-9-1's soft errors.
func isChannelException(err error) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	if !ok || !e.Server {
		return false
	}
	switch e.Code {
	case amqp.ContentTooLarge, amqp.NoRoute, amqp.NoConsumers, amqp.AccessRefused, amqp.NotFound, amqp.ResourceLocked, amqp.PreconditionFailed:
		return true
	}
	return false
}

// takeReturn looks for the return of one message. Ids are unique unless the caller repeats them, and then exchange and key decide.
func (s *confirmChannel) takeReturn(e *envelope) (amqp.Return, bool) {
	for {
		select {
		case r, ok := <-s.returns:
			if ok {
				s.returned[r.MessageId] = append(s.returned[r.MessageId], r)
				continue
			}
		default:
		}
		break
	}
	id := e.msg.MessageId
	for i, r := range s.returned[id] {
		if r.Exchange == e.exchange && r.RoutingKey == e.key {
			if s.returned[id] = slices.Delete(s.returned[id], i, i+1); len(s.returned[id]) == 0 {
				delete(s.returned, id)
			}
			return r, true
		}
	}
	return amqp.Return{}, false
}

// nowhere says where a message was to go that the broker returned.
func nowhere(r amqp.Return) error {
	if r.Exchange == "" {
		return fmt.Errorf("there is no queue %q", r.RoutingKey)
	}
	return fmt.Errorf("no queue is bound to exchange %q for routing key %q", r.Exchange, r.RoutingKey)
}
