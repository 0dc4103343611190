package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/dormousemq/dormouse/internal/wire"
)

// Raw is the Client that writes and reads frames itself, many at a time.
type Raw struct{}

// writeSize is how much a raw client gathers before it writes, in bytes.
const writeSize = 64 << 10

type rawPublisher struct {
	c          *connection
	o          PublisherOptions
	out        []byte
	publish    []byte          // the frame of basic.publish
	properties wire.Properties // of every message
	plain      []byte          // encoded, of messages without anything of their own
	sent       uint64
	window     *window
}

// Publisher implements [Client].
func (Raw) Publisher(ctx context.Context, url string, o PublisherOptions) (Publisher, error) {
	c, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	p := &rawPublisher{c: c, o: o, window: newWindow()}
	p.publish = wire.AppendMethod(nil, 1, &wire.BasicPublish{Exchange: []byte(o.Exchange), RoutingKey: []byte(o.Key)})
	p.properties = wire.Properties{Flags: wire.FlagDeliveryMode, DeliveryMode: wire.Transient}
	if o.Persistent {
		p.properties.DeliveryMode = wire.Persistent
	}
	p.plain = p.properties.AppendTo(nil)
	if o.InFlight > 0 {
		if _, err := call[*wire.ConfirmSelectOk](c, 1, &wire.ConfirmSelect{}); err != nil {
			c.close()
			return nil, err
		}
	}
	go p.read()
	return p, nil
}

// read takes the confirms.
func (p *rawPublisher) read() {
	p.window.end(p.readConfirms())
}

func (p *rawPublisher) readConfirms() error {
	for {
		f, err := p.c.frames.Next()
		if err != nil {
			return err
		}
		if f.Type != wire.FrameMethod {
			continue
		}
		id, args, _ := wire.SplitMethod(f.Payload)
		switch id {
		case wire.IDBasicAck:
			var m wire.BasicAck
			if err := m.Parse(args); err != nil {
				return err
			}
			p.window.confirm(m.DeliveryTag, m.Multiple)
		case wire.IDBasicNack:
			return errNacked
		default:
			if err := refused(id, args); err != nil {
				return err
			}
		}
	}
}

var errNacked = errors.New("the broker has refused a message by basic.nack")

func (p *rawPublisher) Publish(m Message) error {
	if p.o.InFlight > 0 && !p.window.room(p.sent, p.o.InFlight) {
		if err := p.Flush(); err != nil {
			return err
		}
		if err := p.window.await(p.sent, p.o.InFlight); err != nil {
			return err
		}
	}
	p.sent++
	properties := p.plain
	if m.Expiration > 0 || m.Delay > 0 || m.Copy != "" {
		properties = p.own(m)
	}
	p.out = append(p.out, p.publish...)
	p.out = wire.AppendHeader(p.out, 1, len(m.Body), properties)
	p.out = wire.AppendBody(p.out, 1, p.c.frameMax, m.Body)
	if len(p.out) >= writeSize {
		return p.Flush()
	}
	return nil
}

// own encodes the properties of a message that has some of its own.
func (p *rawPublisher) own(m Message) []byte {
	properties := p.properties
	if m.Expiration > 0 {
		properties.Flags |= wire.FlagExpiration
		properties.Expiration = strconv.FormatInt(m.Expiration, 10)
	}
	if m.Delay > 0 {
		properties.Flags |= wire.FlagHeaders
		properties.Headers = wire.Table{{Name: "x-delay", Value: m.Delay}}
	}
	if m.Copy != "" {
		properties.Flags |= wire.FlagHeaders
		properties.Headers = append(properties.Headers, wire.Field{Name: "BCC", Value: []any{m.Copy}})
	}
	return properties.AppendTo(nil)
}

func (p *rawPublisher) Flush() error {
	if len(p.out) == 0 {
		return nil
	}
	_, err := p.c.net.Write(p.out)
	p.out = p.out[:0]
	if err != nil {
		return p.window.reason(err)
	}
	return nil
}

func (p *rawPublisher) Wait() error {
	if err := p.Flush(); err != nil || p.o.InFlight == 0 {
		return err
	}
	return p.window.await(p.sent, 1)
}

func (p *rawPublisher) Close() { p.c.close() }

// window counts what is confirmed. Its methods are safe for concurrent use.
type window struct {
	confirmed atomic.Uint64
	mu        sync.Mutex
	changed   sync.Cond
	low       uint64 // all up to here are confirmed
	ahead     map[uint64]struct{}
	err       error // no more confirms will come
}

func newWindow() *window {
	w := &window{ahead: map[uint64]struct{}{}}
	w.changed.L = &w.mu
	return w
}

// confirm takes the confirm of the message with that number, from 1 on, or of all up to it.
func (w *window) confirm(number uint64, multiple bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case multiple && number > w.low:
		for n := range w.ahead {
			if n <= number {
				delete(w.ahead, n)
			}
		}
		w.low = number
	case !multiple && number > w.low:
		w.ahead[number] = struct{}{}
	}
	for len(w.ahead) > 0 {
		if _, is := w.ahead[w.low+1]; !is {
			break
		}
		delete(w.ahead, w.low+1)
		w.low++
	}
	w.confirmed.Store(w.low + uint64(len(w.ahead)))
	w.changed.Signal()
}

// room tells whether of the messages sent fewer than n are unconfirmed.
func (w *window) room(sent uint64, n int) bool { return sent-w.confirmed.Load() < uint64(n) }

// await waits for room.
func (w *window) await(sent uint64, n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.room(sent, n) {
		if w.err != nil {
			return w.err
		}
		w.changed.Wait()
	}
	return nil
}

// end says that no more confirms will come.
func (w *window) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.changed.Broadcast()
}

// reason is why the connection ended, if that is known better than by err.
func (w *window) reason(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil && !errors.Is(w.err, io.EOF) {
		return w.err
	}
	return err
}

type rawConsumer struct {
	c      *connection
	o      ConsumerOptions
	out    []byte // verdicts that wait to be sent
	last   uint64 // the last delivery that was handled
	told   uint64 // the last one that AckMany has told of
	closed atomic.Bool
}

// Consumer implements [Client].
func (Raw) Consumer(ctx context.Context, url string, o ConsumerOptions) (Consumer, error) {
	c, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	k := &rawConsumer{c: c, o: o}
	if err := k.subscribe(); err != nil {
		c.close()
		return nil, err
	}
	return k, nil
}

func (k *rawConsumer) subscribe() error {
	if k.o.Verdict != AckAuto && k.o.Prefetch > 0 {
		if _, err := call[*wire.BasicQosOk](k.c, 1, &wire.BasicQos{PrefetchCount: uint16(k.o.Prefetch)}); err != nil {
			return err
		}
	}
	consume := &wire.BasicConsume{Queue: k.o.Queue, ConsumerTag: "c", NoAck: k.o.Verdict == AckAuto}
	_, err := call[*wire.BasicConsumeOk](k.c, 1, consume)
	return err
}

// Run implements [Consumer].
func (k *rawConsumer) Run(handle func(body []byte)) error {
	err := k.run(handle)
	if k.closed.Load() {
		return nil
	}
	return err
}

func (k *rawConsumer) run(handle func(body []byte)) error {
	var missing uint64 // of the body at hand
	first := false     // the next body frame is its first
	for {
		if !k.c.frames.Ready() {
			if err := k.tell(); err != nil {
				return err
			}
		}
		f, err := k.c.frames.Next()
		if err != nil {
			return err
		}
		switch f.Type {
		case wire.FrameMethod:
			id, args, _ := wire.SplitMethod(f.Payload)
			if id == wire.IDBasicDeliver {
				k.last++
				continue
			}
			if err := refused(id, args); err != nil {
				return err
			}
			continue
		case wire.FrameHeader:
			h, ok := wire.ParseContentHeader(f.Payload)
			if !ok {
				return f.Unknown()
			}
			if missing, first = h.BodySize, true; missing > 0 {
				continue
			}
			handle(nil)
		case wire.FrameBody:
			if uint64(len(f.Payload)) > missing {
				return fmt.Errorf("the broker sent a body that is longer than announced by %d bytes", uint64(len(f.Payload))-missing)
			}
			if missing -= uint64(len(f.Payload)); first {
				handle(f.Payload)
				first = false
			}
		}
		if missing == 0 {
			if err := k.judge(); err != nil {
				return err
			}
		}
	}
}

// judge gives the verdict on the delivery that is complete. Tags count up from 1 on a channel.
func (k *rawConsumer) judge() error {
	switch k.o.Verdict {
	case AckEach:
		k.out = appendAck(k.out, k.last, false)
	case RejectIt:
		m := wire.BasicReject{DeliveryTag: k.last}
		b, mark := wire.BeginMethod(k.out, 1)
		k.out = wire.EndMethod(m.AppendTo(b), mark)
	case AckMany:
		if k.last-k.told < uint64(k.o.Prefetch/4) {
			return nil
		}
		k.out = appendAck(k.out, k.last, true)
		k.told = k.last
	case AckAuto:
		return nil
	}
	if len(k.out) < writeSize/16 {
		return nil
	}
	return k.tell()
}

func appendAck(dst []byte, tag uint64, multiple bool) []byte {
	m := wire.BasicAck{DeliveryTag: tag, Multiple: multiple}
	b, mark := wire.BeginMethod(dst, 1)
	return wire.EndMethod(m.AppendTo(b), mark)
}

// tell sends the verdicts that wait.
func (k *rawConsumer) tell() error {
	if k.o.Verdict == AckMany && k.told < k.last {
		k.out = appendAck(k.out, k.last, true)
		k.told = k.last
	}
	if len(k.out) == 0 {
		return nil
	}
	_, err := k.c.net.Write(k.out)
	k.out = k.out[:0]
	return err
}

// Close implements [Consumer].
func (k *rawConsumer) Close() {
	k.closed.Store(true)
	k.c.close()
}
