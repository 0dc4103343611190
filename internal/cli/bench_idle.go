package cli

import (
	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse/internal/bench"
)

func newBenchIdle(env Environment) *cobra.Command {
	var f benchFlags
	var o throughputFlags
	w := bench.Idle{}
	var size int
	cmd := &cobra.Command{
		Use:   "idle",
		Short: "What idle queues, connections and channels cost",
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
