package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/dormousemq/dormouse/internal/bench"
)

// fixed is a workload whose results are given beforehand.
type fixed struct {
	results []bench.Result
	err     error
	next    int
	asked   []string // URLs
}

func (*fixed) Name() string { return "fixed" }

func (f *fixed) Run(_ context.Context, t bench.Target) (bench.Result, error) {
	f.asked = append(f.asked, t.URL)
	if f.err != nil {
		return bench.Result{}, f.err
	}
	f.next++
	return f.results[(f.next-1)%len(f.results)], nil
}

func measured(rate float64) bench.Result {
	return bench.Result{
		Workload: "fixed", Case: "case", Broker: "broker", Published: 10, Received: 10,
		Metrics: []bench.Metric{{Name: "rate", Value: rate, Unit: "/s"}},
	}
}

func runBenchmark(t *testing.T, w workload, urls ...string) (stdout string, err error) {
	t.Helper()
	var out strings.Builder
	b := benchmark{env: Environment{Stdout: &out, Stderr: io.Discard, Getenv: func(string) string { return "" }}, rounds: 2}
	for _, url := range urls {
		b.contenders = append(b.contenders, &contender{url: brokerURL(url)})
	}
	err = b.run(t.Context(), []workload{w})
	return out.String(), err
}

func TestBrokersTakeTurns(t *testing.T) {
	w := &fixed{results: []bench.Result{measured(30), measured(10), measured(10), measured(20)}}
	out, err := runBenchmark(t, w, "amqp://a/", "amqp://b/")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.asked, " "); got != "amqp://a/ amqp://b/ amqp://b/ amqp://a/" {
		t.Errorf("measured in the order %s", got)
	}
	if !strings.Contains(out, "2.5") || !strings.Contains(out, "2 to 3") {
		t.Errorf("the ratio of 30 by 10 and 20 by 10 is not told:\n%s", out)
	}
}

func TestFaultsOfABrokerFail(t *testing.T) {
	for name, spoil := range map[string]func(r *bench.Result){
		"lost":       func(r *bench.Result) { r.Lost = 1 },
		"duplicates": func(r *bench.Result) { r.Duplicates = 1 },
		"early":      func(r *bench.Result) { r.Early = 1 },
		"foreign":    func(r *bench.Result) { r.Foreign = 1 },
	} {
		r := measured(1)
		spoil(&r)
		out, err := runBenchmark(t, &fixed{results: []bench.Result{measured(1), r}}, "amqp://a/")
		if err == nil || !strings.Contains(err.Error(), "1 of 10 messages") {
			t.Errorf("%s: error %v", name, err)
		}
		if !strings.Contains(out, "rate") {
			t.Errorf("%s: the figures are not told all the same:\n%s", name, out)
		}
		if code := report(Environment{Stderr: io.Discard}, nil, err); code != ExitFailure {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}

func TestBrokerWithoutDelayedExchange(t *testing.T) {
	_, err := runBenchmark(t, &fixed{err: bench.ErrNoDelayedExchange}, "amqp://a/")
	if hinted, ok := errors.AsType[hintedError](err); !ok || !strings.Contains(hinted.hint, "rabbitmq_delayed_message_exchange") {
		t.Errorf("error %v", err)
	}
}
