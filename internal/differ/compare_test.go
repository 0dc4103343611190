package differ

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

const (
	// glance is how often the brokers are looked at until they show the same.
	glance = 15 * time.Millisecond
	// rest is how long a step lasts at least when nothing happens by itself.
	rest = 40 * time.Millisecond
	// timedRest is the same when something does.
	timedRest = 600 * time.Millisecond
	// policyRest is how long RabbitMQ is given to tell its queues of a policy, which nothing shows.
	policyRest = 400 * time.Millisecond
)

// A difference is what the brokers show after a step that is not the same.
type difference struct {
	step     int
	embedded string
	rabbit   string
}

func (d difference) String() string {
	return fmt.Sprintf("after step %d\nembedded broker:\n%s\nRabbitMQ:\n%s", d.step, indent(d.embedded), indent(d.rabbit))
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ")
}

// A comparison runs programs on two brokers.
type comparison struct {
	embedded, rabbit place
	patience         time.Duration // how long the brokers have to become the same
}

// run runs a program on both and returns the first difference, or nil, and how many steps were the same.
func (c comparison) run(p program) (found *difference, steps int, err error) {
	prefix := "d" + rand.Text()[:8] + "."
	here, there := newPeer(c.embedded, prefix), newPeer(c.rabbit, prefix)
	defer func() { err = errors.Join(err, here.close(p), there.close(p)) }()
	queues := map[string]string{}
	for i, o := range p.ops {
		if o.form != nil {
			if declare, is := o.form(plainly).(*wire.QueueDeclare); is {
				kind, _ := declare.Arguments.Get("x-queue-type")
				queues[declare.Queue], _ = kind.(string)
			}
		}
		found, err := c.step(i, o, p.timed, queues, here, there)
		if found != nil || err != nil {
			return found, i, err
		}
	}
	return nil, len(p.ops), nil
}

func (c comparison) step(i int, o op, timed bool, queues map[string]string, here, there *peer) (*difference, error) {
	here.seen.clear()
	there.seen.clear()
	settles, ok := agree(o, here, there)
	if !ok {
		return nil, nil
	}
	for _, p := range []*peer{here, there} {
		if err := p.do(o, settles); err != nil {
			return nil, fmt.Errorf("%s: step %d: %w", p.name, i, err)
		}
	}
	least := rest
	switch {
	case timed:
		least = timedRest
	case o.policy != nil:
		least = policyRest
	}
	began := time.Now()
	again := time.NewTicker(glance)
	defer again.Stop()
	before := ""
	for {
		a, err := here.look(queues)
		if err != nil {
			return nil, err
		}
		b, err := there.look(queues)
		if err != nil {
			return nil, err
		}
		took := time.Since(began)
		same := a == b
		if same && a == before && took > least && here.idle() && there.idle() {
			return nil, nil
		}
		if took > c.patience+least {
			return &difference{i, a, b}, nil
		}
		before = a
		<-again.C
	}
}

// agree finds what a step settles. Several can be settled at once only when they came in the same order: with more
// consumers on a channel that is chance.
func agree(o op, here, there *peer) (s settlement, ok bool) {
	if o.settle == nil {
		return s, true
	}
	if o.settle.unknown || o.settle.how == "recover" {
		return s, true
	}
	list := here.unacked(o.on)
	if len(list) == 0 {
		return s, false
	}
	at := o.settle.pick % len(list)
	s.key = list[at].key()
	for at--; at >= 0 && list[at].key() == s.key; at-- {
		s.nth++
	}
	s.several = o.settle.several && here.order(o.on) == there.order(o.on)
	return s, true
}

// look is what a broker shows.
func (p *peer) look(queues map[string]string) (string, error) {
	counts, err := p.counts(queues)
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.name, err)
	}
	return p.seen.String() + counts, nil
}

func (p *peer) idle() bool {
	for _, l := range p.links {
		if !l.idle() {
			return false
		}
	}
	return true
}

// shrink leaves out what is not needed for a difference, until the deadline.
func (c comparison) shrink(p program, d difference, deadline time.Time) (program, difference) {
	c.patience /= 2
	p.ops = p.ops[:d.step+1]
	for size := len(p.ops) / 2; size > 0; size /= 2 {
		for at := len(p.ops) - 1 - size; at >= 0; at -= size {
			if time.Now().After(deadline) {
				return p, d
			}
			less := program{timed: p.timed}
			less.ops = append(append(less.ops, p.ops[:at]...), p.ops[at+size:]...)
			if found, _, err := c.run(less); err == nil && found != nil {
				p, d = less, *found
				p.ops = p.ops[:d.step+1]
				at = min(at, len(p.ops)-1)
			}
		}
	}
	return p, d
}
