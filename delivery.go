package dormouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/retry"
	"github.com/dormousemq/dormouse/internal/xdeath"
)

// A Handler processes one message. Nil means done; an error means another attempt by the retry policy, unless it is
// wrapped by [Park], [Discard] or [RetryAfter]. A panic counts as an error. ctx ends at the message's deadline.
type Handler func(ctx context.Context, d *Delivery) error

// A Delivery is one attempt at one message. Exchange and RoutingKey are those of its first publishing, also after a delay and at later
// attempts; Headers are without Dormouse's own. Body must not be modified: a retry sends it again.
type Delivery struct {
	Message
	// Queue is where it was consumed from.
	Queue string
	// Attempt is 1 for the first.
	Attempt int
	// Redelivered is the broker's flag: an earlier delivery of this copy was not settled.
	Redelivered bool
	// Snoozed is how often a handler has put the message off by [Snooze].
	Snoozed int
	// FirstTime is when the first attempt failed; zero at the first attempt.
	FirstTime time.Time
	// LastReason and LastError tell why the attempt before failed; empty at the first.
	LastReason Reason
	LastError  string
	// DueTime is when a delayed message was due; zero for others.
	DueTime time.Time
}

// readMessage is the message as it was published first. counter is the header that counts failed attempts.
func readMessage(d *amqp.Delivery, counter string) Message {
	m := Message{
		Exchange:        d.Exchange,
		RoutingKey:      d.RoutingKey,
		Body:            d.Body,
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		MessageID:       d.MessageId,
		CorrelationID:   d.CorrelationId,
		ReplyTo:         d.ReplyTo,
		Type:            d.Type,
		AppID:           d.AppId,
		UserID:          d.UserId,
		Timestamp:       d.Timestamp,
		Priority:        d.Priority,
		Transient:       d.DeliveryMode != amqp.Persistent,
	}
	if ms, err := strconv.ParseInt(d.Expiration, 10, 64); err == nil {
		m.TTL = time.Duration(ms) * time.Millisecond
	}
	m.Exchange, m.RoutingKey = origin(d)
	m.Headers = make(map[string]any, len(d.Headers))
	for name, v := range d.Headers {
		if !isOwnHeader(name) && name != counter {
			m.Headers[name] = plain(v)
		}
	}
	return m
}

// origin is where a message was published first.
func origin(d *amqp.Delivery) (exchange, key string) {
	exchange, key = d.Exchange, d.RoutingKey
	if x, ok := d.Headers[headerDueExchange].(string); ok {
		exchange = x
	} else if _, delayed := d.Headers[headerDueTime]; delayed {
		exchange = "" // it went straight to a queue; d.Exchange is the ladder's
	}
	if k, ok := d.Headers[headerRoutingKey].(string); ok {
		exchange, key = text(d.Headers, headerExchange), k
	}
	return exchange, key
}

// history is what a message brings along from earlier attempts in this queue.
type history struct {
	retry.Count
	firstTime  time.Time
	lastReason Reason
	lastError  string
	snoozed    int
}

// readHistory reads the headers of a message that queue delivered. counter is the header that counts failed attempts. Another queue's
// retries are not this one's: somebody who consumes a parking lot begins to count anew.
func readHistory(d *amqp.Delivery, queue, counter string, excused int) history {
	var h history
	e := retry.Evidence{Redelivered: d.Redelivered, Excused: excused}
	if of, ok := d.Headers[headerQueue].(string); !ok || of == queue {
		n, _ := integer(d.Headers, counter)
		e.Counted = int(n)
		h.firstTime = moment(d.Headers, headerFirstTime)
		h.lastReason = Reason(text(d.Headers, headerReason))
		h.lastError = text(d.Headers, headerError)
		snoozed, _ := integer(d.Headers, headerSnoozed)
		h.snoozed = int(snoozed)
	}
	deaths := xdeath.Parse(d.Headers["x-death"])
	e.Rejected = int(deaths.Count(queue, xdeath.Rejected))
	for _, death := range deaths {
		if death.Reason == xdeath.Rejected || death.Reason == xdeath.DeliveryLimit {
			e.DiedUnacked = true
		}
	}
	if e.Rejected > 0 {
		h.lastReason, h.lastError = ReasonRejected, ""
	}
	_, acquired := d.Headers["x-acquired-count"]
	count, counted := integer(d.Headers, "x-delivery-count")
	e.HasCount, e.DeliveryCount = acquired || counted, int(count)
	h.Count = retry.Assess(e)
	return h
}

// fingerprint identifies a message: by its id, or by its content when it has none.
func fingerprint(d *amqp.Delivery) string {
	if d.MessageId != "" {
		return d.MessageId
	}
	exchange, key := origin(d)
	h := sha256.New()
	for _, s := range []string{exchange, key, d.Type, d.CorrelationId, d.Timestamp.UTC().String()} {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	h.Write(d.Body)
	return "content-" + hex.EncodeToString(h.Sum(nil)[:12])
}
