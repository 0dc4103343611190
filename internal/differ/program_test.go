package differ

import (
	"fmt"
	"strings"

	"github.com/dormousemq/dormouse/internal/wire"
)

// Names of a program are short; on a broker each has the prefix of its run.
type naming func(name string) string

func plainly(name string) string { return name }

// An op is one step of a program.
type op struct {
	on   uint16 // the channel: 1 to 3 of the first connection, 11 of the second
	form func(n naming) wire.Method
	// what is published, by a basic.publish
	properties func(n naming) wire.Properties
	body       string
	times      int
	settle     *settling
	policy     *policy
	closes     bool // closes the channel
	hangsUp    bool // closes the connection
}

// A settling settles one of the unacknowledged deliveries of a channel, the pick-th by consumer and body.
type settling struct {
	how     string // ack, nack, reject or recover
	pick    int
	several bool
	requeue bool
	unknown bool // settles a delivery that never was
}

// A policy is set, or deleted if it has no definition.
type policy struct {
	name       string
	pattern    string // a queue's or exchange's name
	applyTo    string
	definition func(n naming) map[string]any
}

func (o op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "channel %d: ", o.on)
	switch {
	case o.closes:
		b.WriteString("close the channel")
	case o.hangsUp:
		b.WriteString("hang up")
	case o.settle != nil:
		fmt.Fprintf(&b, "settle %+v", *o.settle)
	case o.policy != nil && o.policy.definition == nil:
		fmt.Fprintf(&b, "delete policy %s", o.policy.name)
	case o.policy != nil:
		fmt.Fprintf(&b, "policy %s for %s %s: %v", o.policy.name, o.policy.applyTo, o.policy.pattern, o.policy.definition(plainly))
	case o.properties != nil:
		m := o.form(plainly).(*wire.BasicPublish)
		fmt.Fprintf(&b, "%d× publish to %q/%q mandatory=%v %s", o.times, m.Exchange, m.RoutingKey, m.Mandatory, message(o.properties(plainly), o.body))
	default:
		m := o.form(plainly)
		fmt.Fprintf(&b, "%v %+v", m.ID(), m)
	}
	return b.String()
}

// A program is what a seed makes.
type program struct {
	ops []op
	// timed is set when something happens by itself, soon after its step.
	timed bool
}

func (p program) String() string {
	var b strings.Builder
	for i, o := range p.ops {
		fmt.Fprintf(&b, "%3d %v\n", i, o)
	}
	return b.String()
}

func method(on uint16, form func(n naming) wire.Method) op { return op{on: on, form: form} }
