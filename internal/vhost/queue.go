package vhost

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/dormousemq/dormouse/internal/policy"
	"github.com/dormousemq/dormouse/internal/queue"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/stream"
	"github.com/dormousemq/dormouse/internal/wire"
)

// QueueDeclare is what queue.declare asks for.
type QueueDeclare struct {
	Name       string // "" asks for a name of the server's, see Named
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	Arguments  wire.Table

	serverNamed bool // the name was made here
	anyName     bool // even a reserved one
}

// Named is the declaration with the name that the queue will have, if it does not exist: without line breaks, and one
// of the server's for "". DeclareQueue does the same.
func (d QueueDeclare) Named() QueueDeclare {
	if d.Name = Stripped(d.Name); d.Name == "" {
		d.Name, d.serverNamed = freeName(), true
	}
	return d
}

// AnyName is the declaration of a queue whose name may be a reserved one, for it had that name before.
func (d QueueDeclare) AnyName() QueueDeclare {
	d.anyName = true
	return d
}

// Reserved tells whether a client may not choose the name of the queue.
func (d QueueDeclare) Reserved() bool {
	return strings.HasPrefix(d.Name, reservedPrefix) && !d.serverNamed && !d.anyName
}

// QueueOK is what queue.declare-ok tells.
type QueueOK struct {
	Name                string
	Messages, Consumers int
}

// DeclareQueue makes a queue, or checks that the one of that name is the same. owner is
// the connection, to which an exclusive queue belongs.
func (h *Host) DeclareQueue(ctx context.Context, owner any, d QueueDeclare) (QueueOK, error) {
	d = d.Named()
	var q *Queue
	var made bool
	done, err := h.change(func(tx *store.Tx) (err error) {
		q, made, err = h.declareQueue(tx, owner, h.typed(d))
		return err
	})
	if err != nil {
		return QueueOK{}, err
	}
	if made {
		q.Start() // whether or not its maker waits for the end
	} else {
		q.Declared()
	}
	if err := done.wait(ctx); err != nil {
		return QueueOK{}, err
	}
	return q.ok(), nil
}

// typed is the declaration with the default queue type of the host, if it names none and
// that type can be what it asks for.
func (h *Host) typed(d QueueDeclare) QueueDeclare {
	kind := h.description.DefaultQueueType
	if _, says := d.Arguments.Get(queueType); says || kind == "" || kind == string(queue.Classic) || !d.Durable || d.Exclusive || d.AutoDelete {
		return d
	}
	d.Arguments = append(slices.Clone(d.Arguments), wire.Field{Name: queueType, Value: kind})
	return d
}

func (q *Queue) ok() QueueOK {
	c := q.Counts()
	return QueueOK{Name: q.Name(), Messages: c.Ready, Consumers: c.Bound}
}

func (h *Host) declareQueue(tx *store.Tx, owner any, d QueueDeclare) (q *Queue, made bool, err error) {
	d.Durable = d.Durable && !d.Exclusive // whatever was asked for, as in RabbitMQ
	if q = h.queues[d.Name]; q != nil {
		h.churn.QueuesDeclared++
		return q, false, h.queueEquivalence(q, owner, d)
	}
	if d.Reserved() {
		return nil, false, wire.Errorf(wire.AccessRefused, "queue name '%s' contains reserved prefix 'amq.*'", d.Name)
	}
	if kind := d.kind(); d.serverNamed && kind != queue.Classic {
		return nil, false, wire.Errorf(wire.PreconditionFailed, "Cannot declare a server-named queue for type rabbit_%s_queue", kind)
	}
	settings, err := h.settings(d)
	if err != nil {
		return nil, false, err
	}
	switch {
	case h.deleted:
		return nil, false, h.errGone()
	case h.leaves(h.queueKey(d.Name)):
		return nil, false, errLeaving
	}
	id := h.all.newID(settings.Levels())
	if !d.Exclusive {
		owner = nil
	}
	q = h.addQueue(d, settings, id, owner)
	h.churn.QueuesDeclared++
	h.churn.QueuesCreated++
	if settings.Durable {
		tx.SetDefinition(h.queueKey(d.Name), encodeQueue(q, id))
	}
	return q, true, nil
}

// freeName makes a name as RabbitMQ's are, amq.gen-, and 16 random bytes.
func freeName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return "amq.gen-" + base64.RawURLEncoding.EncodeToString(b[:])
}

func (h *Host) addQueue(d QueueDeclare, settings queue.Settings, id store.QueueID, owner any) *Queue {
	q := &Queue{declared: d, arguments: settings, owner: owner}
	q.applied = h.policies.For(policy.Target{Name: d.Name, Type: policy.Type(settings.Type)})
	settings = h.withPolicy(d, settings, q.applied.Definition)
	q.kind = h.newKind(d.Name, settings, id)
	h.queues[d.Name] = q
	return q
}

// newKind makes a queue of what the store has for its numbers.
func (h *Host) newKind(name string, settings queue.Settings, id store.QueueID) kind {
	if settings.Type == queue.Stream {
		return stream.New(stream.Options{
			Name: name, VHost: h.name, Settings: settings, ID: id, Store: h.store, Clock: h.clock, Logger: h.log,
		})
	}
	return queue.New(queue.Options{
		Name: name, Settings: settings, ID: id, Store: h.store, Clock: h.clock, Host: h, Logger: h.log, Windows: &h.all.windows,
	})
}

// HasQueue tells whether there is a queue of that name.
func (h *Host) HasQueue(name string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.queues[name] != nil
}

// CheckQueue is a passive declare.
func (h *Host) CheckQueue(owner any, name string) (QueueOK, error) {
	q, err := h.usable(owner, name)
	if err != nil {
		return QueueOK{}, err
	}
	q.Declared()
	return q.ok(), nil
}

// usable finds a queue that the connection may use.
func (h *Host) usable(owner any, name string) (*Queue, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	q, err := h.queue(Stripped(name))
	if err != nil {
		return nil, err
	}
	return q, h.checkOwner(q, owner)
}

// QueueDelete is what queue.delete asks for.
type QueueDelete struct {
	Name     string
	IfUnused bool
	IfEmpty  bool
}

// DeleteQueue deletes a queue with its messages and bindings and returns how many
// messages were ready. There need not be one.
func (h *Host) DeleteQueue(ctx context.Context, owner any, d QueueDelete) (int, error) {
	n := 0
	err := h.changed(ctx, func(tx *store.Tx) (err error) {
		q := h.queues[Stripped(d.Name)]
		if q == nil {
			return nil
		}
		if q.arguments.Type == queue.Stream {
			d.IfUnused, d.IfEmpty = false, false // as RabbitMQ
		}
		if err := h.checkOwner(q, owner); err != nil {
			return err
		}
		if err := h.quorumDeletable(q, d); err != nil {
			return err
		}
		n, err = h.deleteQueue(tx, q, func(c queue.Counts) error {
			switch {
			case d.IfUnused && c.Consumers > 0:
				return wire.Errorf(wire.PreconditionFailed, "%s in use", h.queueText(q.Name()))
			case d.IfEmpty && c.Ready > 0:
				return wire.Errorf(wire.PreconditionFailed, "%s not empty", h.queueText(q.Name()))
			}
			return nil
		})
		return err
	})
	return n, err
}

// quorumDeletable refuses the conditions that RabbitMQ does not know for quorum queues.
func (h *Host) quorumDeletable(q *Queue, d QueueDelete) error {
	condition := ""
	switch {
	case q.Settings().Type != queue.Quorum:
		return nil
	case d.IfUnused:
		condition = "if-unused"
	case d.IfEmpty:
		condition = "if-empty"
	default:
		return nil
	}
	return wire.Errorf(wire.NotImplemented, "cannot delete %s. queue.delete operations with %s flag set are not supported by quorum queues", h.queueText(q.Name()), condition)
}

// deleteQueue deletes q as a part of tx, if check, which may be nil, allows it, but for its bindings, which leave with
// [Host.change].
func (h *Host) deleteQueue(tx *store.Tx, q *Queue, check func(queue.Counts) error) (int, error) {
	n, err := q.Delete(tx, check)
	if err != nil {
		return 0, err
	}
	h.churn.QueuesDeleted++
	if h.queues[q.Name()] == q {
		delete(h.queues, q.Name())
	}
	q.gone = true
	h.forget(q)
	h.leave(h.queueKey(q.Name()), q.bindings.Keys())
	if q.durable() {
		tx.DeleteDefinition(h.queueKey(q.Name()))
	}
	return n, nil
}

// PurgeQueue drops the ready messages of a queue and returns how many they were.
func (h *Host) PurgeQueue(ctx context.Context, owner any, name string) (int, error) {
	q, err := h.usable(owner, name)
	if err != nil {
		return 0, err
	}
	full, ok := q.kind.(emptied)
	if !ok {
		return 0, wire.Errorf(wire.NotImplemented, "queue.purge not supported by stream queues %s", h.queueText(q.Name()))
	}
	n, err := full.Purge(ctx)
	if err != nil {
		return 0, wire.Errorf(wire.InternalError, "%v", err)
	}
	return n, nil
}

// Consume adds a consumer to a queue. It may get deliveries before this returns.
func (h *Host) Consume(owner any, name string, c *queue.Consumer) error {
	q, err := h.usable(owner, name)
	if err != nil {
		return err
	}
	if err := h.readArguments(q, c); err != nil {
		return err
	}
	err = q.Consume(c)
	_, refused := errors.AsType[*wire.Exception](err)
	switch {
	case refused:
		return err
	case errors.Is(err, queue.ErrExclusiveUse):
		return wire.Errorf(wire.AccessRefused, "%s in exclusive use", h.queueText(q.Name()))
	case err != nil:
		return wire.Errorf(wire.NotFound, "no %s", h.queueText(q.Name()))
	}
	return nil
}

// Cancel removes a consumer, and its queue if that is to be deleted with the last one.
func (h *Host) Cancel(c *queue.Consumer) {
	inner := c.Queue()
	if inner == nil || !inner.Cancel(c) {
		return
	}
	h.deleteIf(inner, func(q *Queue) bool { return q.declared.AutoDelete })
}

// deleteIf deletes a queue that has no consumers, if wanted.
func (h *Host) deleteIf(inner queue.Source, wanted func(*Queue) bool) {
	_, _ = h.change(func(tx *store.Tx) error {
		q := h.queues[inner.Name()]
		if q == nil || any(q.kind) != any(inner) || !wanted(q) {
			return nil
		}
		_, err := h.deleteQueue(tx, q, func(c queue.Counts) error {
			if c.Consumers > 0 {
				return queue.ErrExclusiveUse
			}
			return nil
		})
		return err
	})
}

// Expired deletes a queue that was unused for as long as its x-expires says.
func (h *Host) Expired(q *queue.Queue) {
	h.deleteIf(q, func(*Queue) bool { return true })
}

// Get takes one message from a queue for by, as queue.Queue.Get; false if it has none.
func (h *Host) Get(owner any, name string, by *queue.Consumer) (queue.Delivery, bool, error) {
	q, err := h.usable(owner, name)
	if err != nil {
		return queue.Delivery{}, false, err
	}
	full, ok := q.kind.(polled)
	if !ok {
		return queue.Delivery{}, false, wire.Errorf(wire.NotImplemented, "basic.get not supported by stream queues %s", h.queueText(q.Name()))
	}
	if s := q.Settings(); s.Type == queue.Quorum && s.SingleActiveConsumer {
		return queue.Delivery{}, false, wire.Errorf(wire.ResourceLocked, "cannot obtain access to locked %s. basic.get operations are not supported by <<\"quorum\">> queues with single active consumer", h.queueText(q.Name()))
	}
	d, ok := full.Get(by)
	return d, ok, nil
}

// Disconnected deletes the exclusive queues of a connection.
func (h *Host) Disconnected(owner any) {
	_, _ = h.change(func(tx *store.Tx) error {
		for _, q := range h.queues {
			if q.owner == owner {
				_, _ = h.deleteQueue(tx, q, nil)
			}
		}
		return nil
	})
}
