package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/check"
)

func newCheck(env Environment) *cobra.Command {
	var data string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what is in a data folder, and whether it is sound",
		Long: `Check reads the data folder of a broker that does not run, and changes nothing in it.
It says what is there, and whether it is sound: the checksums of all files, the
counters of each queue against its messages, definitions, and messages that belong
to nobody or cannot be decoded. It ends with 1 if something is wrong.`,
		Example: `  dormouse check --data /var/lib/dormouse
  dormouse check --data /var/lib/dormouse --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCheck(cmd.Context(), env, data, asJSON) },
	}
	cmd.Flags().StringVar(&data, "data", "", "the data folder (required)")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func runCheck(ctx context.Context, env Environment, data string, asJSON bool) error {
	if data == "" {
		return usagef("which data folder? Name it by --data")
	}
	out := newScreen(env, env.Stderr)
	r, err := check.Folder(data, func(done, all int) {
		if out.terminal && ctx.Err() == nil {
			fmt.Fprintf(out, "\rchecked %d of %d MiB", done>>20, all>>20)
		}
	})
	if out.terminal {
		fmt.Fprint(out, "\r\x1b[K")
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, broker.ErrInUse):
		return hint(fmt.Errorf("the data folder %s is in use", data), "End the broker that has it open, or check a copy of the folder.")
	case errors.Is(err, fs.ErrNotExist):
		return hint(fmt.Errorf("%s is no data folder", data), "--data takes the folder that dormouse serve was given.")
	case err != nil:
		return err
	}
	if asJSON {
		err = printJSON(env.Stdout, r)
	} else {
		printReport(env, r)
	}
	if err == nil && !r.Sound {
		return hint(fmt.Errorf("the data folder %s is not sound", data),
			"Keep a copy of it. A broker that starts on it mends what it can, and sets damaged files aside in its folder \"damaged\"; if it refuses to start, restore the folder from a copy.")
	}
	return err
}

func printReport(env Environment, r *check.Report) {
	w := env.Stdout
	for _, kind := range slices.Sorted(maps.Keys(r.Definitions)) {
		fmt.Fprintf(w, "%-20s %d\n", kind, r.Definitions[kind])
	}
	fmt.Fprintf(w, "%-20s %d\n", "messages", r.Messages)
	fmt.Fprintf(w, "%-20s %d, %d bytes\n", "files", r.Files, r.Bytes)
	for _, q := range r.Queues {
		fmt.Fprintf(w, "\n%s in vhost %s (%s): %d messages, %d bytes", printable(q.Name), printable(q.VHost), q.Type, q.Messages, q.Bytes)
	}
	if len(r.Queues) > 0 {
		fmt.Fprintln(w)
	}
	for _, f := range r.SetAside {
		fmt.Fprintf(w, "set aside earlier: damaged/%s\n", f)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "problem: %s\n", p)
	}
	if r.Sound {
		fmt.Fprintln(w, "sound")
	}
}
