package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse"
)

const (
	urlVariable = "DORMOUSE_URL"
	defaultURL  = brokerURL("amqp://guest:guest@127.0.0.1:5672/")
)

// A brokerURL says which broker a command talks to: one AMQP URL, or several separated by commas that lead to the same
// cluster. Printing it never shows a password.
type brokerURL string

func (u brokerURL) String() string {
	var shown []string
	for one := range strings.SplitSeq(string(u), ",") {
		parsed, err := url.Parse(one)
		if err != nil {
			return "the broker"
		}
		if parsed.User != nil {
			parsed.User = url.User(parsed.User.Username())
		}
		parsed.RawQuery, parsed.Fragment = "", "" // may name keys
		shown = append(shown, parsed.String())
	}
	return strings.Join(shown, ",")
}

// urlFlag adds --url to the command.
func urlFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "url", "", "the broker, amqp[s]://user:password@host:port/vhost\n(default $"+urlVariable+", else "+string(defaultURL)+")")
}

// resolveURL returns the URL of the flag, of the environment, or fallback, in this order.
func resolveURL(env Environment, flag string, fallback brokerURL) (brokerURL, error) {
	raw, from := flag, "--url"
	if raw == "" {
		raw, from = env.Getenv(urlVariable), urlVariable
	}
	if raw == "" {
		return fallback, nil
	}
	for one := range strings.SplitSeq(raw, ",") {
		// What url.Parse and ParseURI complain of may be a piece of the password, so it is not repeated.
		if _, err := url.Parse(one); err != nil {
			return "", hint(usagef("%s is not a URL", from),
				"Expected amqp://user:password@host:port/vhost. In the password write %%23 for #, %%2C for a comma, %%2F for /, %%3F for ?, %%40 for @.")
		}
		if _, err := amqp.ParseURI(one); err != nil {
			return "", hint(usagef("%s is not the URL of an AMQP broker", from),
				"Expected amqp://user:password@host:port/vhost, or amqps:// for TLS.")
		}
	}
	return brokerURL(raw), nil
}

// explain turns what the client library or the broker said into what happened and what to do about it.
func (u brokerURL) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[brokerError](err); ok {
		return err
	}
	switch {
	case errors.Is(err, amqp.ErrCredentials), errors.Is(err, amqp.ErrSASL):
		return brokerError{hint(fmt.Errorf("%s does not accept this user and password", u),
			"Check them in --url or %s. RabbitMQ lets the user guest in from the same machine only.", urlVariable)}
	case errors.Is(err, amqp.ErrVhost), noVirtualHost(err):
		return brokerError{hint(fmt.Errorf("%s: the user may not use this virtual host, or it does not exist", u),
			"The virtual host is what follows the port in the URL: /%%2f or nothing for the default one.")}
	case notAMQP(err):
		return brokerError{hint(fmt.Errorf("what answers at %s does not speak AMQP 0-9-1", u),
			"Check the port: a broker's AMQP port is 5672 as a rule, 5671 with TLS; 15672 is RabbitMQ's management page.")}
	case errors.Is(err, syscall.ECONNREFUSED):
		return brokerError{hint(fmt.Errorf("no broker listens at %s", u),
			"`dormouse serve` starts one on this machine; --url or %s names another.", urlVariable)}
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return brokerError{hint(fmt.Errorf("what answers at %s does not speak TLS", u),
			"Check the port: that of amqps:// is 5671 as a rule. amqp:// is without TLS.")}
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return brokerError{hint(fmt.Errorf("the host name %s is not known", dns.Name), "Check it in --url or %s.", urlVariable)}
	}
	var unreachable net.Error
	if errors.As(err, &unreachable) && unreachable.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return brokerError{hint(fmt.Errorf("%s does not answer: %w", u, err),
			"Check host and port in --url or %s, and that no firewall is in between.", urlVariable)}
	}
	if mismatch, ok := errors.AsType[*dormouse.MismatchError](err); ok {
		return mismatch // says what to do
	}
	if errors.Is(err, dormouse.ErrUnroutable) {
		return hint(err, "No queue is bound there. `dormouse declare` makes queues, bindings and the delay ladder.")
	}
	if refusal, ok := errors.AsType[*amqp.Error](err); ok {
		return hintRefusal(err, refusal)
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return brokerError{fmt.Errorf("%s: %w", u, err)}
	}
	return err
}

// noVirtualHost reports whether the broker closed the connection because of the virtual host in the URL.
func noVirtualHost(err error) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Server && e.Code == amqp.NotAllowed && strings.Contains(e.Reason, "vhost")
}

// reworded is an error in other words.
type reworded struct {
	error
	words string
}

func (e reworded) Error() string { return e.words }

func (e reworded) Unwrap() error { return e.error }

// notAMQP reports whether the other side sent what is no AMQP, or hung up at the first word.
func notAMQP(err error) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && !e.Server && (e.Code == amqp.FrameError || e.Code == amqp.SyntaxError)
}

// hintRefusal says what to do about a channel or connection that the broker closed. The broker's own words are enough of refusal.
func hintRefusal(err error, refusal *amqp.Error) error {
	err = reworded{err, strings.Replace(err.Error(), refusal.Error(), refusal.Reason, 1)}
	switch {
	case refusal.Code == amqp.AccessRefused:
		return hint(err, "The user needs the permissions to configure, write and read `dormouse.*` and the queues and exchanges named here.")
	case refusal.Code == amqp.PreconditionFailed && strings.Contains(refusal.Reason, "inequivalent arg"):
		return hint(err, "It exists already with other arguments. Use another name, declare it as it is, or delete it first.")
	case refusal.Code == amqp.NotFound:
		return hint(err, "`dormouse declare` makes the delay ladder and work queues.")
	}
	return err
}
