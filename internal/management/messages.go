package management

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/message"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/vhost"
	"github.com/dormousemq/dormouse/internal/wire"
)

// publish publishes a message, and answers when it is as durable as it asked to be.
func publish(_ *Handler, r *request) (any, error) {
	exchange := r.exchangeName("name")
	if r.host.Exchange(exchange) == nil {
		return nil, unknown("exchange_not_found")
	}
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("routing_key", "properties", "payload", "payload_encoding"); err != nil {
		return nil, err
	}
	m, err := r.message(exchange, body)
	if err != nil {
		return nil, err
	}
	if err := r.mayExchange(access.Write, exchange); err != nil {
		return nil, err
	}
	if err := r.mayTopic(access.Write, exchange, m.AllKeys()...); err != nil {
		return nil, err
	}
	waiting := make(waiter, 1)
	outcome, err := r.host.Publish(m, waiting, 0)
	if err != nil {
		return nil, channelFailure(err)
	}
	if outcome == vhost.Routed {
		if err := waiting.wait(r.http.Context()); err != nil {
			return nil, err
		}
	}
	return object{{"routed", outcome != vhost.Unroutable}}, nil
}

// waiter is told when a message is durable.
type waiter chan error

// Committed says so, or why it is not.
func (w waiter) Committed(_ uint64, err error) { w <- err }

func (w waiter) wait(ctx context.Context) error {
	select {
	case err := <-w:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// message makes a message of the body of a request.
func (r *request) message(exchange string, body fields) (*message.Message, error) {
	key, err := body.text("routing_key")
	if err != nil {
		return nil, err
	}
	payload, err := payloadOf(body)
	if err != nil {
		return nil, err
	}
	given, err := body.object("properties")
	if err != nil {
		return nil, err
	}
	p, err := propertiesOf(given)
	if err != nil {
		return nil, err
	}
	if p.Has(wire.FlagUserID) && p.UserID != r.user.Name() && !r.user.Has(access.Impersonator) {
		return nil, badRequest(fmt.Sprintf("406 PRECONDITION_FAILED - user_id property set to '%s' but authenticated user was '%s'", p.UserID, r.user.Name()))
	}
	m, err := message.New(exchange, key, p.AppendTo(nil), payload)
	return m, channelFailure(err)
}

func payloadOf(body fields) ([]byte, error) {
	payload, ok := body["payload"].(string)
	if !ok {
		return nil, badRequest("payload_not_string")
	}
	switch body["payload_encoding"] {
	case "string":
		return []byte(payload), nil
	case "base64":
		decoded, err := base64.StdEncoding.DecodeString(payload)
		if err != nil {
			return nil, badRequest([]any{"not_base64", payload})
		}
		return decoded, nil
	}
	return nil, badRequest([]any{"unsupported_encoding", body["payload_encoding"]})
}

// textProperty is a property that is a short string.
type textProperty struct {
	name string
	flag uint16
	of   func(*wire.Properties) *string
}

var textProperties = []textProperty{
	{"content_type", wire.FlagContentType, func(p *wire.Properties) *string { return &p.ContentType }},
	{"content_encoding", wire.FlagContentEncoding, func(p *wire.Properties) *string { return &p.ContentEncoding }},
	{"correlation_id", wire.FlagCorrelationID, func(p *wire.Properties) *string { return &p.CorrelationID }},
	{"reply_to", wire.FlagReplyTo, func(p *wire.Properties) *string { return &p.ReplyTo }},
	{"expiration", wire.FlagExpiration, func(p *wire.Properties) *string { return &p.Expiration }},
	{"message_id", wire.FlagMessageID, func(p *wire.Properties) *string { return &p.MessageID }},
	{"type", wire.FlagType, func(p *wire.Properties) *string { return &p.Type }},
	{"user_id", wire.FlagUserID, func(p *wire.Properties) *string { return &p.UserID }},
	{"app_id", wire.FlagAppID, func(p *wire.Properties) *string { return &p.AppID }},
	{"cluster_id", wire.FlagClusterID, func(p *wire.Properties) *string { return &p.ClusterID }},
}

// propertiesOf reads the properties of a message; names that are none are ignored.
func propertiesOf(given map[string]any) (*wire.Properties, error) {
	p := &wire.Properties{}
	for _, t := range textProperties {
		v, has := given[t.name]
		if !has {
			continue
		}
		s, ok := v.(string)
		if !ok || len(s) > maxName {
			return nil, badRequest([]any{"not_string", t.name})
		}
		p.Flags |= t.flag
		*t.of(p) = s
	}
	for _, n := range []struct {
		name string
		flag uint16
		bits int
		set  func(uint64)
	}{
		{"delivery_mode", wire.FlagDeliveryMode, 8, func(n uint64) { p.DeliveryMode = uint8(n) }},
		{"priority", wire.FlagPriority, 8, func(n uint64) { p.Priority = uint8(n) }},
		{"timestamp", wire.FlagTimestamp, 64, func(n uint64) { p.Timestamp = wire.Timestamp(n) }},
	} {
		v, has := given[n.name]
		if !has {
			continue
		}
		number, _ := v.(json.Number)
		value, err := strconv.ParseUint(number.String(), 10, n.bits)
		if err != nil {
			return nil, badRequest([]any{"not_int", n.name})
		}
		p.Flags |= n.flag
		n.set(value)
	}
	if v, has := given["headers"]; has {
		headers, ok := v.(map[string]any)
		if !ok {
			return nil, badRequest([]any{"not_an_object", "headers"})
		}
		t, err := tableOf(headers)
		if err != nil {
			return nil, err
		}
		p.Flags |= wire.FlagHeaders
		p.Headers = t
	}
	return p, nil
}

// settle tells a queue what becomes of a message that was got.
type settle func(tx *store.Tx, q queue.Source, e *queue.Entry)

// settling is what the ways to get messages do with them.
var settling = map[string]settle{
	"ack_requeue_true":     func(tx *store.Tx, q queue.Source, e *queue.Entry) { q.Requeue(tx, false, e) },
	"reject_requeue_true":  func(tx *store.Tx, q queue.Source, e *queue.Entry) { q.Requeue(tx, true, e) },
	"reject_requeue_false": func(tx *store.Tx, q queue.Source, e *queue.Entry) { q.Reject(tx, true, e) },
	"ack_requeue_false":    nil, // they are got without acknowledgement
}

// apply does so with messages of one queue.
func (s settle) apply(host *vhost.Host, got []queue.Delivery) {
	if len(got) == 0 {
		return
	}
	tx := host.Begin()
	for _, d := range got {
		s(tx, d.Queue, d.Entry)
	}
	tx.End()
	got[0].Queue.Settle()
}

// get takes messages out of a queue, or looks at them and gives them back.
func get(_ *Handler, r *request) (any, error) {
	q := r.host.Queue(r.variables["name"])
	if q == nil {
		return nil, unknown("queue_not_found")
	}
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("ackmode", "count", "encoding"); err != nil {
		return nil, err
	}
	count, err := body.integer("count")
	if err != nil {
		return nil, err
	}
	mode, _ := body["ackmode"].(string)
	settle, known := settling[mode]
	if !known {
		return nil, badRequest("Invalid ackmode value: " + mode + ". Valid values are: ack_requeue_true, ack_requeue_false, reject_requeue_true, reject_requeue_false")
	}
	encoding, _ := body["encoding"].(string)
	if encoding != "auto" && encoding != "base64" {
		return nil, badRequest("Unsupported encoding. Please use auto or base64.")
	}
	truncate := -1
	if _, has := body["truncate"]; has {
		if truncate, err = body.integer("truncate"); err != nil {
			return nil, err
		}
	}
	if err := r.mayQueue(access.Read, q.Name()); err != nil {
		return nil, err
	}
	all := []object{}
	var held []queue.Delivery
	defer func() { settle.apply(r.host, held) }()
	for n := 0; n != count; n++ { // below 0: all there are, as in RabbitMQ
		d, found, err := r.host.Get(nil, q.Name(), &queue.Consumer{NoAck: settle == nil})
		if err != nil {
			return nil, channelFailure(err)
		}
		if !found {
			break
		}
		if settle != nil {
			held = append(held, d)
		}
		shown, err := shownMessage(d, encoding, truncate)
		if err != nil {
			return nil, err
		}
		all = append(all, shown)
	}
	return all, nil
}

func shownMessage(d queue.Delivery, encoding string, truncate int) (object, error) {
	properties, err := wire.ParseProperties(d.Message.Delivered(d.Counts))
	if err != nil {
		return nil, err
	}
	payload := d.Message.Body
	o := object{
		{"payload_bytes", len(payload)}, {"redelivered", d.Redelivered}, {"exchange", d.Message.Exchange},
		{"routing_key", d.Message.Keys[0]}, {"message_count", d.Remaining}, {"properties", shownProperties(&properties)},
	}
	if truncate >= 0 && truncate < len(payload) {
		payload = payload[:truncate]
	}
	if encoding == "auto" && utf8.Valid(payload) {
		return append(o, member{"payload", string(payload)}, member{"payload_encoding", "string"}), nil
	}
	return append(o, member{"payload", base64.StdEncoding.EncodeToString(payload)}, member{"payload_encoding", "base64"}), nil
}

// shownProperties are the properties of a message. Where there are none the answer is an
// empty list, as in RabbitMQ.
func shownProperties(p *wire.Properties) any {
	o := object{}
	for _, t := range textProperties {
		if p.Has(t.flag) {
			o.add(t.name, *t.of(p))
		}
	}
	if p.Has(wire.FlagTimestamp) {
		o.add("timestamp", uint64(p.Timestamp))
	}
	if p.Has(wire.FlagPriority) {
		o.add("priority", int(p.Priority))
	}
	if p.Has(wire.FlagDeliveryMode) {
		o.add("delivery_mode", int(p.DeliveryMode))
	}
	if p.Has(wire.FlagHeaders) {
		o.add("headers", shown(p.Headers))
	}
	if len(o) == 0 {
		return []object{}
	}
	return o
}
