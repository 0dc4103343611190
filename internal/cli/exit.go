package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of every command.
const (
	ExitOK          = 0
	ExitFailure     = 1   // the command was understood, and failed
	ExitUsage       = 2   // the command was not understood: unknown flags, values that cannot be
	ExitBroker      = 3   // the broker cannot be reached, or does not let us in
	ExitInterrupted = 130 // ended by a signal before it was done
)

// usageError marks an error of the command line itself.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// brokerError marks a broker that cannot be reached or does not let us in.
type brokerError struct{ error }

func (e brokerError) Unwrap() error { return e.error }

// hintedError is an error with what to do about it.
type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }

func hint(err error, format string, args ...any) error {
	return hintedError{err, fmt.Sprintf(format, args...)}
}

// report prints the error, if any, with what to do about it, and returns the exit code.
func report(env Environment, command *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	fmt.Fprintf(env.Stderr, "dormouse: %s\n", once(strings.TrimPrefix(err.Error(), "dormouse: "))) // the library says it too
	if hinted, ok := errors.AsType[hintedError](err); ok {
		fmt.Fprintf(env.Stderr, "  %s\n", hinted.hint)
	}
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(env.Stderr, "  See: %s --help\n", command.CommandPath())
		return ExitUsage
	}
	if _, ok := errors.AsType[brokerError](err); ok {
		return ExitBroker
	}
	return ExitFailure
}

// once leaves out the lines that say again how an earlier one ends, as when both connections of a client fail alike.
func once(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.ContainsFunc(lines, func(earlier string) bool { return strings.HasSuffix(earlier, line) }) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
