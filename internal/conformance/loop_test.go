package conformance

import (
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/wire"
)

const rounds = 5

// loopCases take a message five times through a rejection, a queue where it waits, and back.
func loopCases() []Case {
	var cases []Case
	for _, work := range []string{classic, quorum} {
		for _, wait := range []string{classic, quorum} {
			cases = append(cases, Case{"history/five rounds/" + work + " with " + wait, func(c *C) { fiveRounds(c, work, wait) }})
		}
	}
	return cases
}

func fiveRounds(c *C, workKind, waitKind string) {
	if c.version.before(v40) {
		c.Skip("3.x writes the history into the client's headers, in an order of its own")
	}
	x := c.Exchange("x", "topic", nil)
	wait := c.Unique("wait")
	work := c.Queue("work", workKind, toQueue(wait, nil))
	c.Queue("wait", waitKind, toQueue(work, amqp.Table{"x-message-ttl": int32(10)}))
	c.Bind(work, "k.#", x, nil)
	r := c.Opened()
	times := map[string]wire.Timestamp{}
	began := time.Now()
	r.Publish(x, "k.1", wire.Properties{
		Flags:        wire.FlagHeaders | wire.FlagDeliveryMode | wire.FlagExpiration | wire.FlagMessageID,
		DeliveryMode: wire.Persistent, Expiration: "60000", MessageID: "id",
		Headers: wire.Table{{Name: "CC", Value: []any{"other"}}, {Name: "n", Value: int64(7)}, {Name: "zebra", Value: "z"}},
	}, "body")
	for n := range rounds + 1 {
		c.ReadyBecomes(work, 1)
		got := r.Get(work)
		c.Equal(fmt.Sprint("delivery ", n+1), got.show(times), c.lap(n, workKind))
		r.Send(1, &wire.BasicReject{DeliveryTag: uint64(n + 1)})
	}
	for entry, at := range times {
		if at := time.Unix(int64(at), 0); at.Before(began.Add(-2*time.Second)) || at.After(time.Now().Add(2*time.Second)) {
			c.Errorf("time of %s is %v, not one between %v and now", entry, at, began)
		}
	}
}

// lap is the message as it comes after n rounds, in the order in which RabbitMQ 4 writes it.
func (c *C) lap(n int, workKind string) []string {
	if n == 0 {
		return []string{`x/k.1 redelivered=false "body"`, `flags=0011000110000000 mode=2 expiration="60000" id="id"`, `CC=["other"]`, `n=int64:7`, `zebra="z"`}
	}
	lines := []string{
		fmt.Sprintf(`/work redelivered=%v "body"`, workKind == quorum || !c.version.before(v43)),
		`flags=0011000010000000 mode=2 expiration="" id="id"`, `CC=["other"]`, `n=int64:7`,
	}
	if workKind == quorum && !c.version.before(v43) {
		lines = append(lines, fmt.Sprintf(`x-acquired-count=int64:%d`, n))
	}
	lines = append(lines,
		fmt.Sprintf(`x-death count=int64:%d reason="expired" queue="wait" time=first exchange="" routing-keys=["wait"]`, n),
		fmt.Sprintf(`x-death original-expiration="60000" count=int64:%d reason="rejected" queue="work" time=first exchange="x" routing-keys=["k.1" "other"]`, n),
	)
	if workKind == quorum {
		lines = append(lines, fmt.Sprintf(`x-delivery-count=int64:%d`, n))
	}
	return append(lines,
		`x-first-death-exchange="x"`, `x-first-death-queue="work"`, `x-first-death-reason="rejected"`,
		`x-last-death-exchange=""`, `x-last-death-queue="wait"`, `x-last-death-reason="expired"`, `zebra="z"`)
}

// delivered is a message as it came.
type delivered struct {
	exchange, key string
	redelivered   bool
	wire.Properties
	body string
}

// show writes it with all of its fields in their order. The time of a death is shown as first or as other than that with
// which the entry was first seen.
func (d delivered) show(times map[string]wire.Timestamp) []string {
	lines := []string{
		fmt.Sprintf("%s/%s redelivered=%v %q", d.exchange, d.key, d.redelivered, d.body),
		fmt.Sprintf("flags=%016b mode=%d expiration=%q id=%q", d.Flags, d.DeliveryMode, d.Expiration, d.MessageID),
	}
	for _, f := range d.Headers {
		if f.Name != "x-death" {
			lines = append(lines, fmt.Sprintf("%s=%s", f.Name, typed(f.Value)))
			continue
		}
		for _, e := range f.Value.([]any) {
			lines = append(lines, "x-death "+showDeath(e.(wire.Table), times))
		}
	}
	return lines
}

func showDeath(death wire.Table, times map[string]wire.Timestamp) string {
	queue, _ := death.Get("queue")
	reason, _ := death.Get("reason")
	entry := fmt.Sprint(queue, " ", reason)
	var fields []string
	for _, f := range death {
		value := typed(f.Value)
		if at, ok := f.Value.(wire.Timestamp); ok {
			if times[entry] == 0 {
				times[entry] = at
			}
			if value = "first"; times[entry] != at {
				value = "other"
			}
		}
		fields = append(fields, f.Name+"="+value)
	}
	return strings.Join(fields, " ")
}
