package conformance

import (
	"encoding/binary"
	"fmt"

	"github.com/dormousemq/dormouse/internal/wire"
)

// fieldType is a type that a field table can hold: its name in RabbitMQ's texts, a value as it is on the wire, and as the texts have it.
type fieldType struct{ name, octets, text string }

var fieldTypes = []fieldType{
	{"bool", "t\x01", "true"}, {"void", "V", "undefined"}, {"timestamp", "T\x00\x00\x00\x00\x00\x00\x00\x02", "2"},
	{"byte", "b\x02", "2"}, {"unsignedbyte", "B\x02", "2"}, {"short", "s\x00\x02", "2"}, {"unsignedshort", "u\x00\x02", "2"},
	{"signedint", "I\x00\x00\x00\x02", "2"}, {"unsignedint", "i\x00\x00\x00\x02", "2"},
	{"long", "l\x00\x00\x00\x00\x00\x00\x00\x02", "2"}, {"long", "L\x00\x00\x00\x00\x00\x00\x00\x02", "2"},
	{"float", "f\x3f\x80\x00\x00", "1.0"}, {"double", "d\x3f\xf8\x00\x00\x00\x00\x00\x00", "1.5"}, {"decimal", "D\x01\x00\x00\x00\x0a", "{1,10}"},
	{"longstr", "S\x00\x00\x00\x012", ""}, {"binary", "x\x00\x00\x00\x00", "<<>>"}, {"binary", "x\x00\x00\x00\x012", `<<"2">>`},
	{"array", "A\x00\x00\x00\x00", "[]"}, {"array", "A\x00\x00\x00\x02t\x01", "[{bool,true}]"},
	{"table", "F\x00\x00\x00\x00", "[]"}, {"table", "F\x00\x00\x00\x04\x01at\x01", `[{<<"a">>,bool,true}]`},
}

// integer tells whether the value is the integer 2.
func (f fieldType) integer() bool { return f.text == "2" && f.name != "timestamp" }

// withArgument is the frame of a method whose last field is a table, with one argument in that.
func withArgument(m wire.Method, name, value string) []byte {
	b := wire.AppendMethod(nil, 1, m)
	b = binary.BigEndian.AppendUint32(b[:len(b)-5], uint32(1+len(name)+len(value)))
	b = append(append(append(b, byte(len(name))), name...), value...)
	binary.BigEndian.PutUint32(b[3:], uint32(len(b)-7))
	return append(b, wire.FrameEnd)
}

// Answers sends two methods, each with the argument, on a connection of its own, and tells what came of both or of the first that failed.
func (c *C) Answers(first, second wire.Method, argument, octets string) string {
	c.Helper()
	r := c.Opened()
	r.Write(withArgument(first, argument, octets))
	if got := r.Next(); got != first.ID().String()+"-ok" {
		return got
	}
	r.Write(withArgument(second, argument, octets))
	if got := r.Next(); got != second.ID().String()+"-ok" {
		return got
	}
	return ""
}

// fieldTypeCases are queues and bindings with an argument of each type, which is declared again and unbound with the same.
func fieldTypeCases() []Case {
	const refused = "channel.close 406 PRECONDITION_FAILED - "
	var cases []Case
	for _, f := range fieldTypes {
		cases = append(cases, Case{fmt.Sprintf("argument/of type %s %x", f.name, f.octets[:min(8, len(f.octets))]), func(c *C) {
			queue := func(argument string) string {
				m := &wire.QueueDeclare{Queue: c.Unique(argument), Exclusive: true}
				return c.Answers(m, m, argument, f.octets)
			}
			invalid := func(argument, reason string) string {
				return refused + "invalid arg '" + argument + "' for queue '" + argument + "' in vhost '/': " + reason + " (50,10)"
			}
			bind := func(kind, argument string) string {
				q, x := c.Queue("bound", classic, nil), c.Exchange(kind, kind, nil)
				return c.Answers(&wire.QueueBind{Queue: q, Exchange: x}, &wire.QueueUnbind{Queue: q, Exchange: x}, argument, f.octets)
			}
			c.Equal("unknown argument of a queue", queue("k"), "")
			for _, argument := range []string{"x-message-ttl", "x-expires", "x-max-length", "x-max-priority", "x-queue-version"} {
				want := ""
				if !f.integer() {
					want = invalid(argument, fmt.Sprintf(`"expected integer, got %s"`, f.name))
				}
				c.Equal(argument, queue(argument), want)
			}
			overflow, single := "{unacceptable_type,"+f.name+"}", "{unacceptable_type,"+f.name+"}"
			switch f.name {
			case "longstr":
				overflow = "invalid_overflow"
			case "bool":
				single = ""
			}
			c.Equal("x-overflow", queue("x-overflow"), invalid("x-overflow", overflow))
			if single != "" {
				single = invalid("x-single-active-consumer", single)
			}
			c.Equal("x-single-active-consumer", queue("x-single-active-consumer"), single)

			for _, kind := range []string{"direct", "topic", "headers"} {
				c.Equal("argument of a binding to "+kind, bind(kind, "k"), "")
			}
			want := refused + fmt.Sprintf("Invalid x-match field type %s (value %s); expected longstr (50,20)", f.name, f.text)
			if f.name == "longstr" {
				want = refused + `Invalid x-match field value <<"2">>; expected all, any, all-with-x, or any-with-x (50,20)`
			}
			c.Equal("x-match", bind("headers", "x-match"), want)
		}})
	}
	return append(cases, Case{"argument/queue type without a name", func(c *C) {
		none := map[string]any{"x-queue-type": ""}
		c.Equal("declared", c.DeclareRefused(c.Unique("q"), declare{}, none), changedIn(v43,
			`406 PRECONDITION_FAILED - invalid arg 'x-queue-type' for queue 'q' in vhost '/': "unsupported queue type ''"`, ""))
		if c.version.before(v43) {
			return
		}
		c.Equal("again", c.DeclareRefused(c.Unique("q"), declare{}, none), "")
		c.Equal("as classic", c.DeclareRefused(c.Unique("q"), declare{}, nil),
			"406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received 'classic' but current is ''")
	}}, Case{"argument/of a type that RabbitMQ does not read", func(c *C) {
		want := "end"
		if c.Deviates("it reads the short integer U of the specification, which RabbitMQ drops the connection for") {
			want = ""
		}
		m := &wire.QueueDeclare{Queue: c.Unique("q"), Exclusive: true}
		c.Equal("U", c.Answers(m, m, "k", "U\x00\x01"), want)
	}})
}
