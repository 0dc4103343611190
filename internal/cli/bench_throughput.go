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
		Short: "How many messages go through in a second",
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
