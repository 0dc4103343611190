package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/cli/demo"
)

func TestReportOnPlainOutput(t *testing.T) {
	lateness := demo.NewLateness()
	for _, ms := range []int{1, 1, 1, 1, 3, 200, 90_000} {
		lateness.Record(time.Duration(ms) * time.Millisecond)
	}
	report := demo.Report{
		Result:   demo.Result{Published: 3, Delivered: 1, Parked: 1, Lost: 1},
		Parked:   []demo.Parked{{ID: "run-0001", Key: "order.paid", Reason: "timeout", Error: "late\x1b[2J\nforged line", Attempts: 4}},
		Lateness: lateness.Buckets(),
		Problems: []string{"run-0003 is lost"},
	}
	var out strings.Builder
	showReport(newScreen(Environment{Getenv: func(string) string { return "" }}, &out), report)
	said := out.String()
	for _, want := range []string{"run-0001", "timeout", "run-0003 is lost", "≤ 1 ms", "≤ 4 ms", "≤ 250 ms", "later"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	if strings.Contains(said, "\x1b") {
		t.Errorf("moves the cursor where there is none:\n%q", said)
	}
	if strings.Contains(said, "\nforged line") {
		t.Errorf("a message forged a line:\n%s", said)
	}
	if longest, once := strings.Count(line(said, "≤ 1 ms"), "█"), strings.Count(line(said, "≤ 4 ms"), "█"); longest != 40 || once != 10 {
		t.Errorf("bars of %d and %d blocks for 4 and 1 of 7, want 40 and 10:\n%s", longest, once, said)
	}
}

func line(text, with string) string {
	for l := range strings.Lines(text) {
		if strings.Contains(l, with) {
			return l
		}
	}
	return ""
}
