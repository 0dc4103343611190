// Command dormouse sends messages through RabbitMQ that arrive later, and runs a broker of its own. Run it without
// arguments to see what it can do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dormousemq/dormouse/internal/cli"
)

// oneKeystroke is how long a signal may come again for the same reason: a terminal and a parent process both pass it on.
const oneKeystroke = 250 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { // the first signal asks, the second ends the process at once
		time.AfterFunc(oneKeystroke, stop)
	})
	os.Exit(cli.Run(ctx, cli.Environment{
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Getenv: os.Getenv,
	}, os.Args[1:]))
}
