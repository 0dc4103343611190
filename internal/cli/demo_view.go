package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dormousemq/dormouse/internal/cli/demo"
)

func introduceDemo(s screen, messages int, through string) {
	waits := demo.Waits()
	s.printf("%d messages with delays of 0.1 to 5 s, through %s.\n", messages, through)
	s.printf("A worker tries each at most %d times, with waits of %s, %s and %s and a deadline of %s.\n\n",
		demo.MaxAttempts, shortDuration(waits[0]), shortDuration(waits[1]), shortDuration(waits[2]), shortDuration(demo.Deadline))
}

// watchDemo shows how far the run has come until ctx ends: as bars on a terminal, else as a line every second.
func watchDemo(ctx context.Context, s screen, run *demo.Run, expected demo.Progress) {
	if s.terminal {
		watchBars(ctx, s, run, expected)
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p := run.Progress()
			s.printf("published %d  delivered %d  retries %d  given up %d\n", p.Published, p.Delivered, p.Retries, p.Exhausted)
		}
	}
}

func watchBars(ctx context.Context, s screen, run *demo.Run, expected demo.Progress) {
	bars := progress.NewWriter()
	bars.SetOutputWriter(s)
	bars.SetUpdateFrequency(100 * time.Millisecond)
	bars.SetTrackerLength(30)
	bars.SetMessageLength(10)
	bars.SetTrackerPosition(progress.PositionRight)
	bars.SetTerminalWidth(s.width)
	bars.SetStyle(progress.StyleBlocks)
	bars.Style().Visibility = progress.StyleVisibility{Tracker: true, Value: true}
	if s.colour {
		bars.Style().Colors = progress.StyleColorsExample
	}
	published := &progress.Tracker{Message: "published", Total: int64(expected.Published)}
	delivered := &progress.Tracker{Message: "delivered", Total: int64(expected.Delivered)}
	retries := &progress.Tracker{Message: "retried", Total: int64(expected.Retries)}
	givenUp := &progress.Tracker{Message: "given up", Total: int64(expected.Exhausted)}
	bars.AppendTrackers([]*progress.Tracker{published, delivered, retries, givenUp})

	update := func() {
		p := run.Progress()
		published.SetValue(int64(p.Published))
		delivered.SetValue(int64(p.Delivered))
		retries.SetValue(int64(p.Retries))
		givenUp.SetValue(int64(p.Exhausted))
	}
	rendered := make(chan struct{})
	go func() {
		defer close(rendered)
		bars.Render()
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		update()
	}
	bars.Stop()
	<-rendered
}

// showReport prints the account of a run for people.
func showReport(s screen, report demo.Report) {
	r := report.Result
	mark := func(n int, want bool) string {
		if want {
			return s.paint(text.Colors{text.FgGreen}, n)
		}
		return s.paint(text.Colors{text.FgRed, text.Bold}, n)
	}
	s.printf("\n")
	s.table(table.Row{"messages", "", ""}, []table.Row{
		{"published", r.Published, "confirmed by the broker"},
		{"delivered", r.Delivered, "in the end, with the routing key they were published with"},
		{"parked", r.Parked, "they failed at every attempt"},
		{"lost", mark(r.Lost, r.Lost == 0), "neither delivered nor parked"},
		{"early", mark(r.Early, r.Early == 0), "before their time"},
		{"wrong key", mark(r.WrongKey, r.WrongKey == 0), "another routing key or queue"},
		{"duplicates", r.Duplicates, "delivered once more; at-least-once allows it"},
		{"retries", r.Retries, "deliveries after the first attempt"},
	})
	s.printf("\nLateness of %d deliveries: p50 %.1f ms, p99 %.1f ms, max %.1f ms\n\n",
		counted(report.Lateness), r.Lateness.P50, r.Lateness.P99, r.Lateness.Max)
	showHistogram(s, report.Lateness)
	showParked(s, report.Parked)
	s.printf("\n")
	for _, problem := range report.Problems {
		s.printf("%s %s\n", s.paint(text.Colors{text.FgRed, text.Bold}, "!"), printable(problem))
	}
	if r.Err() == nil {
		s.printf("%s in %.1f s: each message was delivered or parked, none early, each with its own routing key.\n",
			s.paint(text.Colors{text.FgGreen, text.Bold}, "Passed"), report.Took.Seconds())
	}
}

func counted(buckets []demo.Bucket) (n int64) {
	for _, b := range buckets {
		n += b.Count
	}
	return n
}

func showHistogram(s screen, buckets []demo.Bucket) {
	var most int64
	for _, b := range buckets {
		most = max(most, b.Count)
	}
	for _, b := range buckets {
		label := "≤ " + shortDuration(b.UpTo)
		if b.UpTo == 0 {
			label = "later"
		}
		s.printf("  %10s  %s %d\n", label, s.paint(text.Colors{text.FgCyan}, bar(b.Count, most)), b.Count)
	}
}

func shortDuration(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%g s", d.Seconds())
	}
	return fmt.Sprintf("%g ms", float64(d)/float64(time.Millisecond))
}

// shownParked is how many parked messages the report lists.
const shownParked = 15

func showParked(s screen, parked []demo.Parked) {
	if len(parked) == 0 {
		return
	}
	s.printf("\nIn the parking lot:\n\n")
	var rows []table.Row
	for _, p := range parked[:min(len(parked), shownParked)] {
		rows = append(rows, table.Row{printable(p.ID), printable(p.Queue[strings.LastIndexByte(p.Queue, '.')+1:]), p.Attempts, s.paint(text.Colors{text.FgYellow}, p.Reason), printable(p.Error)})
	}
	s.table(table.Row{"message", "queue", "attempts", "reason", "error"}, rows)
	if more := len(parked) - shownParked; more > 0 {
		s.printf("and %d more\n", more)
	}
}
