package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse"
)

const (
	connectTimeout = 15 * time.Second
	closeTimeout   = 5 * time.Second
)

// clientFlags are the flags of every command that talks to a broker by the library.
type clientFlags struct {
	url    string
	prefix string
	json   bool
}

func (f *clientFlags) add(cmd *cobra.Command) {
	urlFlag(cmd, &f.url)
	jsonFlag(cmd, &f.json)
	prefixFlag(cmd, &f.prefix)
}

func prefixFlag(cmd *cobra.Command, prefix *string) {
	cmd.Flags().StringVar(prefix, "prefix", "dormouse", "what the names of the ladder begin with")
}

// use connects, hands the client to do, and closes the connection in order. The context of do ends when the connection
// is lost: somebody waits at the prompt, and may try again. Errors say what to do about them.
func (f *clientFlags) use(ctx context.Context, env Environment, do func(context.Context, *dormouse.Client) error) error {
	url, err := resolveURL(env, f.url, defaultURL)
	if err != nil {
		return err
	}
	working, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	client, err := dormouse.Connect(connecting, string(url), dormouse.Options{
		Prefix: f.prefix,
		Name:   "dormouse",
		Hooks: dormouse.Hooks{
			Reconnect: func(e dormouse.ReconnectEvent) {
				lose(brokerError{fmt.Errorf("the connection to %s was lost: %w", url, e.Err)})
			},
			Blocked: func(e dormouse.BlockedEvent) {
				if e.Blocked {
					fmt.Fprintf(env.Stderr, "dormouse: the broker takes no messages for now (%s); waiting\n", printable(e.Reason))
				}
			},
		},
	})
	if err != nil {
		return url.explain(err)
	}
	if err := do(working, client); err != nil {
		_ = client.Close()
		if lost, ok := errors.AsType[brokerError](context.Cause(working)); ok {
			err = lost
		}
		return url.explain(err)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return url.explain(client.Shutdown(closing))
}
