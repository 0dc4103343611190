package cli

import (
	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse/internal/bench"
)

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
