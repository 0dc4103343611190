package dormouse

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A failure is why an attempt failed.
type failure struct {
	reason Reason
	err    error
	stack  []byte // of a panic
}

// copyOf is a publishing with the content of a delivery. Left out are what the broker adds (it would count it, or take it for a
// dead-letter cycle), further routing keys (other subscribers have had the message), the expiration (it would cut the delay short),
// and a user id that is not this connection's (the broker would refuse it).
func copyOf(d *amqp.Delivery, user string) amqp.Publishing {
	p := amqp.Publishing{
		Headers:         make(amqp.Table, len(d.Headers)+7),
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		DeliveryMode:    amqp.Persistent,
		Priority:        d.Priority,
		CorrelationId:   d.CorrelationId,
		ReplyTo:         d.ReplyTo,
		MessageId:       d.MessageId,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		AppId:           d.AppId,
		Body:            d.Body,
	}
	if d.UserId == user {
		p.UserId = user
	}
	for name, v := range d.Headers {
		if !isBrokerHeader(name) && name != headerCC && name != headerBCC {
			p.Headers[name] = v
		}
	}
	delete(p.Headers, headerDueTime)
	delete(p.Headers, headerDueExchange)
	return p
}

// keepOrigin writes down where the message was published first and which queue it belongs to.
func keepOrigin(p *amqp.Publishing, d *amqp.Delivery, queue string) {
	p.Headers[headerExchange], p.Headers[headerRoutingKey] = origin(d)
	p.Headers[headerQueue] = queue
}

// failedCopy is the copy of a message whose attempts so far have failed, for the next attempt or the parking lot.
func failedCopy(d *amqp.Delivery, user, queue, counter string, failed int, first time.Time, f failure) amqp.Publishing {
	p := copyOf(d, user)
	keepOrigin(&p, d, queue)
	p.Headers[counter] = int64(failed)
	p.Headers[headerReason] = string(f.reason)
	p.Headers[headerFirstTime] = first.UnixMilli()
	delete(p.Headers, headerError)
	delete(p.Headers, headerStack)
	if f.err != nil {
		p.Headers[headerError] = shorten(f.err.Error(), longestError)
	}
	return p
}

// parkedCopy is the copy for the parking lot.
func parkedCopy(d *amqp.Delivery, user, queue, counter string, failed int, first time.Time, f failure) amqp.Publishing {
	p := failedCopy(d, user, queue, counter, failed, first, f)
	if len(f.stack) > 0 {
		p.Headers[headerStack] = shorten(string(f.stack), longestStack)
	}
	return p
}

// snoozedCopy is the copy of a message that is put off once more.
func snoozedCopy(d *amqp.Delivery, user, queue, counter string, h history) amqp.Publishing {
	p := unchangedCopy(d, user, queue, counter, h.Failed)
	p.Headers[headerSnoozed] = int64(h.snoozed + 1)
	return p
}

// unchangedCopy is the copy of a message that is given back with the failed attempts it has.
func unchangedCopy(d *amqp.Delivery, user, queue, counter string, failed int) amqp.Publishing {
	p := copyOf(d, user)
	keepOrigin(&p, d, queue)
	if failed > 0 {
		p.Headers[counter] = int64(failed)
	}
	return p
}
