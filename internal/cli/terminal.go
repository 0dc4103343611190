package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// A screen is where a command writes to people: with colour and movement on a terminal, as plain lines elsewhere.
type screen struct {
	io.Writer
	terminal bool // lines may be redrawn
	colour   bool
	width    int // columns
}

const plainWidth = 80

// newScreen looks at w. NO_COLOR (any value) and TERM=dumb are respected.
func newScreen(env Environment, w io.Writer) screen {
	s := screen{Writer: w, width: plainWidth}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || env.Getenv("TERM") == "dumb" {
		return s
	}
	s.terminal = true
	s.colour = env.Getenv("NO_COLOR") == ""
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		s.width = width
	}
	return s
}

func (s screen) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// paint returns the text in the colours, or as it is where there is no colour.
func (s screen) paint(colours text.Colors, v any) string {
	if !s.colour {
		return fmt.Sprint(v)
	}
	return colours.Sprint(v)
}

// table prints the rows under the headings.
func (s screen) table(headings table.Row, rows []table.Row) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options.SeparateRows = false
	t.Style().Options.DrawBorder = false
	t.Style().Format.Header = text.FormatDefault
	t.SuppressTrailingSpaces()
	t.AppendHeader(headings)
	t.AppendRows(rows)
	if s.terminal {
		t.SetColumnConfigs([]table.ColumnConfig{s.fit(headings, rows)})
	}
	fmt.Fprintln(s, t.Render())
}

// leastColumn is how narrow a column may be made to fit a table into the screen.
const leastColumn = 16

// columnGap is what stands between two columns: a space, a line, a space.
const columnGap = 3

// fit wraps the widest column so that the rows fit into the screen.
func (s screen) fit(headings table.Row, rows []table.Row) table.ColumnConfig {
	widths := make([]int, len(headings))
	for _, row := range append([]table.Row{headings}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], text.LongestLineLen(fmt.Sprint(cell)))
		}
	}
	all, widest := 0, 0
	for i, w := range widths {
		all += w + columnGap
		if w > widths[widest] {
			widest = i
		}
	}
	room := max(leastColumn, widths[widest]-max(0, all-s.width))
	return table.ColumnConfig{Number: widest + 1, WidthMax: room, WidthMaxEnforcer: text.WrapSoft}
}

// printable returns the text without what could move the cursor or forge lines on a terminal: messages come from others.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// printJSON prints v on a line of its own.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
