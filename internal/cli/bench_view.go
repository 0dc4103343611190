package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dormousemq/dormouse/internal/bench"
)

// watchBench shows how far a measurement has come, in one line that is redrawn on a terminal; elsewhere it only says what
// begins. The function that it returns ends that.
func watchBench(s screen, who, what string, progress *bench.Progress) (done func()) {
	if !s.terminal {
		s.printf("%s: %s\n", who, what)
		return func() {}
	}
	end := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				s.printf("\r\x1b[K")
				return
			case <-tick.C:
				phase, published, received := progress.Now()
				line := fmt.Sprintf("%s: %s: published %d, received %d", who, phase, published, received)
				s.printf("\r\x1b[K%s", text.Snip(line, max(s.width-1, 1), "…"))
			}
		}
	})
	return func() {
		close(end)
		drawing.Wait()
	}
}

// showComparison prints the figures of a case for people.
func showComparison(s screen, c comparison) {
	s.printf("\n%s: %s\n", s.paint(text.Colors{text.Bold}, c.Workload), c.Case)
	if len(c.Second) == 0 {
		showAlone(s, c.First)
	} else {
		showRatios(s, c)
	}
	for _, rounds := range [][]bench.Result{c.First, c.Second} {
		showLateness(s, rounds)
	}
}

func showAlone(s screen, rounds []bench.Result) {
	var rows []table.Row
	for _, m := range rounds[0].Metrics {
		var values []float64
		for _, r := range rounds {
			if again, ok := r.Metric(m.Name); ok {
				values = append(values, again.Value)
			}
		}
		rows = append(rows, table.Row{m.Name, figure(bench.Median(values)), m.Unit})
	}
	s.table(table.Row{rounds[0].Broker, "", ""}, rows)
}

func showRatios(s screen, c comparison) {
	var rows []table.Row
	for _, r := range c.Ratios {
		rows = append(rows, table.Row{
			r.Name, figure(r.First), figure(r.Second), r.Unit,
			s.paint(text.Colors{text.Bold}, figure(r.Ratio)), fmt.Sprintf("%s to %s", figure(r.Low), figure(r.High)),
		})
	}
	s.table(table.Row{"", c.First[0].Broker, c.Second[0].Broker, "", "ratio", "of the rounds"}, rows)
}

// figure writes three digits of a number, or all of them if it is large.
func figure(v float64) string {
	switch {
	case v >= 1000 || v <= -1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// showLateness prints the histogram of the last round.
func showLateness(s screen, rounds []bench.Result) {
	if len(rounds) == 0 {
		return
	}
	r := rounds[len(rounds)-1]
	if r.Lateness == nil || len(r.Histogram) == 0 {
		return
	}
	what := "Lateness"
	if r.Workload != "delay" {
		what = "From publishing to arrival"
	}
	s.printf("\n%s, %s: p50 %s, p99 %s, max %s, earliest %s ms\n", what, r.Broker,
		figure(r.Lateness.P50), figure(r.Lateness.P99), figure(r.Lateness.Max), figure(r.Lateness.Earliest))
	var most int64
	for _, b := range r.Histogram {
		most = max(most, b.Count)
	}
	for _, b := range r.Histogram {
		label := "≤ " + shortDuration(b.UpTo)
		if b.UpTo == 0 {
			label = "later"
		}
		s.printf("  %10s  %s %d\n", label, s.paint(text.Colors{text.FgCyan}, bar(b.Count, most)), b.Count)
	}
}

// eighths are the blocks that fill a cell from the left by so many eighths.
var eighths = [...]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar is a bar for n of most.
func bar(n, most int64) string {
	const longest = 40 // cells
	length := int(n * longest * 8 / max(most, 1))
	if n > 0 {
		length = max(length, 1)
	}
	return strings.Repeat("█", length/8) + eighths[length%8]
}
