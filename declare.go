package dormouse

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Declare makes what t names. It can be repeated; what is there already and equal is left alone, and what is there and
// differs gives a *[MismatchError]. The topology is declared again at every reconnect.
func (c *Client) Declare(ctx context.Context, t Topology) error {
	ladderPart, rest, err := t.declarations(c.ladder)
	if err != nil {
		return fmt.Errorf("dormouse: declare: %w", err)
	}
	err = c.withChannel(ctx, func(ch *amqp.Channel) error { return declareAll(ch, append(ladderPart, rest...)) })
	if err != nil {
		return fmt.Errorf("dormouse: declare: %w", err)
	}
	c.mu.Lock()
	if !slices.ContainsFunc(c.declared, func(d Topology) bool { return reflect.DeepEqual(d, t) }) {
		c.declared = append(c.declared, t)
	}
	c.mu.Unlock()
	return nil
}

// restore declares again what was declared, on a new connection. What differs by now is only logged: publishing and consuming may
// well be possible.
func (c *Client) restore(ctx context.Context, conn *connection) error {
	c.mu.Lock()
	declared := slices.Clone(c.declared)
	c.mu.Unlock()
	for _, t := range declared {
		ladderPart, rest, err := t.declarations(c.ladder)
		if err != nil {
			return err
		}
		// The ladder's entry is durable and comes last: where it is, the rest is, and five hundred declarations are spared a
		// broker that has just restarted.
		if len(ladderPart) > 0 && !c.hasLadder(ctx, conn) {
			rest = append(ladderPart, rest...)
		}
		err = onChannel(ctx, conn, func(ch *amqp.Channel) error { return declareAll(ch, rest) })
		if isChannelException(err) {
			c.log.Error("cannot declare the topology again", "error", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) hasLadder(ctx context.Context, conn *connection) bool {
	return onChannel(ctx, conn, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(c.ladder.Entry(), amqp.ExchangeTopic, true, false, false, false, nil)
	}) == nil
}

func declareAll(ch *amqp.Channel, all []declaration) error {
	for i := range all {
		if err := all[i].declare(ch); err != nil {
			return explain(err)
		}
	}
	return nil
}

func (d *declaration) declare(ch *amqp.Channel) error {
	args, err := table(d.args)
	if err != nil {
		return err
	}
	switch {
	case d.source != "" && d.queue != "":
		return ch.QueueBind(d.queue, d.key, d.source, false, args)
	case d.source != "":
		return ch.ExchangeBind(d.exchange, d.key, d.source, false, args)
	case d.queue != "":
		_, err := ch.QueueDeclare(d.queue, true, false, false, false, args)
		return err
	default:
		return ch.ExchangeDeclare(d.exchange, d.kind, true, false, false, false, args)
	}
}

// A MismatchError says that an exchange or queue exists with other settings than those declared.
type MismatchError struct {
	// Kind is "queue" or "exchange".
	Kind string
	Name string
	// Property is the argument or property that differs, such as x-message-ttl.
	Property string
	// Want is the declared value, Have the one that is there, as the broker prints them; "none" is the absence of one.
	Want, Have string
	// Err is the broker's error.
	Err error
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s %q exists with %s %s, but %s is wanted; to mend it, empty and delete the %s and declare again, or use another name or prefix",
		e.Kind, e.Name, e.Property, e.Have, e.Want, e.Kind)
}

// Unwrap returns the broker's error.
func (e *MismatchError) Unwrap() error { return e.Err }

// explain makes a MismatchError of RabbitMQ's inequivalent-arg exception, whose text is the only place that names the difference.
func explain(err error) error {
	e, ok := errors.AsType[*amqp.Error](err)
	if !ok || e.Code != amqp.PreconditionFailed {
		return err
	}
	m := inequivalent().FindStringSubmatch(e.Reason)
	if m == nil {
		return err
	}
	return &MismatchError{Property: m[1], Kind: m[2], Name: m[3], Want: printed(m[4]), Have: printed(m[5]), Err: err}
}

func inequivalent() *regexp.Regexp {
	return regexp.MustCompile(`inequivalent arg '(.+?)' for (queue|exchange) '(.+?)' in vhost '.*?': received (.+?) but current is (.+)$`)
}

// printed takes the value out of RabbitMQ's ways to print one: 'x', the value 'x' of type 'longstr', none.
func printed(s string) string {
	if m := regexp.MustCompile(`^(?:the value )?'(.*?)'(?: of type '.*')?$`).FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return s
}
