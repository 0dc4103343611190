package dormouse

import (
	"context"
	"errors"
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// orderly is up to how many messages that nobody asked for are taken, only to give all back in order.
	orderly = 2000
	// unknown is the size of a parking lot that may not be asked for: a walk ends then when the lot is empty.
	unknown = math.MaxInt
)

// errEnough ends a walk early without an error.
var errEnough = errors.New("enough")

// A walk goes through a parking lot on a channel of its own. All that it takes and does not remove goes back in order.
type walk struct {
	ch    *amqp.Channel
	lot   string // the queue
	size  int    // how many messages were there at the start
	taken []*visit
}

// A visit is one message taken from a parking lot and not given back yet.
type visit struct {
	message  *ParkedMessage
	delivery *amqp.Delivery
	user     string
	tag      uint64
	removed  bool
}

func (v *visit) remove() error {
	if err := v.delivery.Ack(false); err != nil {
		return err
	}
	v.removed = true
	return nil
}

// walk takes the messages of a parking lot one after the other and calls do for each that is selected, then end (which may be nil). What
// has not been removed by then is given back; it returns how many of the messages it looked at those are.
func (c *Client) walk(ctx context.Context, queue string, s Selection, do func(*visit) error, end func() error) (kept int, err error) {
	conn, err := c.consume.wait(ctx)
	if err != nil {
		return 0, err
	}
	size, err := c.sizeOfLot(ctx, conn, queue)
	if err != nil {
		return 0, err
	}
	err = onChannel(ctx, conn, func(ch *amqp.Channel) error {
		w := &walk{ch: ch, lot: ParkedQueue(queue), size: size}
		err := w.visit(s, func(d *amqp.Delivery) *visit {
			return &visit{delivery: d, message: readParked(d, queue, c.counter), user: conn.user, tag: d.DeliveryTag}
		}, do)
		if end != nil && err == nil {
			err = end()
		}
		for _, v := range w.taken {
			if !v.removed {
				kept++
			}
		}
		return errors.Join(err, w.giveBack())
	})
	return kept, err
}

// visit takes messages until the selection is satisfied or the lot is empty.
func (w *walk) visit(s Selection, read func(*amqp.Delivery) *visit, do func(*visit) error) error {
	for matched := 0; len(w.taken) < w.size && (s.Limit == 0 || matched < s.Limit); {
		d, ok, err := w.ch.Get(w.lot, false)
		if err != nil || !ok {
			return err
		}
		v := read(&d)
		w.taken = append(w.taken, v)
		if s.Match != nil && !s.Match(v.message) {
			v.delivery, v.message = nil, nil // it may be one of very many
			continue
		}
		matched++
		if err := do(v); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// giveBack requeues what was taken and not removed. A quorum queue puts messages that come back behind those that came back before, so
// the order is only kept when all were taken.
func (w *walk) giveBack() error {
	var back []uint64
	for _, v := range w.taken {
		if !v.removed {
			back = append(back, v.tag)
		}
	}
	if len(back) == 0 {
		return nil
	}
	removed := len(w.taken) - len(back)
	for rest := w.size - len(w.taken); rest > 0 && rest <= orderly; rest-- {
		d, ok, err := w.ch.Get(w.lot, false)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		back = append(back, d.DeliveryTag)
	}
	for _, tag := range back {
		// For RabbitMQ 4.3 a nack is no failed delivery, unlike a reject.
		if err := w.ch.Nack(tag, false, true); err != nil {
			return err
		}
	}
	if w.size != unknown {
		w.await(w.size - removed)
	}
	return nil
}

// await waits a moment until the lot has its messages again: who looks twice in a row is to see the same twice. A quorum queue takes them
// back when its replicas agree, which is later than the channel says so.
func (w *walk) await(messages int) {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		q, err := w.ch.QueueDeclarePassive(w.lot, true, false, false, false, nil)
		if err != nil || q.Messages >= messages {
			return
		}
	}
}

// sizeOfLot counts a parking lot, having made sure that its messages survive being looked at: a quorum queue with RabbitMQ 4's default
// delivery limit drops a message that was taken and given back 20 times.
func (c *Client) sizeOfLot(ctx context.Context, conn *connection, queue string) (int, error) {
	var size int
	err := onChannel(ctx, conn, func(ch *amqp.Channel) error {
		q, err := ch.QueueDeclarePassive(ParkedQueue(queue), true, false, false, false, nil)
		size = q.Messages
		return err
	})
	if isCode(err, amqp.AccessRefused) {
		return unknown, nil
	}
	if err != nil {
		return 0, err
	}
	for _, t := range []QueueType{Quorum, Classic} {
		d := parkedDeclaration(queue, t)
		if err = onChannel(ctx, conn, d.declare); err == nil || isCode(err, amqp.AccessRefused) {
			return size, nil
		}
	}
	return 0, explain(err)
}
