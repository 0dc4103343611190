// Package cli is the command line of Dormouse: one file per command, each of which reads its flags, calls the library or
// the broker, and says what happened, in words or as JSON. Nothing here reads the process's arguments, environment or
// signals; all of that is handed in.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Environment is what a command may touch of the process that runs it.
type Environment struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(name string) string
}

// Run runs the command that args (without the program's name) ask for, and returns the exit code of the process. When
// ctx ends, the command stops as soon as it can without leaving anything behind.
func Run(ctx context.Context, env Environment, args []string) int {
	root := newRoot(env)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		fmt.Fprintln(env.Stderr, "dormouse: interrupted")
		if said := err.Error(); !strings.HasSuffix(said, context.Canceled.Error()) && !strings.HasSuffix(said, context.Cause(ctx).Error()) {
			fmt.Fprintf(env.Stderr, "  %s\n", said) // what the command could not undo
		}
		return ExitInterrupted
	}
	return report(env, command, err)
}

func newRoot(env Environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "dormouse",
		Short: "Delayed messages, bounded retries and a parking lot for RabbitMQ",
		Long: `Dormouse gives RabbitMQ messages that arrive later, retries that wait longer each
time and stop, and a parking lot for what cannot be processed. It needs no plugin,
and brings a broker of its own for a machine that has none.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the broker cannot be reached or does
not let us in, 130 interrupted.`,
		Example: `  dormouse demo                                       see all of it at work, nothing needed
  dormouse serve                                      run a broker on 127.0.0.1:5672
  dormouse declare --queue email                      make the delay ladder and a work queue
  dormouse publish --queue email --delay 30s "hello"  publish what arrives in 30 seconds`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		Version:       readVersion().Version,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	root.AddCommand(
		newServe(env),
		newCheck(env),
		newDemo(env),
		newDeclare(env),
		newPublish(env),
		newParked(env),
		newRetry(env),
		newBench(env),
		newVersion(env),
	)
	reflowHelp(root)
	return root
}

// unknownCommand refuses what is not a command. It does not repeat what looks like a URL, which may hold a password.
func unknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if strings.Contains(args[0], "://") {
		return usagef("a command is expected before the URL, and the URL belongs to --url")
	}
	if similar := root.SuggestionsFor(args[0]); len(similar) > 0 {
		return usagef("there is no command %q; did you mean %s?", args[0], strings.Join(similar, " or "))
	}
	return usagef("there is no command %q", args[0])
}

// noArguments is the Args of commands that take flags only. It does not repeat the argument, which may be a URL.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("this command takes flags and no arguments")
	}
	return nil
}
