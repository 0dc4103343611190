package broker_test

import (
	"context"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// streamLedger is what is known of one stream.
type streamLedger struct {
	*ledger
	name string

	mu        sync.Mutex
	confirmed map[uint64]bool
	published map[uint64]bool
	at        map[int64]uint64 // what was read, by offset
	offset    map[uint64]int64
	read      map[uint64]bool // in this life
}

func newStreamLedger(l *ledger, name string) *streamLedger {
	return &streamLedger{
		ledger: l, name: name, confirmed: map[uint64]bool{}, published: map[uint64]bool{},
		at: map[int64]uint64{}, offset: map[uint64]int64{}, read: map[uint64]bool{},
	}
}

func (s *streamLedger) declare(ch *amqp.Channel) error {
	_, err := ch.QueueDeclare(s.name, true, false, false, false, amqp.Table{"x-queue-type": "stream"})
	return err
}

// publish publishes up to most messages and remembers which were confirmed.
func (s *streamLedger) publish(ctx context.Context, ch *amqp.Channel, most int) error {
	var waiting []func()
	defer func() {
		for _, wait := range waiting {
			wait()
		}
	}()
	for n := range most {
		s.mu.Lock()
		number := uint64(len(s.published))
		s.published[number] = true
		s.mu.Unlock()
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", s.name, false, false, amqp.Publishing{Body: body(number, n%700)})
		if err != nil {
			return err
		}
		waiting = append(waiting, func() {
			if c.Wait() {
				s.mu.Lock()
				s.confirmed[number] = true
				s.mu.Unlock()
			}
		})
		if len(waiting) == 32 {
			waiting[0]()
			waiting = waiting[1:]
		}
	}
	return nil
}

// consume reads the stream from its first message on. An offset means the same message for ever.
func (s *streamLedger) consume(ch *amqp.Channel) error {
	s.mu.Lock()
	clear(s.read)
	s.mu.Unlock()
	if err := ch.Qos(100, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(s.name, "", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
	if err != nil {
		return err
	}
	last := int64(-1)
	for d := range deliveries {
		offset, n := header(&d, "x-stream-offset"), number(&d)
		s.mu.Lock()
		was, known := s.at[offset]
		before, read := s.offset[n]
		if offset <= last || known && was != n || read && before != offset || !s.published[n] {
			s.faulty("message %d of the stream comes with offset %d, after offset %d; that was message %d (%v), it was at offset %d (%v)", n, offset, last, was, known, before, read)
		}
		last = offset
		s.at[offset], s.offset[n], s.read[n] = n, offset, true
		s.mu.Unlock()
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	return nil
}

func (s *streamLedger) faulty(format string, values ...any) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	s.fault(format, values...)
}

// missing says what was confirmed, or read before, and has not been read in this life.
func (s *streamLedger) missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := 0
	for n := range s.published {
		if _, read := s.offset[n]; (read || s.confirmed[n]) && !s.read[n] {
			lost++
		}
	}
	if lost == 0 {
		return ""
	}
	return fmt.Sprintf("%d messages of the stream, of %d that were confirmed", lost, len(s.confirmed))
}
