package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestReflow(t *testing.T) {
	long := "One two three\nfour five.\n\nSix:\n  kept as it is, however long\nseven\neight"
	want := "One two three four\nfive.\n\nSix:\n  kept as it is, however long\nseven eight"
	if got := reflow(long, 20); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// No text of a command is wider than a terminal; examples are what one types, as long as that is.
func TestHelpFitsATerminal(t *testing.T) {
	root := newRoot(Environment{Stdin: strings.NewReader(""), Getenv: func(string) string { return "" }})
	checkHelp(t, root)
}

func checkHelp(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	said := strings.Replace(cmd.UsageString(), cmd.Example, "", 1) + cmd.Long
	for line := range strings.SplitSeq(said, "\n") {
		if len([]rune(line)) > plainWidth {
			t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len([]rune(line)), line)
		}
	}
	for _, sub := range cmd.Commands() {
		checkHelp(t, sub)
	}
}
