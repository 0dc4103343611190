// Command dormouse sends messages through RabbitMQ that arrive later, and runs a broker of its own. Run it without
// arguments to see what it can do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/dormousemq/dormouse/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal asks, the second ends the process at once
	os.Exit(cli.Run(ctx, cli.Environment{
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Getenv: os.Getenv,
	}, os.Args[1:]))
}
