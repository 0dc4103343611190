package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dormousemq/dormouse"
)

func newPublish(env Environment) *cobra.Command {
	var client clientFlags
	var flags publishFlags
	cmd := &cobra.Command{
		Use:   "publish [body]",
		Short: "Publish a message, at once or after a delay",
		Long: `Publish sends a message to an exchange or straight to a queue, and says when the broker
has confirmed that it is stored. With a delay it goes by the delay ladder, and reaches
the exchange or queue when it is due, with its own routing key.

The body is the argument, the file of --file, or what comes on standard input.`,
		Example: `  dormouse publish --queue email --delay 30s "hello"
  dormouse publish --exchange orders --key order.unpaid --file order.json --at "$(date -d tomorrow +%FT09:00:00%:z)"
  echo hello | dormouse publish --queue email --header lang=en --count 100`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("the body is one argument; put it in quotes")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			message, err := flags.message(env, args)
			if err != nil {
				return err
			}
			return client.use(cmd.Context(), env, func(ctx context.Context, c *dormouse.Client) error {
				return publish(ctx, env, c, message, flags.count, client.json)
			})
		},
	}
	client.add(cmd)
	flags.add(cmd)
	return cmd
}

type publishFlags struct {
	queue, exchange, key string
	delay                delayValue
	at                   string
	file                 string
	headers              []string
	count                int
	priority             uint8
	ttl                  delayValue
	transient            bool

	contentType, messageID, correlationID, replyTo, kind string
}

func (f *publishFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.queue, "queue", "", "the queue that gets the message")
	flags.StringVar(&f.exchange, "exchange", "", "the exchange that gets the message")
	flags.StringVar(&f.key, "key", "", "the routing key, with --exchange")
	flags.Var(&f.delay, "delay", "how long the message waits, such as 500ms, 30s, 1h30m, 7d")
	flags.StringVar(&f.at, "at", "", "when the message is due, RFC 3339, such as 2027-01-31T09:00:00+01:00")
	flags.StringVar(&f.file, "file", "", "read the body from this file")
	flags.StringArrayVar(&f.headers, "header", nil, "a header, NAME=VALUE, a string (repeatable)")
	flags.IntVar(&f.count, "count", 1, "publish it so many times")
	flags.StringVar(&f.contentType, "content-type", "", "the property content_type")
	flags.StringVar(&f.messageID, "message-id", "", "the property message_id (default: a new one)")
	flags.StringVar(&f.correlationID, "correlation-id", "", "the property correlation_id")
	flags.StringVar(&f.replyTo, "reply-to", "", "the property reply_to")
	flags.StringVar(&f.kind, "type", "", "the property type")
	flags.Uint8Var(&f.priority, "priority", 0, "the property priority")
	flags.Var(&f.ttl, "ttl", "how long the message may wait in its queue; not with a delay")
	flags.BoolVar(&f.transient, "transient", false, "the message need not survive a restart of the broker; not with a delay")
}

// message is what the flags and the argument say.
func (f *publishFlags) message(env Environment, args []string) (dormouse.Message, error) {
	m := dormouse.Message{
		Exchange: f.exchange, RoutingKey: f.key,
		After: time.Duration(f.delay), TTL: time.Duration(f.ttl), Priority: f.priority, Transient: f.transient,
		ContentType: f.contentType, MessageID: f.messageID, CorrelationID: f.correlationID, ReplyTo: f.replyTo, Type: f.kind,
	}
	switch {
	case f.queue == "" && f.exchange == "":
		return m, usagef("where to? --queue or --exchange is needed")
	case f.queue != "" && (f.exchange != "" || f.key != ""):
		return m, usagef("--queue goes without --exchange and --key")
	case f.queue != "":
		m.RoutingKey = f.queue
	}
	switch {
	case f.count < 1:
		return m, usagef("--count is at least 1")
	case f.count > 1 && f.messageID != "":
		return m, usagef("--message-id is for one message, not for --count %d", f.count)
	case f.at != "" && f.delay != 0:
		return m, usagef("either --delay or --at")
	case (f.at != "" || f.delay != 0) && (f.ttl != 0 || f.transient):
		return m, usagef("a delayed message is persistent and waits in its queue for ever: --ttl and --transient do not go with a delay")
	case f.at != "":
		at, err := time.Parse(time.RFC3339Nano, f.at)
		if err != nil {
			return m, usagef("--at %q is not a time such as 2027-01-31T09:00:00Z or 2027-01-31T09:00:00+01:00", f.at)
		}
		m.At = at
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return m, usagef("--header %q is not NAME=VALUE", h)
		}
		if m.Headers == nil {
			m.Headers = map[string]any{}
		}
		m.Headers[name] = value
	}
	var err error
	m.Body, err = readBody(env, f.file, args)
	return m, err
}

func readBody(env Environment, file string, args []string) ([]byte, error) {
	switch {
	case len(args) > 0 && file != "":
		return nil, usagef("either a body or --file")
	case len(args) > 0:
		return []byte(args[0]), nil
	case file != "":
		return os.ReadFile(file)
	}
	if in, ok := env.Stdin.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		return nil, usagef("give the body as an argument, by --file, or on standard input")
	}
	return io.ReadAll(env.Stdin)
}

// published is what `dormouse publish --json` prints for each message.
type published struct {
	ID         string     `json:"id"`
	Exchange   string     `json:"exchange"`
	RoutingKey string     `json:"routing_key"`
	Due        *time.Time `json:"due,omitempty"`
	Confirmed  bool       `json:"confirmed"`
	Error      string     `json:"error,omitempty"`
}

// publish sends the message count times, as fast as the broker confirms, and prints the fate of each in order.
func publish(ctx context.Context, env Environment, c *dormouse.Client, m dormouse.Message, count int, asJSON bool) error {
	type sent struct {
		due          time.Time
		confirmation *dormouse.Confirmation
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	onTheirWay := make(chan sent, 1000)
	go func() {
		defer close(onTheirWay)
		for range count {
			due := m.At
			if m.After > 0 {
				due = time.Now().Add(m.After)
			}
			select {
			case onTheirWay <- sent{due, c.PublishAsync(ctx, m)}:
			case <-ctx.Done():
				return
			}
		}
	}()
	var failed int
	var first error
	for s := range onTheirWay {
		err := s.confirmation.Wait(ctx)
		if err != nil {
			failed++
			first = cmp.Or(first, err)
			if !asJSON {
				continue
			}
		}
		p := published{ID: s.confirmation.MessageID(), Exchange: m.Exchange, RoutingKey: m.RoutingKey, Confirmed: err == nil}
		if !s.due.IsZero() {
			due := s.due.Round(time.Millisecond)
			p.Due = &due
		}
		if err != nil {
			p.Error = err.Error()
		}
		if asJSON {
			if err := printJSON(env.Stdout, p); err != nil {
				return err
			}
			continue
		}
		when := "now"
		if p.Due != nil {
			when = "due " + p.Due.Format(time.RFC3339)
		}
		fmt.Fprintf(env.Stdout, "%s confirmed, %s\n", p.ID, when)
	}
	if failed > 1 {
		return fmt.Errorf("%d of %d messages were not confirmed: %w", failed, count, first)
	}
	return first
}
