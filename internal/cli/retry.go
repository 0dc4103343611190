package cli

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse"
	"github.com/dormousemq/dormouse/config"
	"github.com/dormousemq/dormouse/internal/duration"
)

func newRetry(env Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "retry",
		Short:   "Look at how failed messages are tried again",
		Example: "  dormouse retry schedule --steps 10s,1m,10m",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("retry does schedule, not %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRetrySchedule(env))
	return cmd
}

func newRetrySchedule(env Environment) *cobra.Command {
	var flags policyFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Print when each attempt of a retry policy comes",
		Long: `Schedule prints when each attempt comes and what happens after the last, for the policy
of a queue in a dormouse.yaml or for one given by flags. It needs no broker.

The times count from the first attempt and leave out how long the attempts themselves
take. With jitter each wait is longer by a random part of up to that fraction; the table
shows the shortest and the longest.`,
		Example: `  dormouse retry schedule --config dormouse.yaml --queue email
  dormouse retry schedule --steps 10s,1m,10m
  dormouse retry schedule --attempts 8 --first 1s --max 1h --jitter 0.1`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			p, err := flags.policy()
			if err != nil {
				return err
			}
			return printSchedule(env, p, asJSON)
		},
	}
	flags.add(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// policyFlags are the flags that give a retry policy, or the file and the queue that have one.
type policyFlags struct {
	config, queue  string
	attempts       int
	steps          []string
	first, longest delayValue
	factor, jitter float64
	exhausted      string
}

func (f *policyFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "the dormouse.yaml that has the policy")
	flags.StringVar(&f.queue, "queue", "", "with --config: the queue whose policy it is")
	flags.IntVar(&f.attempts, "attempts", 0, "at most so many attempts, the first included\n(default with --steps: one more than there are steps)")
	flags.StringSliceVar(&f.steps, "steps", nil, "the waits, such as 10s,1m,10m; the last repeats")
	flags.Var(&f.first, "first", "the first wait; each further one is --factor times longer")
	flags.Float64Var(&f.factor, "factor", 0, "how many times longer (default 2)")
	flags.Var(&f.longest, "max", "no wait is longer")
	flags.Float64Var(&f.jitter, "jitter", 0, "lengthen each wait by a random part of up to this fraction, 0 to 1")
	flags.StringVar(&f.exhausted, "exhausted", string(dormouse.ExhaustedPark), "what happens after the last attempt, park or discard")
}

func (f *policyFlags) policy() (dormouse.RetryPolicy, error) {
	if f.config != "" {
		return f.fromFile()
	}
	p := dormouse.RetryPolicy{
		MaxAttempts: f.attempts, Exhausted: dormouse.Exhausted(f.exhausted),
		First: time.Duration(f.first), Factor: f.factor, Max: time.Duration(f.longest), Jitter: f.jitter,
	}
	for _, s := range f.steps {
		d, err := duration.Parse(s)
		if err != nil {
			return p, usagef("--steps: %w", err)
		}
		p.Steps = append(p.Steps, d)
	}
	if p.MaxAttempts == 0 && len(p.Steps) > 0 {
		p.MaxAttempts = len(p.Steps) + 1
	}
	if err := p.Validate(); err != nil {
		return p, usageError{err}
	}
	return p, nil
}

func (f *policyFlags) fromFile() (dormouse.RetryPolicy, error) {
	if f.attempts != 0 || len(f.steps) > 0 || f.first != 0 || f.factor != 0 || f.longest != 0 || f.jitter != 0 {
		return dormouse.RetryPolicy{}, usagef("either --config or a policy by flags")
	}
	if f.queue == "" {
		return dormouse.RetryPolicy{}, usagef("--config needs --queue: whose policy?")
	}
	file, err := config.Load(f.config)
	if err != nil {
		return dormouse.RetryPolicy{}, err
	}
	o, ok := file.Consumers[f.queue]
	if !ok {
		return dormouse.RetryPolicy{}, fmt.Errorf("%s has no queue %q with a retry policy", f.config, f.queue)
	}
	return o.Retry, nil
}

// scheduled is what `dormouse retry schedule --json` prints for each attempt. The times are in milliseconds.
type scheduled struct {
	Attempt int `json:"attempt"`
	// Wait is that before the attempt, without and with all jitter; After is how long after the first attempt it comes.
	Wait         int64 `json:"wait_ms"`
	LongestWait  int64 `json:"longest_wait_ms"`
	After        int64 `json:"after_ms"`
	LatestAfter  int64 `json:"latest_after_ms"`
	NextIsTheEnd bool  `json:"last"`
}

func printSchedule(env Environment, p dormouse.RetryPolicy, asJSON bool) error {
	waits := append([]time.Duration{0}, p.Schedule()...)
	var rows []table.Row
	var after, latest time.Duration
	for i, wait := range waits {
		longest := wait + time.Duration(float64(wait)*p.Jitter)
		after, latest = after+wait, latest+longest
		if asJSON {
			err := printJSON(env.Stdout, scheduled{
				Attempt: i + 1, Wait: wait.Milliseconds(), LongestWait: longest.Milliseconds(),
				After: after.Milliseconds(), LatestAfter: latest.Milliseconds(), NextIsTheEnd: i == len(waits)-1,
			})
			if err != nil {
				return err
			}
			continue
		}
		rows = append(rows, table.Row{i + 1, span(wait, longest), span(after, latest)})
	}
	if asJSON {
		return nil
	}
	s := newScreen(env, env.Stdout)
	s.table(table.Row{"attempt", "waits", "after the first"}, rows)
	what := "parked"
	if p.Exhausted == dormouse.ExhaustedDiscard {
		what = "discarded"
	}
	s.printf("then the message is %s\n", what)
	return nil
}

// span is a time, or two when they differ.
func span(least, most time.Duration) string {
	if least == most {
		return duration.Format(least)
	}
	return duration.Format(least) + " to " + duration.Format(most)
}
