package dormouse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"pgregory.net/rapid"

	"github.com/dormousemq/dormouse/internal/ladder"
	"github.com/dormousemq/dormouse/internal/retry"
)

func testLadder(t testing.TB) *ladder.Ladder {
	t.Helper()
	l, err := ladder.New(ladder.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTableConverts(t *testing.T) {
	now := time.Now()
	in := map[string]any{"int": math.MaxInt, "uint64": uint64(7), "list": []any{1, map[string]any{"x": nil}}, "table": amqp.Table{"y": int8(1)}, "time": now, "bytes": []byte("b")}
	want := amqp.Table{"int": int64(math.MaxInt), "uint64": int64(7), "list": []any{int64(1), amqp.Table{"x": nil}}, "table": amqp.Table{"y": int8(1)}, "time": now, "bytes": []byte("b")}
	got, err := table(in)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("table = %v, %v; want %v", got, err, want)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	back := plain(got["list"])
	if !reflect.DeepEqual(back, []any{int64(1), map[string]any{"x": nil}}) {
		t.Errorf("plain = %#v", back)
	}
	for name, v := range map[string]any{
		"uint64": uint64(math.MaxUint64), "nested": map[string]any{"a": []any{struct{}{}}}, strings.Repeat("n", 256): 1,
	} {
		if _, err := table(map[string]any{name: v}); err == nil || !strings.Contains(err.Error(), name[:6]) {
			t.Errorf("%.20s: %v", name, err)
		}
	}
}

func TestTableSizeIsWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var value func(depth int) *rapid.Generator[any]
		value = func(depth int) *rapid.Generator[any] {
			leaves := []*rapid.Generator[any]{
				rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any](uint8(1)), rapid.Just[any](int8(1)), rapid.Just[any](int16(1)),
				rapid.Just[any](uint16(1)), rapid.Just[any](int32(1)), rapid.Just[any](uint32(1)), rapid.Just[any](int64(1)),
				rapid.Just[any](float32(1)), rapid.Just[any](float64(1)), rapid.Just[any](amqp.Decimal{Scale: 1}), rapid.Just[any](time.Unix(1, 0)),
				rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return b }),
			}
			if depth > 0 {
				leaves = append(leaves,
					rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(l []any) any { return l }),
					rapid.Map(rapid.MapOfN(rapid.StringN(0, 20, 80), value(depth-1), 0, 4), func(m map[string]any) any { return amqp.Table(m) }))
			}
			return rapid.OneOf(leaves...)
		}
		headers := amqp.Table(rapid.MapOfN(rapid.StringN(0, 20, 80), value(3), 0, 6).Draw(t, "headers"))
		if got, want := tableSize(headers), writtenSize(t, headers); got != want {
			t.Fatalf("tableSize %d, written %d: %v", got, want, headers)
		}
	})
}

// writtenSize has amqp091-go write the table, into the client properties of a connection to nobody.
func writtenSize(t *rapid.T, headers amqp.Table) int {
	size := func(h amqp.Table) int {
		conn := newSink()
		_, err := amqp.Open(conn, amqp.Config{
			SASL: []amqp.Authentication{&amqp.PlainAuth{Username: "u", Password: "p"}}, Vhost: "/", Properties: amqp.Table{"h": h}, Locale: "en_US",
		})
		if err == nil {
			t.Fatal("opened a connection to nobody")
		}
		return conn.size()
	}
	return size(headers) - size(amqp.Table{}) + 4
}

func TestSeal(t *testing.T) {
	l := testLadder(t)
	now := time.Now()
	headers := amqp.Table{"a": "b", "BCC": []any{"mine"}, "x-death": []any{}, "x-first-death-queue": "q", "x-delivery-count": int64(1), "x-mine": 1}
	for _, c := range []struct {
		name          string
		p             post
		keepPriority  bool
		exchange, key string
		bcc           string
		priority      uint8
	}{
		{"now", post{exchange: "x", key: "k"}, true, "x", "k", "", 5},
		{"now, straight to a queue", post{key: "q"}, true, "", "q", "", 5},
		{"a retry that is due", post{key: "k", queue: "q", due: now}, true, "", "q", "", 5},
		{"delayed", post{exchange: "x", key: "k", due: now.Add(90 * time.Minute)}, true, "dormouse.delay", "k", "dm.0.0.0.1.3.0.0.0.0.x.x", 5},
		{"delayed where priority blocks", post{exchange: "x", key: "k", due: now.Add(time.Second)}, false, "dormouse.delay", "k", "dm.0.0.0.0.0.0.0.1.0.x.x", 0},
		{"a retry keeps its key", post{key: "k", queue: "q", due: now.Add(time.Second)}, true, "dormouse.delay", "k", "dm.0.0.0.0.0.0.0.1.0.q.q", 5},
		{"jitter", post{key: "k", queue: "q", due: now.Add(61200 * time.Millisecond), lanes: 2}, true, "dormouse.delay", "k", "dm.0.0.0.0.0.1.0.2.0.q.q", 5},
		{"jitter, exactly", post{key: "k", queue: "q", due: now.Add(61200 * time.Millisecond)}, true, "dormouse.delay", "k", "dm.0.0.0.0.0.1.0.1.2.q.q", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.p.Publishing = amqp.Publishing{Headers: headers, Priority: 5, DeliveryMode: amqp.Transient}
			e, err := c.p.seal(l, now, c.keepPriority)
			if err != nil || e.exchange != c.exchange || e.key != c.key || e.msg.Priority != c.priority {
				t.Fatalf("sealed to %q %q with priority %d, %v", e.exchange, e.key, e.msg.Priority, err)
			}
			if c.bcc == "" {
				if !reflect.DeepEqual(e.msg.Headers, headers) || e.delay != 0 {
					t.Errorf("headers %v", e.msg.Headers)
				}
				return
			}
			want := amqp.Table{"a": "b", "x-mine": 1, "BCC": []any{"mine", c.bcc}, "due-time": c.p.due.UnixMilli()}
			if c.p.exchange != "" {
				want["due-exchange"] = "x"
			}
			if !reflect.DeepEqual(e.msg.Headers, want) || e.msg.DeliveryMode != amqp.Persistent {
				t.Errorf("headers %v, want %v", e.msg.Headers, want)
			}
		})
	}
	if len(headers["BCC"].([]any)) != 1 {
		t.Error("sealing changed the caller's headers")
	}
	far := post{key: "q", due: now.Add(1000 * ladder.Day), lanes: 2}
	if _, err := far.seal(l, now, true); !errors.Is(err, ladder.ErrTooLong) {
		t.Errorf("beyond the maximum: %v", err)
	}
}

func TestReadHistory(t *testing.T) {
	death := func(queue, reason string, n int64) any {
		return amqp.Table{"queue": queue, "reason": reason, "count": n}
	}
	for _, c := range []struct {
		name string
		d    amqp.Delivery
		want history
	}{
		{"fresh", amqp.Delivery{}, history{}},
		{"second attempt", amqp.Delivery{Headers: amqp.Table{"retry-queue": "q", "retry-count": int32(1), "retry-reason": "error", "retry-error": "e", "retry-first-time": int64(5000)}},
			history{Count: retry.Count{Failed: 1}, firstTime: time.UnixMilli(5000), lastReason: "error", lastError: "e"}},
		{"somebody else's counter", amqp.Delivery{Headers: amqp.Table{"retry-count": "3"}}, history{Count: retry.Count{Failed: 3}}},
		{"another queue's retries", amqp.Delivery{Headers: amqp.Table{"retry-queue": "other", "retry-count": int64(3), "retry-reason": "error"}}, history{}},
		{"broker loop", amqp.Delivery{Headers: amqp.Table{"x-death": []any{death("wait", "expired", 2), death("q", "rejected", 2)}}},
			history{Count: retry.Count{Failed: 2}, lastReason: ReasonRejected}},
		{"through the ladder", amqp.Delivery{Headers: amqp.Table{"x-death": []any{death("dormouse.delay.1s", "expired", 1)}, "x-delivery-count": int64(1)}, Redelivered: true},
			history{Count: retry.Count{Crashes: 1}}},
		{"carried", amqp.Delivery{Headers: amqp.Table{"x-death": []any{death("other", "rejected", 1)}, "x-delivery-count": int64(1)}, Redelivered: true},
			history{Count: retry.Count{Carried: true}}},
		{"4.3, given back", amqp.Delivery{Headers: amqp.Table{"x-acquired-count": int64(3)}, Redelivered: true}, history{}},
		{"classic, redelivered", amqp.Delivery{Redelivered: true}, history{Count: retry.Count{Crashes: 1}}},
		{"garbage", amqp.Delivery{Headers: amqp.Table{"retry-count": "x", "x-death": "y", "retry-first-time": true, "retry-queue": 5}}, history{}},
	} {
		if got := readHistory(&c.d, "q", headerCount, 0); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestCopyLeavesOutWhatWouldHarm(t *testing.T) {
	d := &amqp.Delivery{
		Exchange: "x", RoutingKey: "k", UserId: "alice", Expiration: "1000", Priority: 3, MessageId: "m", DeliveryMode: amqp.Transient,
		Headers: amqp.Table{
			"mine": 1, "CC": []any{"other"}, "x-death": []any{}, "x-first-death-reason": "expired", "x-last-death-queue": "l", "x-delivery-count": int64(4),
			"x-acquired-count": int64(4), "due-time": int64(1), "due-exchange": "orders",
		},
	}
	first := time.UnixMilli(12345)
	p := failedCopy(d, "bob", "q", "tries", 2, first, failure{ReasonError, errors.New("no\xff" + strings.Repeat("é", 2000)), nil})
	text, _ := p.Headers["retry-error"].(string)
	if !strings.HasPrefix(text, "no\uFFFD") || len(text) > longestError || strings.Contains(text[3:], "\uFFFD\uFFFD") {
		t.Errorf("error %q (%d bytes)", text[:20], len(text))
	}
	delete(p.Headers, "retry-error")
	want := amqp.Table{"mine": 1, "tries": int64(2), "retry-reason": "error", "retry-first-time": int64(12345), "retry-queue": "q", "retry-exchange": "orders", "retry-routing-key": "k"}
	if !reflect.DeepEqual(p.Headers, want) {
		t.Errorf("headers %v, want %v", p.Headers, want)
	}
	if p.UserId != "" || p.Expiration != "" || p.DeliveryMode != amqp.Persistent || p.Priority != 3 || p.MessageId != "m" {
		t.Errorf("copy %+v", p)
	}
	if own := copyOf(d, "alice"); own.UserId != "alice" {
		t.Error("the connection's own user id is lost")
	}
	// The origin survives any number of copies.
	again := &amqp.Delivery{Exchange: "dormouse.due", RoutingKey: "q", Headers: p.Headers}
	if x, k := origin(again); x != "orders" || k != "k" {
		t.Errorf("origin of the copy: %q %q", x, k)
	}
}

func TestLadderSafe(t *testing.T) {
	for _, c := range []struct{ key, queue, want string }{{"k", "q", "k"}, {"dm.1", "q", "q"}, {"dm.1", "dm.q", ""}} {
		if got := ladderSafe(&amqp.Delivery{RoutingKey: c.key}, c.queue); got != c.want {
			t.Errorf("key %q to %q: %q, want %q", c.key, c.queue, got, c.want)
		}
	}
}

func TestLadderDeclarations(t *testing.T) {
	l := testLadder(t)
	all := slices.Concat(ladderDeclarations(l, "")...)
	queues, exchanges, bindings := 0, 0, 0
	byName := map[string]declaration{}
	declared := map[string]bool{}
	for _, d := range all {
		switch {
		case d.source != "":
			bindings++
			if !declared[d.source] || !declared[d.queue+d.exchange] {
				t.Fatalf("bound before it is declared: %+v", d)
			}
			continue
		case d.queue != "":
			queues++
		default:
			exchanges++
		}
		declared[d.queue+d.exchange] = true
		byName[d.queue+d.exchange] = d
	}
	if queues != 82 || exchanges != 11 || bindings != 407+9+1 {
		t.Errorf("%d queues, %d exchanges, %d bindings", queues, exchanges, bindings)
	}
	if got, want := byName["dormouse.delay.5m"].args, (map[string]any{
		"x-queue-type": "quorum", "x-message-ttl": int64(300_000), "x-dead-letter-exchange": "dormouse.delay.10s",
		"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("lane 5m: %v, want %v", got, want)
	}
	if got := byName["dormouse.due"]; got.kind != "topic" || got.args["alternate-exchange"] != "dormouse.unrouted" {
		t.Errorf("due: %+v", got)
	}
	for _, d := range slices.Concat(ladderDeclarations(l, Classic)...) {
		if d.args["x-dead-letter-strategy"] != nil || d.args["x-overflow"] != nil || d.args["x-delivery-limit"] != nil {
			t.Errorf("classic queues do not have these: %+v", d)
		}
	}
	last := all[len(all)-1]
	if last.source != "dormouse.delay" {
		t.Errorf("the entry must be bound last, not %+v", last)
	}
}

func TestTopologyDeclarations(t *testing.T) {
	l := testLadder(t)
	topology := Topology{
		WithoutLadder: true,
		Exchanges:     []Exchange{{Name: "x", Args: map[string]any{"a": 1}}, {Name: "y", Kind: "fanout", Alternate: "z"}},
		Queues: []Queue{
			{Name: "q", Bindings: []Binding{{Exchange: "x", RoutingKey: "#"}}},
			{Name: "c", Type: Classic},
			{Name: "loop", DeadLetterExchange: "wait", Args: map[string]any{"x-delivery-limit": 5}},
		},
		FixedDelays: []FixedDelay{{Queue: "wait", Delay: 1500 * time.Microsecond, RoutingKey: "loop"}},
	}
	ladderStages, stages, err := topology.declarations(l)
	if err != nil || ladderStages != nil {
		t.Fatal(ladderStages, err)
	}
	rest := slices.Concat(stages...)
	const huge = int64(2_000_000_000)
	alo := map[string]any{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-queue-type": "quorum"}
	with := func(base map[string]any, more map[string]any) map[string]any {
		for k, v := range base {
			if _, ok := more[k]; !ok {
				more[k] = v
			}
		}
		return more
	}
	want := []declaration{
		{exchange: "x", kind: "topic", args: map[string]any{"alternate-exchange": "dormouse.unrouted", "a": 1}},
		{exchange: "y", kind: "fanout", args: map[string]any{"alternate-exchange": "z"}},
		{queue: "q.parked", args: map[string]any{"x-queue-type": "quorum", "x-delivery-limit": huge}},
		{queue: "q", args: with(alo, map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q.parked"})},
		{queue: "c.parked", args: map[string]any{"x-queue-type": "classic"}},
		{queue: "c", args: map[string]any{"x-queue-type": "classic", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "c.parked"}},
		{queue: "loop.parked", args: map[string]any{"x-queue-type": "quorum", "x-delivery-limit": huge}},
		{queue: "loop", args: with(alo, map[string]any{"x-dead-letter-exchange": "wait", "x-delivery-limit": 5})},
		{queue: "wait", args: with(alo, map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "loop", "x-message-ttl": int64(2)})},
		{queue: "q", source: "x", key: "#"},
	}
	if !reflect.DeepEqual(rest, want) {
		for i := range min(len(rest), len(want)) {
			if !reflect.DeepEqual(rest[i], want[i]) {
				t.Errorf("declaration %d is %+v, want %+v", i, rest[i], want[i])
			}
		}
		t.Errorf("%d declarations, want %d", len(rest), len(want))
	}
	topology.WithoutLadder = false
	if ladderStages, stages, err = topology.declarations(l); err != nil || len(slices.Concat(ladderStages...)) != len(slices.Concat(ladderDeclarations(l, "")...)) {
		t.Fatalf("with the ladder: %d stages, %v", len(ladderStages), err)
	}
	for _, d := range []declaration{
		{queue: "q", source: "dormouse.due", key: "dm.*.*.*.*.*.*.*.*.*.q.q"}, {exchange: "x", source: "dormouse.due", key: "dm.*.*.*.*.*.*.*.*.*.x.x"},
	} {
		if !slices.ContainsFunc(slices.Concat(stages...), func(got declaration) bool { return reflect.DeepEqual(got, d) }) {
			t.Errorf("no %+v in %+v", d, stages)
		}
	}
	for what, bad := range map[string]Topology{
		"LadderType":                   {LadderType: "stream"},
		"exchange \"\"":                {Exchanges: []Exchange{{}}},
		"queue \"\"":                   {Queues: []Queue{{}}},
		"line breaks":                  {Queues: []Queue{{Name: "a\nb"}}},
		"belong to the delay ladder":   {Queues: []Queue{{Name: "dm.q"}}},
		"1 to 248 bytes":               {Queues: []Queue{{Name: strings.Repeat("q", 249)}}},
		"type is \"stream\"":           {Queues: []Queue{{Name: "q", Type: "stream"}}},
		"names no exchange":            {Queues: []Queue{{Name: "q", Bindings: []Binding{{RoutingKey: "k"}}}}},
		"between 1 ms and ten years":   {FixedDelays: []FixedDelay{{Queue: "w", RoutingKey: "q"}}},
		"neither Exchange nor Routing": {FixedDelays: []FixedDelay{{Queue: "w", Delay: time.Second}}},
	} {
		if _, _, err := bad.declarations(l); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v does not say %q", err, what)
		}
	}
}

func TestExplain(t *testing.T) {
	exception := func(reason string) error {
		return fmt.Errorf("declaring: %w", &amqp.Error{Code: amqp.PreconditionFailed, Reason: reason, Server: true})
	}
	for _, c := range []struct {
		reason string
		want   MismatchError
	}{
		{"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'a.b' in vhost '/': received '6' but current is '5'",
			MismatchError{Kind: "queue", Name: "a.b", Property: "x-message-ttl", Want: "6", Have: "5"}},
		{"PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received none but current is the value 'quorum' of type 'longstr'",
			MismatchError{Kind: "queue", Name: "q", Property: "x-queue-type", Want: "none", Have: "quorum"}},
		{"PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost 'v': received 'fanout' but current is 'topic'",
			MismatchError{Kind: "exchange", Name: "x", Property: "type", Want: "fanout", Have: "topic"}},
	} {
		err := explain(exception(c.reason))
		var got *MismatchError
		if !errors.As(err, &got) || !isCode(err, amqp.PreconditionFailed) {
			t.Fatalf("%s: %v", c.reason, err)
		}
		got.Err = nil
		if *got != c.want {
			t.Errorf("%+v, want %+v", *got, c.want)
		}
		for _, part := range []string{c.want.Name, c.want.Property, c.want.Want, c.want.Have, "delete"} {
			if !strings.Contains(got.Error(), part) {
				t.Errorf("%q does not say %q", got, part)
			}
		}
	}
	for _, other := range []error{errors.New("x"), exception("PRECONDITION_FAILED - something else"), &amqp.Error{Code: amqp.NotFound}} {
		if explain(other) != other {
			t.Errorf("%v was explained as %v", other, explain(other))
		}
	}
}

func TestExcuses(t *testing.T) {
	var e excuses
	now := time.Now()
	id := func(s string) func() string { return func() string { return s } }
	if n := e.times(func() string { panic("nobody is excused, so no fingerprint is needed") }); n != 0 {
		t.Errorf("%d before anything was lost", n)
	}
	e.add(now, []string{"a", "b"})
	e.add(now.Add(time.Minute), []string{"a"})
	if a, b, c := e.times(id("a")), e.times(id("b")), e.times(id("c")); a != 2 || b != 1 || c != 0 {
		t.Errorf("excused %d, %d, %d times", a, b, c)
	}
	e.settled(id("a"))
	if n := e.times(id("a")); n != 0 {
		t.Errorf("settled, but excused %d times", n)
	}
	e.add(now.Add(2*excuseLife), []string{"c"})
	if n := e.times(id("b")); n != 0 {
		t.Error("old excuses are kept")
	}
}

func TestFingerprint(t *testing.T) {
	if got := fingerprint(&amqp.Delivery{MessageId: "m", Body: []byte("b")}); got != "m" {
		t.Errorf("with an id: %s", got)
	}
	a := fingerprint(&amqp.Delivery{Exchange: "x", RoutingKey: "yz", Body: []byte("b")})
	for what, other := range map[string]*amqp.Delivery{
		"body": {Exchange: "x", RoutingKey: "yz", Body: []byte("c")}, "moved boundary": {Exchange: "xy", RoutingKey: "z", Body: []byte("b")},
	} {
		if fingerprint(other) == a {
			t.Errorf("%s makes no difference", what)
		}
	}
	retried := &amqp.Delivery{Exchange: "dormouse.due", RoutingKey: "q", Body: []byte("b"), Headers: amqp.Table{"retry-exchange": "x", "retry-routing-key": "yz"}}
	if fingerprint(retried) != a {
		t.Error("a retried message has another fingerprint")
	}
}

func TestKeepsPriority(t *testing.T) {
	for version, want := range map[string]bool{"3.10.8": true, "3.13.7": true, "4.0.5": false, "4.1.0-rc.1": false, "4.2.3": false, "4.3.6": true, "5.0.0": true, "": true, "x": true} {
		if got := keepsPriority(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		gone := make(chan struct{})
		if err := g.pass(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		g.set(true, "low on memory")
		g.set(true, "again")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := g.pass(ctx, gone); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "low on memory") {
			t.Errorf("shut: %v", err)
		}
		passed := make(chan error, 1)
		go func() { passed <- g.pass(t.Context(), gone) }()
		synctest.Wait()
		g.set(false, "")
		if err := <-passed; err != nil {
			t.Errorf("opened: %v", err)
		}
		g.set(true, "again")
		close(gone)
		if err := g.pass(t.Context(), gone); !errors.Is(err, amqp.ErrClosed) {
			t.Errorf("gone: %v", err)
		}
	})
}

func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newTurn()
		release := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := turn.do(ctx, func() error { <-release; return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("work that hangs: %v", err)
		}
		if err := turn.do(ctx, func() error { panic("not its turn") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for it: %v", err)
		}
		close(release)
		want := errors.New("result")
		if err := turn.do(t.Context(), func() error { return want }); err != want {
			t.Errorf("when it is over: %v", err)
		}
	})
}

func TestOptions(t *testing.T) {
	for what, o := range map[string]Options{
		"Heartbeat": {Heartbeat: time.Millisecond}, "MaxInFlight": {MaxInFlight: -1}, "prefix": {Prefix: "amq.x"}, "maximum delay": {MaxDelay: time.Hour}, "resolution": {Resolution: time.Minute},
	} {
		if _, err := Connect(t.Context(), "amqp://127.0.0.1:1/", o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v does not say %q", err, what)
		}
	}
}

func TestRetryPolicyConstructors(t *testing.T) {
	for _, p := range []RetryPolicy{RetrySteps(time.Second), RetrySteps(), RetryExponential(25, time.Second, time.Hour)} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
		if len(p.Schedule()) != p.MaxAttempts-1 {
			t.Errorf("%+v: schedule %v", p, p.Schedule())
		}
	}
}
