package main

import (
	_ "embed"
	"fmt"
	"io"
	"path"
	"strings"
)

// reasonsText has a line "SUITE<tab>TEST<tab>reason" for tests that differ between brokers or fail on all, TEST with * and ?.
//
//go:embed reasons.txt
var reasonsText string

// reason says why a test of a suite differs or fails, as far as it is known.
func reason(suite, test string) string {
	for line := range strings.Lines(reasonsText) {
		fields := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(fields) != 3 || fields[0] != suite {
			continue
		}
		// In a name / is a letter like others, which path.Match does not let * stand for.
		if ok, err := path.Match(strings.ReplaceAll(fields[1], "/", "|"), strings.ReplaceAll(test, "/", "|")); err == nil && ok {
			return fields[2]
		}
	}
	return "not explained yet"
}

// writeText prints the counts and the tests that differ.
func writeText(w io.Writer, brokers []broker, runs []comparison) {
	for _, run := range runs {
		fmt.Fprintf(w, "%s\n", run.suite.name)
		for i, b := range brokers {
			fmt.Fprintf(w, "  %-16s %s\n", b.name, run.results[i].count())
		}
		for _, name := range run.differing() {
			fmt.Fprintf(w, "  differs: %s:", name)
			for i, b := range brokers {
				fmt.Fprintf(w, " %s %s", b.name, run.results[i].of(name))
			}
			fmt.Fprintf(w, " (%s)\n", reason(run.suite.name, name))
		}
	}
}

const introduction = `# Other clients' test suites

Test suites of AMQP 0-9-1 clients, written by others for RabbitMQ, run on Dormouse and on RabbitMQ. This page is what
` + "`go run ./internal/interop/suites compare all --markdown docs/clients.md`" + ` writes; ` + "`suites list`" + ` says what is needed for it.
What passes on RabbitMQ is to pass on Dormouse; each test that differs has a row.

`

// writeMarkdown writes the comparison as a page.
func writeMarkdown(w io.Writer, brokers []broker, runs []comparison) {
	fmt.Fprint(w, introduction)
	header := func(first string) {
		fmt.Fprintf(w, "| %s |", first)
		for _, b := range brokers {
			fmt.Fprintf(w, " %s |", b.name)
		}
	}
	header("suite")
	fmt.Fprintf(w, "\n| --- |%s\n", strings.Repeat(" --- |", len(brokers)))
	for _, run := range runs {
		fmt.Fprintf(w, "| %s: %s |", run.suite.name, run.suite.about)
		for _, r := range run.results {
			fmt.Fprintf(w, " %s |", r.count())
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "\n## Tests that differ\n")
	for _, run := range runs {
		if len(run.differing()) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n### %s\n\n", run.suite.name)
		header("test")
		fmt.Fprintf(w, " reason |\n| --- |%s --- |\n", strings.Repeat(" --- |", len(brokers)))
		for _, name := range run.differing() {
			fmt.Fprintf(w, "| %s |", cell(name))
			for _, r := range run.results {
				fmt.Fprintf(w, " %s |", r.of(name))
			}
			fmt.Fprintf(w, " %s |\n", reason(run.suite.name, name))
		}
	}
	fmt.Fprint(w, "\n## Tests that fail on every broker\n\n| suite | test | reason |\n| --- | --- | --- |\n")
	for _, run := range runs {
		for _, name := range run.failing() {
			fmt.Fprintf(w, "| %s | %s | %s |\n", run.suite.name, cell(name), reason(run.suite.name, name))
		}
	}
}

// cell is a test's name in a cell of a table.
func cell(name string) string {
	return "`" + strings.NewReplacer("|", "¦", "`", "'", "\n", " ").Replace(name) + "`"
}
