package cli

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// usageTemplate is cobra's, with the flags' texts wrapped.
func usageTemplate(cobras string) string {
	return strings.NewReplacer(
		".LocalFlags.FlagUsages", fmt.Sprintf("(.LocalFlags.FlagUsagesWrapped %d)", plainWidth),
		".InheritedFlags.FlagUsages", fmt.Sprintf("(.InheritedFlags.FlagUsagesWrapped %d)", plainWidth),
	).Replace(cobras)
}

// reflowHelp wraps the long texts of a command and of those below it.
func reflowHelp(cmd *cobra.Command) {
	cmd.Long = reflow(cmd.Long, plainWidth)
	for _, sub := range cmd.Commands() {
		reflowHelp(sub)
	}
}

// reflow wraps the paragraphs of a text anew. Indented lines stay as they are.
func reflow(long string, width int) string {
	var out, paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			for line := range strings.SplitSeq(text.WrapSoft(strings.Join(paragraph, " "), width), "\n") {
				out = append(out, strings.TrimRight(line, " "))
			}
			paragraph = nil
		}
	}
	for line := range strings.SplitSeq(long, "\n") {
		if line != "" && !strings.HasPrefix(line, " ") {
			paragraph = append(paragraph, line)
			continue
		}
		flush()
		out = append(out, line)
	}
	flush()
	return strings.Join(out, "\n")
}
