package differ

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dormousemq/dormouse/internal/wire"
)

// observed is what one broker has shown since the last step began: what came in order, by where it came from. The order
// among sources is chance.
type observed struct {
	mu        sync.Mutex
	lines     map[string][]string
	getsAcked bool // the running step gets with no-ack
}

func (o *observed) add(where, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines[where] = append(o.lines[where], what)
}

// addSet is add for what comes in any order.
func (o *observed) addSet(where, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines[where] = append(o.lines[where], what)
	slices.Sort(o.lines[where])
}

func (o *observed) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = map[string][]string{}
}

func (o *observed) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for _, where := range slices.Sorted(maps.Keys(o.lines)) {
		for _, what := range o.lines[where] {
			fmt.Fprintf(&b, "%s: %s\n", where, what)
		}
	}
	return b.String()
}

// message shows a message. Headers are shown by name: RabbitMQ sorts them on some ways and the embedded broker passes them
// on as they came when it adds none, on purpose (decision 9 of the architecture).
func message(p wire.Properties, body string) string {
	if len(body) > 12 {
		body = fmt.Sprintf("%s…(%d)", strings.TrimRight(body[:12], "."), len(body))
	}
	headers := slices.Clone(p.Headers)
	slices.SortStableFunc(headers, func(a, b wire.Field) int { return strings.Compare(a.Name, b.Name) })
	flags := p.Flags
	p.Flags, p.Headers = 0, nil
	var props []string
	for f := range strings.SplitSeq(strings.Trim(fmt.Sprintf("%+v", p), "{}"), " ") {
		if !strings.HasSuffix(f, ":") && !strings.HasSuffix(f, ":0") && f != "Headers:[]" {
			props = append(props, f)
		}
	}
	// RabbitMQ gives a message that got an empty table no table at all on some ways through it.
	flags &^= wire.FlagHeaders
	return fmt.Sprintf("%q flags=%04x %s headers=%s", body, flags, strings.Join(props, " "), show(headers))
}

// show writes a value with its type. The time of a death is no matter.
func show(v any) string {
	switch v := v.(type) {
	case wire.Table:
		var parts []string
		for _, f := range v {
			value := show(f.Value)
			if _, is := f.Value.(wire.Timestamp); is && f.Name == "time" {
				value = "T"
			}
			parts = append(parts, f.Name+"="+value)
		}
		return "{" + strings.Join(parts, " ") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, show(e))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case string:
		return fmt.Sprintf("%q", v)
	case nil:
		return "void"
	}
	return fmt.Sprintf("%T:%v", v, v)
}
