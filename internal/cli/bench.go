package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse/internal/bench"
)

func newBench(env Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a broker, or two in turns",
		Long: `Bench measures a broker: how much goes through, how late delayed messages are, how fast
rejected ones reach a dead-letter queue, what a backlog costs, what idle clients cost.
With --vs it measures two brokers in turns and prints the ratio of each figure, the
first by the second, with the least and the greatest of the rounds.

Without --url and $` + urlVariable + ` it starts a broker of its own, as a process of its own
with its data in a temporary folder. What it declares on a broker it deletes again,
also when it is interrupted; the names begin with dormouse.bench.

Every message is accounted for. Where messages were lost, came twice or before their
time, it says so and the exit code is 1.`,
		Example: `  dormouse bench throughput --vs amqp://guest:guest@127.0.0.1:5672/
  dormouse bench delay --way ladder --messages 10000 --rate 1000
  dormouse bench backlog --way queue --messages 1000000`,
		Args: unknownBench,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newBenchThroughput(env),
		newBenchDelay(env),
		newBenchReject(env),
		newBenchBacklog(env),
		newBenchIdle(env),
	)
	return cmd
}

func unknownBench(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("there are the measurements throughput, delay, reject, backlog and idle")
}

// benchFlags are the flags of every measurement.
type benchFlags struct {
	url, vs    string
	pid, vsPID int
	client     string
	rounds     int
	json       bool
}

func (f *benchFlags) add(cmd *cobra.Command) {
	urlFlag(cmd, &f.url)
	jsonFlag(cmd, &f.json)
	flags := cmd.Flags()
	flags.Lookup("url").Usage = "measure this broker (default $" + urlVariable + ", else one that is started for it)"
	flags.StringVar(&f.vs, "vs", "", "measure this broker too, in turns")
	flags.IntVar(&f.pid, "pid", 0, "the process id of the broker of --url, to tell its CPU time and memory")
	flags.IntVar(&f.vsPID, "vs-pid", 0, "the process id of the broker of --vs")
	flags.StringVar(&f.client, "client", "raw", "what makes the load: raw (frames, many at a time) or amqp091 (amqp091-go)")
	flags.IntVar(&f.rounds, "rounds", 0, "how often to measure (default 1, with --vs 3)")
}

// A workload is a measurement with all its settings.
type workload interface {
	Name() string
	Run(ctx context.Context, t bench.Target) (bench.Result, error)
}

// restartFlags are the flags of measurements that restart brokers.
type restartFlags struct{ data, vsData, stop, vsStop, start, vsStart string }

// contender is a broker to be measured.
type contender struct {
	url     brokerURL
	own     *ownBroker // nil if it is not ours
	process bench.Process
	restart []bench.Restart
}

func (c *contender) String() string {
	if c.own != nil {
		return "dormouse"
	}
	return c.url.String()
}

func (c *contender) target(client bench.Client, progress *bench.Progress) bench.Target {
	t := bench.Target{URL: string(c.url), Client: client, Process: c.process, Restarts: c.restart, Progress: progress}
	if c.own != nil {
		t.URL, t.Process, t.Disposable = c.own.url, c.own.process(), true
	}
	return t
}

// run measures all the workloads and prints what was found. restarts is nil for those that do not restart.
func (f benchFlags) run(ctx context.Context, env Environment, workloads []workload, restarts *restartFlags) (err error) {
	clients := map[string]bench.Client{"raw": bench.Raw{}, "amqp091": bench.Library{}}
	client := clients[f.client]
	switch {
	case client == nil:
		return usagef("--client %q is neither raw nor amqp091", f.client)
	case f.rounds < 0:
		return usagef("--rounds is at least 1")
	case f.vsPID != 0 && f.vs == "":
		return usagef("--vs-pid goes with --vs")
	}
	contenders, err := f.contenders(ctx, env, restarts)
	defer func() {
		for _, c := range contenders {
			if c.own != nil {
				err = errors.Join(err, c.own.remove())
			}
		}
	}()
	if err != nil {
		return err
	}
	b := benchmark{env: env, client: client, contenders: contenders, rounds: f.rounds, json: f.json}
	if b.rounds == 0 {
		b.rounds = 2*len(contenders) - 1
	}
	return b.run(ctx, workloads)
}

func (f benchFlags) contenders(ctx context.Context, env Environment, r *restartFlags) ([]*contender, error) {
	if r == nil {
		r = &restartFlags{}
	}
	url, err := resolveURL(env, f.url, "")
	if err != nil {
		return nil, err
	}
	one := &contender{url: url, process: bench.Process{ID: f.pid, Dir: r.data}, restart: commandRestart(string(url), r.stop, r.start)}
	if url == "" {
		if f.pid != 0 || *r != (restartFlags{vsData: r.vsData, vsStop: r.vsStop, vsStart: r.vsStart}) {
			return nil, usagef("--pid, --data, --stop and --start are for a broker of --url: of one that is started here they are known")
		}
		if one.own, err = startOwn(ctx); err != nil {
			return nil, err
		}
		one.restart = one.own.restarts()
	}
	if f.vs == "" {
		return []*contender{one}, nil
	}
	vs, err := resolveURL(env, f.vs, "")
	if err != nil {
		return []*contender{one}, err
	}
	two := &contender{url: vs, process: bench.Process{ID: f.vsPID, Dir: r.vsData}, restart: commandRestart(string(vs), r.vsStop, r.vsStart)}
	return []*contender{one, two}, nil
}

// benchmark is a bench whose flags have been checked.
type benchmark struct {
	env        Environment
	client     bench.Client
	contenders []*contender // one or two
	rounds     int
	json       bool
}

// comparison is what `dormouse bench --json` prints for each case.
type comparison struct {
	Workload string         `json:"workload"`
	Case     string         `json:"case"`
	First    []bench.Result `json:"first"`
	Second   []bench.Result `json:"second,omitempty"`
	Ratios   []bench.Ratio  `json:"ratios,omitempty"`
}

func (b benchmark) run(ctx context.Context, workloads []workload) error {
	var failures []error
	for _, w := range workloads {
		c, err := b.compare(ctx, w)
		if err != nil {
			return err
		}
		if b.json {
			err = printJSON(b.env.Stdout, c)
		} else {
			showComparison(newScreen(b.env, b.env.Stdout), c)
		}
		if err != nil {
			return err
		}
		for _, r := range append(c.First, c.Second...) {
			failures = append(failures, r.Err())
		}
	}
	return errors.Join(failures...)
}

// compare measures one case in all rounds, in each of which the brokers take turns; who is first changes.
func (b benchmark) compare(ctx context.Context, w workload) (comparison, error) {
	results := make([][]bench.Result, 2)
	for round := range b.rounds {
		for turn := range b.contenders {
			which := turn
			if round%2 == 1 {
				which = len(b.contenders) - 1 - turn
			}
			r, err := b.measure(ctx, w, b.contenders[which], round)
			if err != nil {
				return comparison{}, err
			}
			results[which] = append(results[which], r)
		}
	}
	first := results[0][0]
	return comparison{
		Workload: first.Workload, Case: first.Case,
		First: results[0], Second: results[1], Ratios: bench.Compare(results[0], results[1]),
	}, nil
}

func (b benchmark) measure(ctx context.Context, w workload, c *contender, round int) (bench.Result, error) {
	progress := &bench.Progress{}
	done := watchBench(newScreen(b.env, b.env.Stderr), fmt.Sprintf("%s, round %d of %d", c, round+1, b.rounds), w.Name(), progress)
	r, err := w.Run(ctx, c.target(b.client, progress))
	done()
	switch {
	case ctx.Err() != nil:
		return r, err
	case errors.Is(err, bench.ErrNoDelayedExchange):
		return r, hint(err, "RabbitMQ needs the plugin rabbitmq_delayed_message_exchange for it, which does not run on 4.3 and later. Leave the way x-delayed out, or measure that broker without --vs.")
	case err != nil:
		return r, fmt.Errorf("%s: %w", w.Name(), c.url.explain(err))
	}
	return r, nil
}

// positive refuses numbers that are not at least 1.
func positive(numbers map[string]int) error {
	for flag, n := range numbers {
		if n < 1 {
			return usagef("%s is at least 1", flag)
		}
	}
	return nil
}

func checkSize(size int) error {
	if size < bench.StampSize {
		return usagef("--size is at least %d bytes: each message carries its number and its time", bench.StampSize)
	}
	return nil
}

func parseVerdict(s string) (bench.Verdict, error) {
	switch v := bench.Verdict(s); v {
	case bench.AckEach, bench.AckMany, bench.AckAuto:
		return v, nil
	}
	return "", usagef("--ack %q is not each, many or auto", s)
}

const (
	defaultInFlight = 256
	defaultPrefetch = 256
	defaultSize     = 100
	defaultMessages = 100_000
	defaultDuration = 5 * time.Second
)
