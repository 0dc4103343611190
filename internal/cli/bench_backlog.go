package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse/internal/bench"
)

func newBenchBacklog(env Environment) *cobra.Command {
	var f benchFlags
	var r restartFlags
	w := bench.Backlog{}
	var ways []string
	most := delayValue(30 * 24 * time.Hour)
	cmd := &cobra.Command{
		Use:   "backlog",
		Short: "What waiting messages cost: memory, disk, restart",
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
