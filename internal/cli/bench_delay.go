package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse/internal/bench"
)

func newBenchDelay(env Environment) *cobra.Command {
	var f benchFlags
	w := bench.Delay{}
	var ways []string
	var ack string
	least, most := delayValue(100*time.Millisecond), delayValue(10*time.Second)
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
