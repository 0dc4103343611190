package dormouse

import (
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/ladder"
)

// A post is one message to publish: where it is to arrive, and when.
type post struct {
	// exchange and key are where it goes. Without an exchange it goes to queue, and keeps key on the way through the ladder.
	exchange, key, queue string
	due                  time.Time // zero: at once
	lanes                int       // how many lanes the wait may be rounded up to; 0: as exact as the ladder is
	amqp.Publishing
}

// queueName is the queue that a post without an exchange goes to.
func (p *post) queueName() string {
	if p.queue != "" {
		return p.queue
	}
	return p.key
}

// destination is where the post goes after its delay.
func (p *post) destination() string {
	if p.exchange != "" {
		return ladder.ExchangeDestination(p.exchange)
	}
	return ladder.QueueDestination(p.queueName())
}

// wait is how long the post has to wait from now on, 0 or less when it goes at once.
func (p *post) wait(now time.Time) time.Duration {
	if p.due.IsZero() {
		return 0
	}
	return p.due.Sub(now)
}

// An envelope is a post as it is sent.
type envelope struct {
	exchange, key string
	delay         time.Duration
	msg           amqp.Publishing
}

// seal addresses the post: to its own exchange, or when it has to wait to the ladder, with the ladder key as a blind copy.
// RabbitMQ routes by both keys at every hop, keeps both through dead-lettering, and shows consumers only the message's own.
func (p *post) seal(l *ladder.Ladder, now time.Time, keepPriority bool) (envelope, error) {
	wait := p.wait(now)
	if wait <= 0 {
		if p.exchange == "" {
			return envelope{key: p.queueName(), msg: p.Publishing}, nil
		}
		return envelope{exchange: p.exchange, key: p.key, msg: p.Publishing}, nil
	}
	if p.lanes > 0 {
		rounded, err := l.RoundLanes(wait, p.lanes)
		if err != nil {
			return envelope{}, err
		}
		wait = rounded
	}
	key, delay, err := l.Key(wait, p.destination())
	if err != nil {
		return envelope{}, err
	}
	msg := p.Publishing
	msg.DeliveryMode = amqp.Persistent
	if !keepPriority {
		msg.Priority = 0
	}
	headers := make(amqp.Table, len(msg.Headers)+3) // a copy: the post may be sealed again, for another session
	for name, v := range msg.Headers {
		if !isBrokerHeader(name) {
			headers[name] = v
		}
	}
	bcc, _ := headers[headerBCC].([]any)
	headers[headerBCC] = append(slices.Clip(bcc), key)
	headers[headerDueTime] = p.due.UnixMilli()
	if p.exchange != "" {
		headers[headerDueExchange] = p.exchange
	}
	msg.Headers = headers
	return envelope{exchange: l.Entry(), key: p.key, delay: delay, msg: msg}, nil
}
