package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse"
	"github.com/dormousemq/dormouse/internal/cli/demo"
)

func newDemo(env Environment) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See delays, retries and the parking lot at work, and check them",
		Long: `Demo publishes messages with random delays of 0.1 to 5 seconds, some to a topic exchange
and some straight to a queue, and handles them with a worker that fails in every way a
worker can: some messages fail twice, some run past their deadline, some make it panic,
and some never succeed and are parked after four attempts with growing waits.

Every message is accounted for by what was really received. The exit code is 0 only
when each one was delivered or parked, none was early, and each kept its routing key.

Without a URL the demo starts a broker of its own, in a temporary folder, on a free
port. With one (--url or $` + urlVariable + `) it uses that broker: it makes the delay ladder if
it is not there, which stays, and queues and an exchange of its own, which it deletes.
A ladder has lanes of one type; for lanes of the other type give it another --prefix.`,
		Example: `  dormouse demo
  dormouse demo --url amqp://guest:guest@127.0.0.1:5672/ --messages 2000
  dormouse demo --url amqp://guest:guest@127.0.0.1:5672/ --queue-type classic --prefix trial
  dormouse demo --json | tail -n 1`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), env, o) },
	}
	urlFlag(cmd, &o.url)
	jsonFlag(cmd, &o.json)
	cmd.Flags().Lookup("url").Usage = "use this broker (default $" + urlVariable + ", else a broker of the demo's own)"
	cmd.Flags().IntVar(&o.messages, "messages", 300, "how many messages to publish")
	cmd.Flags().StringVar(&o.queueType, "queue-type", "quorum", "quorum or classic, for the queues and the lanes of the ladder")
	prefixFlag(cmd, &o.prefix)
	return cmd
}

type demoOptions struct {
	url       string
	messages  int
	json      bool
	queueType string
	prefix    string
}

func runDemo(ctx context.Context, env Environment, o demoOptions) (err error) {
	kind, err := parseQueueType("--queue-type", o.queueType)
	if err != nil {
		return err
	}
	if o.messages < 1 {
		return usagef("--messages is at least 1")
	}
	url, err := resolveURL(env, o.url, "")
	if err != nil {
		return err
	}
	if url != "" {
		return demonstrate(ctx, env, o.demonstration(url, kind))
	}
	own, err := startEmbedded()
	if err != nil {
		return fmt.Errorf("start a broker for the demonstration: %w", err)
	}
	d := o.demonstration(own.url, kind)
	d.own = true
	return errors.Join(demonstrate(ctx, env, d), own.stop())
}

// demonstration is a demo whose broker is known and whose flags have been checked.
type demonstration struct {
	url      brokerURL
	own      bool // the broker is the demo's own
	messages int
	json     bool
	kind     dormouse.QueueType
	prefix   string
}

func (o demoOptions) demonstration(url brokerURL, kind dormouse.QueueType) demonstration {
	return demonstration{url: url, messages: o.messages, json: o.json, kind: kind, prefix: o.prefix}
}

func demonstrate(ctx context.Context, env Environment, d demonstration) error {
	out := newScreen(env, env.Stdout)
	if d.json {
		out = newScreen(env, env.Stderr) // the object is the last and only thing on standard output
	}
	through := d.url.String()
	if d.own {
		through = "a broker of their own"
	}

	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	id := fmt.Sprintf("%06x", random.IntN(1<<24))
	courier, err := connectDemo(ctx, d, id)
	if err != nil {
		return err
	}
	defer courier.Close()
	introduceDemo(out, d.messages, through)
	plan := demo.Plan(d.messages, id, random)
	run := demo.New(courier, plan)
	run.Disposable = d.own

	watching, done := context.WithCancel(ctx)
	var view sync.WaitGroup
	view.Go(func() { watchDemo(watching, out, run, demo.Expect(plan)) })
	report, err := run.Do(ctx)
	done()
	view.Wait()
	if mismatch, ok := errors.AsType[*dormouse.MismatchError](err); ok && mismatch.Property == "x-queue-type" {
		return hint(err, "With --queue-type %s the demo uses the ladder that is there; with --prefix and another name it makes its own.", mismatch.Have)
	}
	if err != nil {
		return d.url.explain(err)
	}
	showReport(out, report)
	if report.Left != nil {
		fmt.Fprintf(env.Stderr, "dormouse: not all queues of the demonstration (dormouse.demo.%s.*) could be removed: %v\n", id, report.Left)
	}
	if d.json {
		if err := printJSON(env.Stdout, report.Result); err != nil {
			return err
		}
	}
	if err := report.Result.Err(); err != nil {
		return fmt.Errorf("the demonstration did not pass: %w", err)
	}
	return nil
}

func connectDemo(ctx context.Context, d demonstration, id string) (*demo.Rabbit, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	courier, err := demo.Connect(ctx, demo.Settings{URL: string(d.url), Run: id, Kind: d.kind, Prefix: d.prefix})
	if err != nil {
		return nil, d.url.explain(err)
	}
	return courier, nil
}
