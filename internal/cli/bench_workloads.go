package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse/internal/bench"
)

func newBenchThroughput(env Environment) *cobra.Command {
	var f benchFlags
	var o throughputFlags
	var modes, pairs []string
	var sizes []int
	cmd := &cobra.Command{
		Use:   "throughput",
		Short: "How much goes through while it is published as fast as the broker takes it",
		Long: `Throughput publishes to a queue as fast as the broker takes it, and consumes at the same
time. The rate is the number of messages by the time from the first publish to the last
arrival, so what piles up counts against it. Every combination of --mode, --size and
--pairs is measured.`,
		Example: `  dormouse bench throughput --vs amqp://guest:guest@127.0.0.1:5672/ --vs-pid "$(pgrep beam.smp)"
  dormouse bench throughput --mode confirmed --size 100,1024 --pairs 1x1,4x4
  dormouse bench throughput --mode transient --ack auto --client amqp091 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []workload
			for _, mode := range modes {
				for _, size := range sizes {
					for _, pair := range pairs {
						w, err := o.workload(mode, size, pair)
						if err != nil {
							return err
						}
						all = append(all, w)
					}
				}
			}
			return f.run(cmd.Context(), env, all, nil)
		},
	}
	f.add(cmd)
	o.add(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&modes, "mode", []string{"transient", "persistent", "confirmed"}, "transient, persistent, or confirmed (persistent with confirms)")
	flags.IntSliceVar(&sizes, "size", []int{defaultSize}, "of a body, in bytes")
	flags.StringSliceVar(&pairs, "pairs", []string{"1x1"}, "producers x consumers")
	flags.IntVar(&o.queues, "queues", 1, "how many queues; producers take turns, and each queue has its consumers")
	flags.Int64Var(&o.messages, "messages", 0, "publish so many, however long it takes")
	return cmd
}

// throughputFlags are what does not vary from case to case.
type throughputFlags struct {
	queues, inFlight, prefetch int
	ack, queueType             string
	duration                   time.Duration
	messages                   int64
}

func (o *throughputFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&o.inFlight, "in-flight", defaultInFlight, "how many messages of a producer may wait for their confirm")
	flags.IntVar(&o.prefetch, "prefetch", defaultPrefetch, "how many messages of a consumer may be unacknowledged")
	flags.StringVar(&o.ack, "ack", string(bench.AckEach), "each, many (several at a time) or auto (the broker does not wait for any)")
	queueTypeFlag(cmd, &o.queueType)
	flags.DurationVar(&o.duration, "duration", defaultDuration, "how long to publish")
}

func queueTypeFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "queue-type", "classic", "classic or quorum")
}

func (o *throughputFlags) workload(mode string, size int, pair string) (bench.Throughput, error) {
	w := bench.Throughput{
		Mode: bench.Mode(mode), Size: size, Queues: o.queues, QueueType: o.queueType,
		InFlight: o.inFlight, Prefetch: o.prefetch, Duration: o.duration, Messages: o.messages,
	}
	var rest string
	if n, _ := fmt.Sscanf(pair, "%dx%d%s", &w.Producers, &w.Consumers, &rest); n != 2 || w.Producers < 1 || w.Consumers < 1 || w.Producers >= bench.MaxProducers {
		return w, usagef("--pairs %q is not a number of producers and one of consumers, such as 4x4", pair)
	}
	switch w.Mode {
	case bench.Transient, bench.Persistent, bench.Confirmed:
	default:
		return w, usagef("--mode %q is not transient, persistent or confirmed", mode)
	}
	if o.messages < 0 || o.messages == 0 && o.duration <= 0 {
		return w, usagef("--duration and --messages are more than 0")
	}
	if err := positive(map[string]int{"--queues": w.Queues, "--in-flight": w.InFlight, "--prefetch": w.Prefetch}); err != nil {
		return w, err
	}
	if err := checkSize(size); err != nil {
		return w, err
	}
	if _, err := parseQueueType("--queue-type", o.queueType); err != nil {
		return w, err
	}
	var err error
	w.Verdict, err = parseVerdict(o.ack)
	return w, err
}

func newBenchDelay(env Environment) *cobra.Command {
	var f benchFlags
	w := bench.Delay{}
	var ways []string
	var ack string
	var least, most delayValue = delayValue(100 * time.Millisecond), delayValue(10 * time.Second)
	cmd := &cobra.Command{
		Use:   "delay",
		Short: "How late delayed messages arrive, and how fast",
		Long: `Delay publishes messages that are due later, and says how late they arrive: the median,
the 99th percentile, the most, and the earliest, which is never before its time.

The ways are lane (a queue with a time to live, whose dead letters go to a work queue;
all wait as long as --delay), ladder (the delay ladder, which is declared under a name of
its own) and x-delayed (an exchange of type x-delayed-message), both with random delays
from --least to --delay. With --burst all messages are due at one moment, --delay after
the beginning.`,
		Example: `  dormouse bench delay --way lane,ladder,x-delayed --messages 10000 --rate 1000
  dormouse bench delay --way lane --burst --messages 100000 --delay 10s
  dormouse bench delay --way x-delayed --ahead 1000000 --least 1s --rate 5000 --messages 100000`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.Least, w.Most = time.Duration(least), time.Duration(most)
			var err error
			if w.Verdict, err = parseVerdict(ack); err != nil {
				return err
			}
			var all []workload
			for _, way := range ways {
				w.Way = bench.Way(way)
				if err := checkDelay(w); err != nil {
					return err
				}
				all = append(all, w)
			}
			return f.run(cmd.Context(), env, all, nil)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&ways, "way", []string{"lane"}, "lane, ladder or x-delayed")
	flags.BoolVar(&w.Burst, "burst", false, "all messages are due at one moment; not with the ladder")
	flags.Var(&least, "least", "the shortest delay")
	flags.Var(&most, "delay", "the longest delay, and that of a lane")
	flags.Int64Var(&w.Messages, "messages", defaultMessages, "how many messages")
	flags.Float64Var(&w.Rate, "rate", 0, "messages a second (default as fast as the broker takes them)")
	flags.Int64Var(&w.Ahead, "ahead", 0, "so many more messages wait, due in an hour to a year; not in a lane")
	flags.IntVar(&w.Size, "size", defaultSize, "of a body, in bytes")
	flags.IntVar(&w.Consumers, "consumers", 1, "how many consumers")
	flags.IntVar(&w.Prefetch, "prefetch", defaultPrefetch, "how many messages of a consumer may be unacknowledged")
	flags.IntVar(&w.InFlight, "in-flight", 1000, "how many messages may wait for their confirm")
	flags.StringVar(&ack, "ack", string(bench.AckEach), "each, many (several at a time) or auto (the broker does not wait for any)")
	queueTypeFlag(cmd, &w.QueueType)
	return cmd
}

func checkDelay(w bench.Delay) error {
	switch w.Way {
	case bench.Lane, bench.Ladder, bench.Delayed:
	default:
		return usagef("--way %q is not lane, ladder or x-delayed", w.Way)
	}
	switch {
	case w.Most <= 0 || w.Least > w.Most:
		return usagef("--delay is more than 0, and --least is not more than it")
	case w.Messages < 1:
		return usagef("--messages is at least 1")
	case w.Rate < 0 || w.Ahead < 0:
		return usagef("--rate and --ahead are not negative")
	case w.Burst && w.Way == bench.Ladder:
		return usagef("--burst is for the ways lane and x-delayed: a ladder rounds to tenths of a second")
	case w.Ahead > 0 && w.Way == bench.Lane:
		return usagef("--ahead is for the ways ladder and x-delayed: in a lane it would hold up all messages behind it")
	}
	if err := checkSize(w.Size); err != nil {
		return err
	}
	if _, err := parseQueueType("--queue-type", w.QueueType); err != nil {
		return err
	}
	return positive(map[string]int{"--consumers": w.Consumers, "--prefetch": w.Prefetch, "--in-flight": w.InFlight})
}

func newBenchReject(env Environment) *cobra.Command {
	var f benchFlags
	w := bench.Reject{}
	cmd := &cobra.Command{
		Use:   "reject",
		Short: "How fast rejected messages reach a dead-letter queue",
		Long: `Reject fills a queue with persistent messages, rejects all of them, and measures the time
until the last is in the dead-letter queue, where they are counted.`,
		Example: `  dormouse bench reject --messages 100000 --vs amqp://guest:guest@127.0.0.1:5672/`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.Messages < 1 {
				return usagef("--messages is at least 1")
			}
			if err := checkSize(w.Size); err != nil {
				return err
			}
			if _, err := parseQueueType("--queue-type", w.QueueType); err != nil {
				return err
			}
			if err := positive(map[string]int{"--consumers": w.Consumers, "--prefetch": w.Prefetch}); err != nil {
				return err
			}
			return f.run(cmd.Context(), env, []workload{w}, nil)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.Int64Var(&w.Messages, "messages", defaultMessages, "how many messages")
	flags.IntVar(&w.Size, "size", defaultSize, "of a body, in bytes")
	flags.IntVar(&w.Consumers, "consumers", 1, "how many consumers")
	flags.IntVar(&w.Prefetch, "prefetch", defaultPrefetch, "how many messages of a consumer may be unacknowledged")
	queueTypeFlag(cmd, &w.QueueType)
	return cmd
}

func newBenchBacklog(env Environment) *cobra.Command {
	var f benchFlags
	var r restartFlags
	w := bench.Backlog{}
	var ways []string
	most := delayValue(30 * 24 * time.Hour)
	cmd := &cobra.Command{
		Use:   "backlog",
		Short: "What messages cost that wait: publish rate, memory, disk, restart time",
		Long: `Backlog publishes messages that nobody consumes: to a queue (--way queue), to a queue with a
time to live (lane), or to an exchange of type x-delayed-message with random delays
(x-delayed). It says how fast that goes at the beginning and at the end, and what memory and
disk they take. Then it restarts the broker and measures the time to the first message.

A broker that bench has started itself is restarted after an orderly end and after kill -9.
Another is restarted by the shell commands of --stop and --start, if they are given; its
memory needs --pid and its disk space --data.`,
		Example: `  dormouse bench backlog --way queue,lane,x-delayed --messages 1000000
  dormouse bench backlog --way x-delayed --messages 10000000 --size 256 --delay 365d
  dormouse bench backlog --url amqp://localhost/ --stop "rabbitmqctl stop_app" --start "rabbitmqctl start_app"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.Most = time.Duration(most)
			var all []workload
			for _, way := range ways {
				w.Way = bench.Way(way)
				if err := checkBacklog(w, r); err != nil {
					return err
				}
				all = append(all, w)
			}
			return f.run(cmd.Context(), env, all, &r)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&ways, "way", []string{"queue"}, "queue, lane or x-delayed")
	flags.Int64Var(&w.Messages, "messages", 1_000_000, "how many messages")
	flags.IntVar(&w.Size, "size", defaultSize, "of a body, in bytes")
	flags.Var(&most, "delay", "the longest delay, and that of a lane; the shortest is half of it")
	flags.IntVar(&w.InFlight, "in-flight", 1000, "how many messages may wait for their confirm")
	queueTypeFlag(cmd, &w.QueueType)
	flags.StringVar(&r.data, "data", "", "the data folder of the broker of --url, to tell the disk space")
	flags.StringVar(&r.vsData, "vs-data", "", "the data folder of the broker of --vs")
	flags.StringVar(&r.stop, "stop", "", "a shell command that stops the broker of --url")
	flags.StringVar(&r.start, "start", "", "a shell command that starts it")
	flags.StringVar(&r.vsStop, "vs-stop", "", "a shell command that stops the broker of --vs")
	flags.StringVar(&r.vsStart, "vs-start", "", "a shell command that starts it")
	return cmd
}

func checkBacklog(w bench.Backlog, r restartFlags) error {
	switch w.Way {
	case bench.Queue, bench.Lane, bench.Delayed:
	default:
		return usagef("--way %q is not queue, lane or x-delayed", w.Way)
	}
	switch {
	case w.Messages < 1:
		return usagef("--messages is at least 1")
	case w.Most < time.Minute:
		return usagef("--delay is at least a minute: the messages are to wait")
	case (r.stop == "") != (r.start == "") || (r.vsStop == "") != (r.vsStart == ""):
		return usagef("a command that stops a broker goes with one that starts it")
	}
	if err := checkSize(w.Size); err != nil {
		return err
	}
	if _, err := parseQueueType("--queue-type", w.QueueType); err != nil {
		return err
	}
	return positive(map[string]int{"--in-flight": w.InFlight})
}

func newBenchIdle(env Environment) *cobra.Command {
	var f benchFlags
	var o throughputFlags
	w := bench.Idle{}
	var size int
	cmd := &cobra.Command{
		Use:   "idle",
		Short: "What many idle queues, connections and channels cost, and a busy pair beside them",
		Long: `Idle makes many queues, connections and channels that have nothing to do, as many consumers as
there are queues and channels for, and says what memory they take (the broker's process must be
known) and how much the throughput of one busy producer and consumer suffers.`,
		Example: `  dormouse bench idle --queues 10000 --connections 2000 --channels 20000`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.queues = 1
			busy, err := o.workload(string(bench.Confirmed), size, "1x1")
			if err != nil {
				return err
			}
			w.Busy = busy
			if err := positive(map[string]int{"--queues": w.Queues, "--connections": w.Connections}); err != nil {
				return err
			}
			if w.Channels < w.Connections {
				return usagef("--channels is at least --connections: each has one")
			}
			return f.run(cmd.Context(), env, []workload{w}, nil)
		},
	}
	f.add(cmd)
	o.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&w.Queues, "queues", 10_000, "how many queues")
	flags.IntVar(&w.Connections, "connections", 2000, "how many connections")
	flags.IntVar(&w.Channels, "channels", 20_000, "how many channels on them")
	flags.IntVar(&size, "size", defaultSize, "of a body of the busy pair, in bytes")
	return cmd
}
