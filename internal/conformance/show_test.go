package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Equal fails the case when what was observed is not what is expected of this version.
func (c *C) Equal(what string, got, want any) {
	c.Helper()
	g, w := c.plain(show(got)), show(resolve(want, c.version))
	c.seen.add(what, g)
	if g != w {
		c.Errorf("%s on %s:\n got: %s\nwant: %s", what, c.target, indent(g), indent(w))
	}
}

func (t target) String() string {
	if t.embedded {
		return "the embedded broker"
	}
	return "RabbitMQ " + t.version.String()
}

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n      ") }

func errorText(e *amqp.Error) string { return fmt.Sprintf("%d %s", e.Code, e.Reason) }

// show writes a value with the types of its fields, tables sorted by name.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "void"
	case string:
		return v
	case []string:
		return strings.Join(v, "\n")
	case amqp.Table:
		return showTable(v)
	case []any:
		return "[" + join(slices.Values(v)) + "]"
	default:
		return fmt.Sprint(v)
	}
}

func showTable(t amqp.Table) string {
	fields := make([]string, 0, len(t))
	for _, k := range slices.Sorted(maps.Keys(t)) {
		fields = append(fields, k+"="+typed(t[k]))
	}
	return "{" + strings.Join(fields, " ") + "}"
}

func join(seq func(func(any) bool)) string {
	var parts []string
	for v := range seq {
		parts = append(parts, typed(v))
	}
	return strings.Join(parts, " ")
}

// typed is show with the field type before what is not a string, list or table.
func typed(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case time.Time:
		return "time:" + v.UTC().Format(time.RFC3339)
	case nil, []any, amqp.Table:
		return show(v)
	default:
		return fmt.Sprintf("%T:%v", v, v)
	}
}
