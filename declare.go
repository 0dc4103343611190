package dormouse

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Declare makes what t names. It can be repeated; what is there already and equal is left alone, and what is there and
// differs gives a *[MismatchError]. The topology is declared again at every reconnect.
func (c *Client) Declare(ctx context.Context, t Topology) error {
	ladderStages, stages, err := t.declarations(c.ladder)
	if err != nil {
		return fmt.Errorf("dormouse: declare: %w", err)
	}
	conn, err := c.consume.wait(ctx)
	if err == nil {
		err = declareAll(ctx, conn, append(ladderStages, stages...))
	}
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
		ladderStages, stages, err := t.declarations(c.ladder)
		if err != nil {
			return err
		}
		// The ladder's entry is durable and comes last: where it is, the rest is, and five hundred declarations are spared a
		// broker that has just restarted.
		if ladderStages != nil && !c.hasLadder(ctx, conn) {
			stages = append(ladderStages, stages...)
		}
		err = declareAll(ctx, conn, stages)
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

// declaring is how many declarations are made at once. On a cluster, where each is a conversation of its nodes, it saves two thirds
// of the time.
const declaring = 8

// declareAll declares one stage after the other.
func declareAll(ctx context.Context, conn *connection, stages [][]declaration) error {
	for _, stage := range stages {
		if err := declareStage(ctx, conn, stage); err != nil {
			return explain(err)
		}
	}
	return nil
}

// declareStage declares everything in a stage. Of several errors it returns the first in the stage's order.
func declareStage(ctx context.Context, conn *connection, stage []declaration) error {
	next := make(chan int, len(stage))
	for i := range stage {
		next <- i
	}
	close(next)
	type failure struct {
		at  int
		err error
	}
	failures := make([]failure, min(declaring, len(stage)))
	var wg sync.WaitGroup
	for w := range failures {
		wg.Go(func() {
			f := &failures[w]
			f.err = onChannel(ctx, conn, func(ch *amqp.Channel) error {
				for f.at = range next {
					if err := stage[f.at].declare(ch); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	wg.Wait()
	failures = slices.DeleteFunc(failures, func(f failure) bool { return f.err == nil })
	if len(failures) == 0 {
		return nil
	}
	return slices.MinFunc(failures, func(a, b failure) int { return a.at - b.at }).err
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
	case d.feeder != "":
		_, err := ch.QueueDeclarePassive(d.queue, true, false, false, false, nil)
		if isCode(err, amqp.NotFound) {
			return fmt.Errorf("fixed delay %q: the queue %q, to which its messages go, does not exist, and RabbitMQ would drop them; declare it first: %w", d.feeder, d.queue, err)
		}
		return err
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
