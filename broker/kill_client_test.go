package broker_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// killClient is one client in one life of the broker.
type killClient struct {
	*killing
	life   int
	audit  bool
	random *rand.Rand
	c      *amqp.Connection
	ch     *amqp.Channel
}

// quota is how many messages the client publishes at most.
func (c *killClient) quota() int { return 20 << c.random.IntN(8) }

func (c *killClient) message(number uint64) amqp.Publishing {
	filler := c.random.IntN(600)
	if c.random.IntN(200) == 0 {
		filler = 50_000
	}
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body(number, filler)}
}

// publish publishes one way and remembers what was confirmed.
func (c *killClient) publish(way string) error {
	var waiting []func()
	defer func() {
		for _, wait := range waiting {
			wait()
		}
	}()
	for range c.quota() {
		exchange, key, wait, headers := "", way, time.Duration(0), amqp.Table(nil)
		switch way {
		case "ttl", "ttl-quorum":
			wait = killTTL
		case "later":
			delay := c.random.IntN(1500)
			exchange, wait, headers = way, time.Duration(delay)*time.Millisecond, amqp.Table{"x-delay": int32(delay)}
		}
		number := c.ledger.post(wait)
		m := c.message(number)
		m.Headers = headers
		confirmation, err := c.ch.PublishWithDeferredConfirmWithContext(c.Context(), exchange, key, false, false, m)
		if err != nil {
			return err
		}
		waiting = append(waiting, func() {
			if confirmation.Wait() {
				c.ledger.confirm(number)
			}
		})
		if len(waiting) == 64 {
			waiting[0]()
			waiting = waiting[1:]
		}
	}
	return nil
}

// consume settles the messages of a queue in one way or another. In an audit it takes all.
func (c *killClient) consume(queue string) error {
	const prefetch = 50
	if err := c.ch.Qos(prefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := c.ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	var facts []fact
	held := 0
	for {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return nil
			}
			c.ledger.delivered(queue, c.life, &d)
			f, hold, err := c.settle(queue, &d, held < prefetch/2)
			if err != nil {
				return err
			}
			if hold {
				held++
			}
			c.ledger.learns()
			if facts = append(facts, f); len(facts) < 100 {
				continue
			}
		case <-pause.C:
		}
		if len(facts) == 0 {
			continue
		}
		if err := c.fence(); err != nil {
			return err
		}
		c.ledger.certain(c.life, facts)
		facts = nil
	}
}

// settle says something of a delivery, or holds it.
func (c *killClient) settle(queue string, d *amqp.Delivery, mayHold bool) (f fact, hold bool, err error) {
	n := number(d)
	f = fact{number: n, queue: queue, acquired: header(d, "x-acquired-count"), failures: header(d, "x-delivery-count")}
	what := c.random.IntN(20)
	switch {
	case !c.audit && what == 0 && mayHold:
		return f, true, nil
	case !c.audit && what <= 2:
		c.ledger.settles(queue, n, false, false)
		f.acquired++
		return f, false, d.Nack(false, true)
	case !c.audit && what <= 4:
		c.ledger.settles(queue, n, false, false)
		f.acquired++
		f.failures++
		return f, false, d.Reject(true)
	case !c.audit && what <= 7 && queue != "dead":
		c.ledger.settles(queue, n, false, true)
		return f, false, d.Reject(false)
	}
	c.ledger.settles(queue, n, true, false)
	f.gone = true
	return f, false, d.Ack(false)
}

// fence returns when all that was said on the channel is certain.
func (c *killClient) fence() error {
	confirmation, err := c.ch.PublishWithDeferredConfirmWithContext(c.Context(), "", "fence", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent})
	if err == nil && !confirmation.Wait() {
		err = amqp.ErrClosed
	}
	return err
}

// transactions publish to two queues and acknowledge what came from one of them, all at once.
func (c *killClient) transactions() error {
	ch, err := c.c.Channel()
	if err == nil {
		err = ch.Tx()
	}
	if err != nil {
		return err
	}
	for range c.quota() {
		if err := c.transaction(ch); err != nil {
			return err
		}
	}
	return nil
}

func (c *killClient) transaction(ch *amqp.Channel) (err error) {
	letters, acked := []uint64{c.ledger.post(0), c.ledger.post(0)}, uint64(0)
	defer func() {
		if err != nil {
			c.ledger.undecided(letters, acked)
		}
	}()
	for i, queue := range []string{"work", "pull"} {
		if err := ch.PublishWithContext(c.Context(), "", queue, false, false, c.message(letters[i])); err != nil {
			return err
		}
	}
	if c.random.IntN(8) == 0 {
		for _, n := range letters {
			c.ledger.rolledBack(n)
		}
		return ch.TxRollback()
	}
	d, ok, err := ch.Get("pull", false)
	if err != nil {
		return err
	}
	if ok {
		acked = number(&d)
		c.ledger.delivered("pull", c.life, &d)
		c.ledger.settles("pull", acked, true, false)
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	if err := ch.TxCommit(); err != nil {
		return err
	}
	c.ledger.confirm(letters...)
	if ok {
		c.ledger.learns()
		c.ledger.certain(c.life, []fact{{number: acked, queue: "pull", gone: true}})
	}
	return nil
}

// declare makes exchanges with queues bound to them, and deletes some again.
func (c *killClient) declare() error {
	for i := range 10 {
		name := fmt.Sprintf("made %d.%d", c.life, i)
		if _, err := c.ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
			return err
		}
		if err := c.ch.ExchangeDeclare(name, "topic", true, false, false, false, nil); err != nil {
			return err
		}
		if err := c.ch.QueueBind(name, "a.#", name, false, nil); err != nil {
			return err
		}
		c.know(name, true)
		if i%3 > 0 {
			continue
		}
		c.mu.Lock()
		names := slices.Sorted(maps.Keys(c.declared))
		victim := names[c.random.IntN(len(names))]
		exists := c.declared[victim]
		delete(c.declared, victim)
		c.mu.Unlock()
		if !exists {
			c.know(victim, false)
			continue
		}
		if err := deleteMade(c.ch, victim); err != nil {
			return err
		}
		c.know(victim, false)
	}
	return nil
}

func (c *killClient) know(name string, exists bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.declared[name] = exists
}

func deleteMade(ch *amqp.Channel, name string) error {
	if _, err := ch.QueueDelete(name, false, false, false); err != nil {
		return err
	}
	return ch.ExchangeDelete(name, false, false)
}

// checkDeclared: what was declared is there with its binding, and what was deleted is not.
func (k *killing) checkDeclared(c *amqp.Connection) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, exists := range k.declared {
		ch, err := c.Channel()
		if err != nil {
			return err
		}
		if !exists {
			_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			if e, ok := err.(*amqp.Error); !ok || e.Code != amqp.NotFound {
				return fmt.Errorf("queue %q was deleted; a passive declaration is answered by %v", name, err)
			}
			continue
		}
		if err := ch.Confirm(false); err != nil {
			return err
		}
		returned := ch.NotifyReturn(make(chan amqp.Return, 1))
		confirmation, err := ch.PublishWithDeferredConfirmWithContext(k.Context(), name, "a.b", true, false, amqp.Publishing{})
		if err != nil {
			return err
		}
		if !confirmation.Wait() || len(returned) > 0 {
			return fmt.Errorf("queue %q was declared and bound, and a message does not come to it", name)
		}
		if err := ch.Close(); err != nil {
			return err
		}
	}
	return nil
}
