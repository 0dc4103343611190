package conformance

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var reportTo = flag.String("report", "", "the file that TestReport writes")

// column is one broker of the report with its results, in the order of their names.
type column struct {
	target
	results []result
}

// TestReport runs the cases on all brokers and writes what it has seen. It fails where the embedded broker differs from
// RabbitMQ 4.3 and the case has no reason.
func TestReport(t *testing.T) {
	if *reportTo == "" {
		t.Skip("no -report: nothing is to be written")
	}
	brokers := append([]target{startEmbedded(t)}, realBrokers(t)...)
	var columns []column
	for _, to := range brokers {
		var results []result
		t.Run(to.heading(), func(t *testing.T) { results = runAll(t, to) })
		columns = append(columns, column{to, results})
	}
	for _, c := range columns {
		t.Log(c.count())
	}
	for _, name := range unexplained(columns) {
		t.Errorf("%s: the embedded broker differs from RabbitMQ %s and the case has no reason", name, v43)
	}
	if err := os.WriteFile(*reportTo, []byte(report(columns)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (t target) heading() string {
	if t.embedded {
		return "embedded"
	}
	return t.version.String()
}

func (c column) tally() (passed, skipped int) {
	for _, r := range c.results {
		switch {
		case r.skipped != "":
			skipped++
		case r.passed:
			passed++
		}
	}
	return passed, skipped
}

func (c column) count() string {
	passed, skipped := c.tally()
	text := fmt.Sprintf("%s: %d of %d as expected", c.heading(), passed, len(c.results)-skipped)
	if skipped > 0 {
		text += fmt.Sprintf(", %d do not apply", skipped)
	}
	return text
}

// unexplained are the cases in which the embedded broker differs from 4.3 without a reason.
func unexplained(columns []column) (names []string) {
	for _, rabbit := range columns {
		if rabbit.embedded || rabbit.version != v43 {
			continue
		}
		for i := range rabbit.results {
			here, there := &columns[0].results[i], &rabbit.results[i]
			if here.deviation == "" && len(differences(here, there)) > 0 {
				names = append(names, here.name)
			}
		}
	}
	return names
}

// What a reader sees of results that were made up for it.
func TestReportTellsDifferences(t *testing.T) {
	result := func(got, deviation string) []result {
		return []result{{name: "subject/case", passed: true, deviation: deviation, seen: []observation{{"a", "same"}, {"b", got}}}}
	}
	columns := func(got, deviation string) []column {
		return []column{
			{target{embedded: true, version: v43}, result(got, deviation)}, {target{version: v40, release: "4.0.5"}, result("older", "")},
			{target{version: v43, release: "4.3.5"}, result("newer", "")},
		}
	}
	for _, c := range []struct {
		got, deviation string
		want           int
	}{{"newer", "", 0}, {"other", "", 1}, {"other", "it is better", 0}} {
		if got := unexplained(columns(c.got, c.deviation)); len(got) != c.want {
			t.Errorf("%q with reason %q: %d differences without a reason, want %d", c.got, c.deviation, len(got), c.want)
		}
	}
	text := report(columns("other", "it is better"))
	for _, want := range []string{
		"- It is better (subject/case).", "| case | ≠ | ≠ | ✓ |", "  - b: embedded saw `other`; 4.0 saw `older`; 4.3 saw `newer`\n  - why embedded differs: it is better\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// report is the text of docs/conformance.md.
func report(columns []column) string {
	var b strings.Builder
	b.WriteString(`# Conformance

<!-- Written by TestReport of internal/conformance. Its package documentation says how; do not edit. -->

The cases of ` + "`internal/conformance`" + ` are small AMQP programs with an expected observation. They run the same on the
embedded broker and on real RabbitMQ. The embedded broker is expected to do what RabbitMQ 4.3 does.

| broker | cases | as expected | do not apply |
| --- | ---: | ---: | ---: |
`)
	for _, c := range columns {
		passed, skipped := c.tally()
		name := "embedded"
		if !c.embedded {
			name = "RabbitMQ " + c.release
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", name, len(c.results), passed, skipped)
	}
	b.WriteString("\n## Where the embedded broker differs from RabbitMQ 4.3 on purpose\n\n")
	deviations(&b, columns)
	b.WriteString(`
## All cases

` + "✓ as the reference, ≠ other than the reference (what was seen follows the table), – does not apply, ✗ not as expected. The\n" +
		"reference is the last column that is a RabbitMQ.\n")
	subjects(&b, columns)
	return b.String()
}

// deviations lists the reasons with the cases that state them.
func deviations(b *strings.Builder, columns []column) {
	by := map[string][]string{}
	var reasons []string
	for _, r := range columns[0].results {
		if r.deviation == "" {
			continue
		}
		if by[r.deviation] == nil {
			reasons = append(reasons, r.deviation)
		}
		by[r.deviation] = append(by[r.deviation], r.name)
	}
	for _, reason := range reasons {
		fmt.Fprintf(b, "- %s (%s).\n", capital(reason), strings.Join(by[reason], "; "))
	}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// subjects writes a table for each subject, which is the first part of a case's name.
func subjects(b *strings.Builder, columns []column) {
	var notes strings.Builder
	last := ""
	for i := range columns[0].results {
		subject, rest, _ := strings.Cut(columns[0].results[i].name, "/")
		if subject != last {
			writeNotes(b, &notes)
			last = subject
			fmt.Fprintf(b, "\n### %s\n\n| case |", subject)
			for _, c := range columns {
				fmt.Fprintf(b, " %s |", c.heading())
			}
			b.WriteString("\n| --- |" + strings.Repeat(" :-: |", len(columns)) + "\n")
		}
		fmt.Fprintf(b, "| %s |", strings.ReplaceAll(rest, "|", `\|`))
		reference := &columns[len(columns)-1].results[i]
		for _, c := range columns {
			fmt.Fprintf(b, " %s |", mark(&c.results[i], reference))
		}
		b.WriteString("\n")
		note(&notes, rest, i, columns)
	}
	writeNotes(b, &notes)
}

func writeNotes(b, notes *strings.Builder) {
	if notes.Len() > 0 {
		b.WriteString("\n" + notes.String())
		notes.Reset()
	}
}

func mark(r, reference *result) string {
	switch {
	case r.skipped != "":
		return "–"
	case !r.passed:
		return "✗"
	case len(differences(r, reference)) > 0:
		return "≠"
	}
	return "✓"
}

// note writes what differs between the brokers in one case, and why as far as the case says.
func note(b *strings.Builder, title string, i int, columns []column) {
	var lines []string
	differs := map[string]bool{}
	for _, c := range columns {
		r := &c.results[i]
		for _, d := range differences(r, &columns[len(columns)-1].results[i]) {
			if !differs[d.what] {
				differs[d.what] = true
				lines = append(lines, fmt.Sprintf("  - %s: %s", d.what, seenBy(columns, i, d.what)))
			}
		}
		if r.skipped != "" {
			lines = append(lines, fmt.Sprintf("  - does not apply to %s: %s", c.heading(), r.skipped))
		}
		if r.deviation != "" {
			lines = append(lines, fmt.Sprintf("  - why %s differs: %s", c.heading(), r.deviation))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "- **%s**\n%s\n", title, strings.Join(lines, "\n"))
	}
}

// seenBy tells which brokers saw what in one case.
func seenBy(columns []column, i int, what string) string {
	by := map[string][]string{}
	var order []string
	for _, c := range columns {
		got := quoted(c.results[i].all(what))
		if by[got] == nil {
			order = append(order, got)
		}
		by[got] = append(by[got], c.heading())
	}
	for n, got := range order {
		order[n] = strings.Join(by[got], ", ") + " saw " + got
	}
	return strings.Join(order, "; ")
}

func quoted(s string) string {
	s = strings.ReplaceAll(s, "\n", " ⏎ ")
	switch {
	case s == "":
		return "nothing"
	case strings.Contains(s, "`"):
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}
