package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dormousemq/dormouse"
)

const whole = `
prefix: shop
count-header: x-retry-count
ladder:
  type: classic
  max-delay: 30d
  resolution: 1s
exchanges:
  orders: {kind: topic, arguments: {x-more: [1, two, {three: true}]}}
  events: {kind: fanout, alternate: elsewhere}
queues:
  email:
    type: classic
    bindings:
      - {exchange: orders, key: "order.*"}
      - {exchange: events, arguments: {x-match: all}}
    arguments: {x-max-length: 100000}
    parking-lot:
      arguments: {x-message-ttl: 604800000}
    deadline: 30s
    grace: 2s
    concurrency: 8
    prefetch: 16
    retry:
      steps: [10s, 1m, 10m]
      park-at-once: [panic, rejected]
    breaker: {failures: 20, pause: 10s, max-pause: 5m}
  invoice:
    dead-letter-exchange: later
    retry: {attempts: 8, first: 1s, factor: 3, max: 1h, jitter: 0.5, exhausted: discard}
  plain: {}
fixed-delays:
  email.10s: {delay: 10s, to: email}
  invoice.1h: {delay: 1h, exchange: orders, key: order.late, type: classic, bindings: [{exchange: later, key: "#"}]}
`

func TestWholeFile(t *testing.T) {
	got, err := Read("dormouse.yaml", strings.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	const s = time.Second
	want := &File{
		Options: dormouse.Options{Prefix: "shop", CountHeader: "x-retry-count", MaxDelay: 30 * 24 * time.Hour, Resolution: s},
		Topology: dormouse.Topology{
			LadderType: dormouse.Classic,
			Exchanges: []dormouse.Exchange{
				{Name: "events", Kind: "fanout", Alternate: "elsewhere"},
				{Name: "orders", Kind: "topic", Args: map[string]any{"x-more": []any{uint64(1), "two", map[string]any{"three": true}}}},
			},
			Queues: []dormouse.Queue{
				{
					Name: "email", Type: dormouse.Classic, Args: map[string]any{"x-max-length": uint64(100000)},
					ParkedArgs: map[string]any{"x-message-ttl": uint64(604800000)},
					Bindings:   []dormouse.Binding{{Exchange: "orders", RoutingKey: "order.*"}, {Exchange: "events", Args: map[string]any{"x-match": "all"}}},
				},
				{Name: "invoice", DeadLetterExchange: "later"},
				{Name: "plain"},
			},
			FixedDelays: []dormouse.FixedDelay{
				{Queue: "email.10s", Delay: 10 * s, RoutingKey: "email"},
				{
					Queue: "invoice.1h", Delay: time.Hour, Exchange: "orders", RoutingKey: "order.late", Type: dormouse.Classic,
					Bindings: []dormouse.Binding{{Exchange: "later", RoutingKey: "#"}},
				},
			},
		},
		Consumers: map[string]dormouse.ConsumeOptions{
			"email": {
				Retry: dormouse.RetryPolicy{
					MaxAttempts: 4, Exhausted: dormouse.ExhaustedPark, Steps: []time.Duration{10 * s, time.Minute, 10 * time.Minute},
					ParkAtOnce: []dormouse.Reason{dormouse.ReasonPanic, dormouse.ReasonRejected},
				},
				Concurrency: 8, Prefetch: 16, Timeout: 30 * s, Grace: 2 * s,
				Breaker: dormouse.Breaker{Failures: 20, Pause: 10 * s, MaxPause: 5 * time.Minute},
			},
			"invoice": {Retry: dormouse.RetryPolicy{
				MaxAttempts: 8, Exhausted: dormouse.ExhaustedDiscard, First: s, Factor: 3, Max: time.Hour, Jitter: 0.5,
			}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestEmptyFile(t *testing.T) {
	for _, source := range []string{"", "\n", "# nothing\n", "{}\n"} {
		f, err := Read("dormouse.yaml", strings.NewReader(source))
		if err != nil || len(f.Topology.Queues) != 0 {
			t.Errorf("%q: %+v, %v", source, f, err)
		}
	}
}

// What is wrong is named with its line and column.
func TestErrorsNameThePlace(t *testing.T) {
	for _, c := range []struct {
		source string
		place  string
		says   string
	}{
		{"prefix: a\nprefixx: b\n", "2:1", `unknown field "prefixx"`},
		{"queues:\n  email:\n    rerty: {}\n", "3:5", `unknown field "rerty"`},
		{"queues:\n  email: {type: fast}\n", "2:", `type is "fast"`},
		{"queues:\n  email: {}\n  email: {}\n", "3:3", "already defined"},
		{"ladder:\n  max-delay: 5\n", "2:14", "not a time with its unit"},
		{"ladder:\n  max-delay: soon\n", "2:14", `"soon" is not a time`},
		{"ladder:\n  max-delay: 20y\n", "2:14", "is not a time"},
		{"ladder:\n  max-delay: 1h\n", "1:1", "delay ladder"},
		{"ladder:\n  type: stream\n", "2:3", "LadderType"},
		{"queues:\n  email:\n    retry: {attempts: 3}\n", "3:", "neither Steps nor First"},
		{"queues:\n  email:\n    retry: {steps: [1s], park-at-once: [boredom]}\n", "3:", `"boredom"`},
		{"queues:\n  email:\n    retry:\n      steps: [1s, -1s]\n", "4:", "is not a time"},
		{"queues:\n  email:\n    retry: {steps: [900d]}\n", "2:", "ladder's maximum"},
		{"queues:\n  email:\n    retry: {steps: [1s]}\n    concurrency: 4\n    prefetch: 2\n", "2:", "Prefetch"},
		{"queues:\n  email:\n    retry: {steps: [1s]}\n    breaker: {failures: 3}\n", "4:", "circuit breaker"},
		{"queues:\n  email:\n    deadline: 3s\n", "3:5", "means nothing without retry"},
		{"queues:\n  email:\n    bindings: [{key: a}]\n", "2:", "names no exchange"},
		{"queues: [email]\n", "1:9", ""},
		{"fixed-delays:\n  w: {delay: 1s}\n", "2:", "either to"},
		{"fixed-delays:\n  w: {delay: 1s, to: q, key: k}\n", "2:", "key goes with exchange"},
		{"fixed-delays:\n  w: {to: q}\n", "2:", "between 1 ms and ten years"},
		{"prefix: a\n---\nprefix: b\n", "", "several documents"},
		{"prefix: [a\n", "1:", ""},
	} {
		_, err := Read("dormouse.yaml", strings.NewReader(c.source))
		e, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%q: %v", c.source, err)
			continue
		}
		place := ""
		if e.Line > 0 {
			place = fmt.Sprintf("%d:%d", e.Line, e.Column)
		}
		if !strings.HasPrefix(place, c.place) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "dormouse.yaml:") {
			t.Errorf("%q: %v, want %s … %s", c.source, err, c.place, c.says)
		}
	}
}

// All that is wrong is said at once.
func TestSeveralErrors(t *testing.T) {
	_, err := Read("f", strings.NewReader("queues:\n  a: {type: x}\n  b: {type: y}\n"))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "f:2:") || !strings.HasPrefix(lines[1], "f:3:") {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dormouse.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Load(path); err != nil || f.Options.Prefix != "shop" {
		t.Errorf("%+v, %v", f, err)
	}
}
