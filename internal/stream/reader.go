package stream

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// How much a consumer is given to read at once.
const (
	batchMessages = 256
	batchBytes    = 512 << 10
)

// Consume adds a consumer, which reads from where its arguments say. It needs a prefetch
// count and must acknowledge; the error, if so, is a *wire.Exception.
func (s *Stream) Consume(c *queue.Consumer) error {
	credit := cmp.Or(c.Prefetch, c.ChannelLimit)
	switch {
	case credit == 0:
		return wire.Errorf(wire.PreconditionFailed, "consumer prefetch count is not set for stream %s", s.text)
	case c.NoAck:
		return wire.Errorf(wire.NotImplemented, "automatic acknowledgement not supported by stream %s", s.text)
	}
	o, err := parseOffset(c.Arguments)
	if err != nil {
		return s.invalidArgument(offsetArgument, err)
	}
	f, err := parseFilter(c.Arguments)
	if err != nil {
		return s.invalidArgument(filterArgument, err)
	}
	position, err := s.seek(o, s.clock.Now())
	if err != nil {
		return wire.Errorf(wire.InternalError, "cannot find the offset in stream %s: %v", s.text, err)
	}
	r := &reader{stream: s, consumer: c, entry: new(queue.Entry), filter: f, position: position, credit: credit}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return queue.ErrDeleted
	}
	c.Joins(r)
	s.readers = append(s.readers, r)
	r.wake()
	return nil
}

func (s *Stream) invalidArgument(name string, err error) error {
	return wire.Errorf(wire.PreconditionFailed, "invalid arg '%s' for %s: %v", name, s.text, err)
}

// reader is a consumer of a stream, and where it has got to. It is the Source that the
// consumer settles its deliveries with: each gives it credit for another, whatever the
// verdict.
type reader struct {
	stream   *Stream
	consumer *queue.Consumer
	entry    *queue.Entry // stands for all its deliveries
	filter   filter

	// The goroutine's that runs.
	position uint64    // the next offset to read
	batch    []*record // read and not delivered

	mu       sync.Mutex
	credit   int
	refusing bool // its Sink takes nothing until Resume
	gone     bool
	woken    bool // something has changed that it should look at
	running  bool // there is a goroutine
}

// Name is the stream's name.
func (r *reader) Name() string { return r.stream.name }

// Ack gives the consumer credit for other messages.
func (r *reader) Ack(_ *store.Tx, entries ...*queue.Entry) { r.grant(len(entries)) }

// Reject is like Ack: a stream keeps its messages, and dead-letters none.
func (r *reader) Reject(_ *store.Tx, _ bool, entries ...*queue.Entry) { r.grant(len(entries)) }

// Requeue is like Ack: the message stays where it is and is not delivered again.
func (r *reader) Requeue(_ *store.Tx, _ bool, entries ...*queue.Entry) { r.grant(len(entries)) }

// Settle does nothing: there is nothing to write of a settlement.
func (r *reader) Settle() {}

func (r *reader) grant(credit int) {
	r.stream.settled.Add(uint64(credit))
	r.mu.Lock()
	r.credit += credit
	r.mu.Unlock()
	r.wake()
}

// Resume says that the consumer's Sink takes deliveries again.
func (r *reader) Resume(*queue.Consumer) {
	r.mu.Lock()
	r.refusing = false
	r.mu.Unlock()
	r.wake()
}

// Cancel ends the consumer. A stream is never deleted with its last one.
func (r *reader) Cancel(*queue.Consumer) (last bool) {
	s := r.stream
	s.mu.Lock()
	s.readers = slices.DeleteFunc(s.readers, func(other *reader) bool { return other == r })
	s.mu.Unlock()
	r.leave()
	return false
}

// leave returns when nothing is on its way to the consumer, and nothing will be.
func (r *reader) leave() {
	r.mu.Lock()
	r.gone = true
	r.mu.Unlock()
}

// wake has the reader go on if it can take anything.
func (r *reader) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.woken = true
	if !r.running && r.ready() {
		r.running = true
		r.stream.active.Go(r.run)
	}
}

// ready tells, with mu held, whether the consumer can take a message.
func (r *reader) ready() bool { return !r.gone && !r.refusing && r.credit > 0 }

// run delivers until the consumer can take nothing more or there is nothing.
func (r *reader) run() {
	for r.goOn() {
		for r.step() {
		}
	}
}

// goOn tells whether something has changed since it last said so.
func (r *reader) goOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = r.woken && r.ready()
	r.woken = false
	return r.running
}

// step delivers the next message, or reads some. It returns false if it cannot.
func (r *reader) step() bool {
	if len(r.batch) == 0 {
		return r.fill()
	}
	next := r.batch[0]
	if r.filter.matches(next.msg) && !r.deliver(next) {
		return false
	}
	r.batch[0] = nil
	r.batch = r.batch[1:]
	return true
}

// fill reads a batch.
func (r *reader) fill() bool {
	r.mu.Lock()
	limit := min(r.credit, batchMessages)
	if r.filter.on {
		limit = batchMessages
	}
	ready := r.ready()
	r.mu.Unlock()
	if !ready {
		return false
	}
	before := r.position
	var err error
	r.batch, r.position, err = r.stream.read(r.position, limit, batchBytes)
	if err != nil {
		r.stream.unreadable(err)
		return false
	}
	return r.position > before
}

func (s *Stream) unreadable(err error) {
	if errors.Is(err, store.ErrClosed) {
		return
	}
	s.log.Error("cannot read the messages of a stream from the data folder", "error", err)
	s.again.Reset(s.clock.Now().Add(lookAgain))
}

func (r *reader) deliver(next *record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ready() {
		return false
	}
	if !r.consumer.Sink.Deliver(r.consumer, queue.Delivery{
		Queue: r, Entry: r.entry, Message: next.msg, InStream: true, Offset: next.offset,
	}) {
		r.refusing = true
		return false
	}
	r.credit--
	r.stream.delivered.Add(1)
	return true
}
