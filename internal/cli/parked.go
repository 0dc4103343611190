package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse"
)

func newParked(env Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "parked",
		Short: "Look at, send on or discard what could not be processed",
		Long: `A message whose attempts are used up lies in the parking lot of its work queue, the queue
NAME.parked. Looking at it uses nothing up, but while a command looks nobody else can
get what it looks at.`,
		Example: `  dormouse parked list email
  dormouse parked show email fec998f0b2a74c1d8f0a6d3b9c2e7a15
  dormouse parked redrive email --all --rate 50`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("parked does list, show, redrive and discard, not %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newParkedList(env), newParkedShow(env), newParkedRedrive(env), newParkedDiscard(env))
	return cmd
}

func newParkedList(env Environment) *cobra.Command {
	var client clientFlags
	var limit int
	cmd := &cobra.Command{
		Use:     "list QUEUE",
		Short:   "List the parking lot of a work queue, oldest first",
		Example: "  dormouse parked list email --limit 20",
		Args:    workQueue(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usagef("--limit is 0 (no limit) or more")
			}
			return client.use(cmd.Context(), env, func(ctx context.Context, c *dormouse.Client) error {
				return listParked(ctx, env, c, args[0], limit, client.json)
			})
		},
	}
	client.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 50, "list at most so many; 0 means all")
	return cmd
}

func listParked(ctx context.Context, env Environment, c *dormouse.Client, queue string, limit int, asJSON bool) error {
	selection := dormouse.Selection{Limit: limit}
	if limit > 0 {
		selection.Limit++ // one more tells whether there are more
	}
	var rows []table.Row
	listed := 0
	for m, err := range c.Parked(ctx, queue, selection) {
		if err != nil {
			return err
		}
		if listed++; limit > 0 && listed > limit {
			break
		}
		if asJSON {
			if err := printJSON(env.Stdout, parkedJSON(m)); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, table.Row{printable(m.ID), printable(m.RoutingKey), m.Attempts, m.Reason, printable(m.Error), shortTime(m.FirstTime)})
	}
	if asJSON {
		return nil
	}
	s := newScreen(env, env.Stdout)
	if len(rows) == 0 {
		s.printf("nothing is parked for %s\n", queue)
		return nil
	}
	s.table(table.Row{"id", "routing key", "attempts", "reason", "error", "first failed"}, rows)
	if listed > len(rows) {
		s.printf("and more; --limit 0 lists all\n")
	}
	return nil
}

func newParkedShow(env Environment) *cobra.Command {
	var client clientFlags
	cmd := &cobra.Command{
		Use:     "show QUEUE ID",
		Short:   "Show one parked message with its headers and body",
		Example: "  dormouse parked show email fec998f0b2a74c1d8f0a6d3b9c2e7a15",
		Args:    workQueue(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return client.use(cmd.Context(), env, func(ctx context.Context, c *dormouse.Client) error {
				for m, err := range c.Parked(ctx, args[0], dormouse.Selection{Match: dormouse.MatchID(args[1]), Limit: 1}) {
					if err != nil {
						return err
					}
					if client.json {
						return printJSON(env.Stdout, parkedJSON(m))
					}
					showMessage(newScreen(env, env.Stdout), m)
					return nil
				}
				return notParked(args[0], args[1])
			})
		},
	}
	client.add(cmd)
	return cmd
}

func notParked(queue, id string) error {
	return hint(fmt.Errorf("no message %q is parked for %s", id, queue), "`dormouse parked list %s` lists what is.", queue)
}

func showMessage(s screen, m *dormouse.ParkedMessage) {
	for _, line := range [][2]string{
		{"id", m.ID},
		{"queue", m.Queue},
		{"reason", string(m.Reason)},
		{"error", m.Error},
		{"attempts", fmt.Sprint(m.Attempts)},
		{"first failed", shortTime(m.FirstTime)},
		{"exchange", m.Exchange},
		{"routing key", m.RoutingKey},
		{"content type", m.ContentType},
		{"correlation id", m.CorrelationID},
		{"type", m.Type},
	} {
		if line[1] != "" {
			s.printf("%-15s %s\n", line[0], printable(line[1]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		s.printf("%-15s %v\n", "header "+printable(name), printable(fmt.Sprint(m.Headers[name])))
	}
	if m.Stack != "" {
		s.printf("\npanicked at\n%s", lines(m.Stack))
	}
	s.printf("\n")
	if utf8.Valid(m.Body) {
		s.printf("%s", lines(string(m.Body)))
	} else {
		s.printf("%d bytes that are not text; --json shows them in base64\n", len(m.Body))
	}
}

// lines is a text of several lines with nothing in it that could move the cursor.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(printable(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")) + "\n")
	}
	return b.String()
}

// picking are the flags that say which parked messages are meant.
type picking struct {
	all    bool
	reason string
	limit  int
}

func (p *picking) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.all, "all", false, "all messages instead of those named")
	cmd.Flags().StringVar(&p.reason, "reason", "", "with --all: only those parked for this reason\n(error, timeout, panic, crash, rejected)")
	cmd.Flags().IntVar(&p.limit, "limit", 0, "with --all: at most so many")
}

// reasons are what a message is parked for.
var reasons = []dormouse.Reason{
	dormouse.ReasonError, dormouse.ReasonTimeout, dormouse.ReasonPanic, dormouse.ReasonCrash, dormouse.ReasonRejected,
}

func (p *picking) selection(ids []string) (dormouse.Selection, error) {
	switch {
	case p.all && len(ids) > 0:
		return dormouse.Selection{}, usagef("--all means every message: leave out the ids, or --all")
	case !p.all && len(ids) == 0:
		return dormouse.Selection{}, usagef("which ones? Name their ids after the queue, or give --all")
	case !p.all && (p.reason != "" || p.limit != 0):
		return dormouse.Selection{}, usagef("--reason and --limit go with --all")
	case p.reason != "" && !slices.Contains(reasons, dormouse.Reason(p.reason)):
		return dormouse.Selection{}, usagef("--reason %s: it is one of %s", p.reason, reasons)
	case p.limit < 0:
		return dormouse.Selection{}, usagef("--limit is 0 (no limit) or more")
	case p.all && p.reason == "":
		return dormouse.Selection{Limit: p.limit}, nil
	case p.all:
		return dormouse.Selection{Limit: p.limit, Match: func(m *dormouse.ParkedMessage) bool { return string(m.Reason) == p.reason }}, nil
	}
	return dormouse.Selection{Match: func(m *dormouse.ParkedMessage) bool { return slices.Contains(ids, m.ID) }}, nil
}

func newParkedRedrive(env Environment) *cobra.Command {
	var options dormouse.RedriveOptions
	cmd := newParkedEnd(env, "redrive", "sent back to its work queue", func(ctx context.Context, c *dormouse.Client, queue string, s dormouse.Selection) (dormouse.Tally, error) {
		return c.Redrive(ctx, queue, s, options)
	})
	cmd.Short = "Send parked messages back to their work queue, attempts reset"
	cmd.Example = "  dormouse parked redrive email fec998f0b2a74c1d8f0a6d3b9c2e7a15\n  dormouse parked redrive email --all --reason timeout --rate 50"
	cmd.Flags().Float64Var(&options.Rate, "rate", 0, "at most so many a second; 0 means no bound")
	return cmd
}

func newParkedDiscard(env Environment) *cobra.Command {
	cmd := newParkedEnd(env, "discard", "discarded", func(ctx context.Context, c *dormouse.Client, queue string, s dormouse.Selection) (dormouse.Tally, error) {
		return c.DiscardParked(ctx, queue, s)
	})
	cmd.Short = "Remove parked messages for ever"
	cmd.Example = "  dormouse parked discard email fec998f0b2a74c1d8f0a6d3b9c2e7a15\n  dormouse parked discard email --all --reason rejected"
	return cmd
}

// newParkedEnd makes a command that takes messages out of a parking lot.
func newParkedEnd(env Environment, name, done string,
	end func(context.Context, *dormouse.Client, string, dormouse.Selection) (dormouse.Tally, error),
) *cobra.Command {
	var client clientFlags
	var pick picking
	cmd := &cobra.Command{
		Use:  name + " QUEUE [ID...]",
		Args: workQueue(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			selection, err := pick.selection(args[1:])
			if err != nil {
				return err
			}
			return client.use(cmd.Context(), env, func(ctx context.Context, c *dormouse.Client) error {
				tally, err := end(ctx, c, args[0], selection)
				if err != nil {
					return fmt.Errorf("%d %s, then: %w", tally.Done, done, err)
				}
				if client.json {
					err = printJSON(env.Stdout, map[string]int{"done": tally.Done, "kept": tally.Kept})
				} else {
					fmt.Fprintf(env.Stdout, "%d %s, %d stay parked\n", tally.Done, done, tally.Kept)
				}
				if err == nil && tally.Done < len(args)-1 {
					return fmt.Errorf("%d of the %d named are not parked for %s", len(args)-1-tally.Done, len(args)-1, args[0])
				}
				return err
			})
		},
	}
	client.add(cmd)
	pick.add(cmd)
	return cmd
}

// workQueue is the Args of commands that take a work queue and then exactly more arguments, or any number when more is -1.
func workQueue(more int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] == "" {
			return usagef("the name of the work queue is needed")
		}
		if more >= 0 && len(args)-1 != more {
			return usagef("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// parkedMessage is what `dormouse parked list --json` and `show --json` print for each message.
type parkedMessage struct {
	ID          string         `json:"id"`
	Queue       string         `json:"queue"`
	Reason      string         `json:"reason"`
	Error       string         `json:"error"`
	Attempts    int            `json:"attempts"`
	Stack       string         `json:"stack,omitempty"`
	FirstTime   *time.Time     `json:"first_time,omitempty"`
	Exchange    string         `json:"exchange"`
	RoutingKey  string         `json:"routing_key"`
	ContentType string         `json:"content_type,omitempty"`
	Headers     map[string]any `json:"headers,omitempty"`
	Body        *string        `json:"body,omitempty"`        // when it is text
	BodyBase64  []byte         `json:"body_base64,omitempty"` // when it is not
}

func parkedJSON(m *dormouse.ParkedMessage) parkedMessage {
	p := parkedMessage{
		ID: m.ID, Queue: m.Queue, Reason: string(m.Reason), Error: m.Error, Stack: m.Stack, Attempts: m.Attempts,
		Exchange: m.Exchange, RoutingKey: m.RoutingKey, ContentType: m.ContentType, Headers: m.Headers,
	}
	if !m.FirstTime.IsZero() {
		p.FirstTime = &m.FirstTime
	}
	if utf8.Valid(m.Body) {
		text := string(m.Body)
		p.Body = &text
	} else {
		p.BodyBase64 = m.Body
	}
	return p
}

func shortTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}
