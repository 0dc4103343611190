package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestNoURLShowsItsPassword(t *testing.T) {
	for _, raw := range []string{
		"amqp://user:hunter2@host:5672/vhost",
		"amqps://user:hunter2@host/?keyfile=hunter2.pem",
		"amqp://user:hunter2@one:5672/,amqp://user:hunter2@two:5672/",
		"amqp://user:hunter2@host:port/",
		"amqp://user:hunter2#x@host/",
		"amqp://user:hun/ter2@host/",
		"http://user:hunter2@host/",
		"user:hunter2@host",
	} {
		t.Run(raw, func(t *testing.T) {
			env := Environment{Getenv: func(string) string { return raw }}
			url, err := resolveURL(env, "", defaultURL)
			said := url.String() + fmt.Sprintf("%v %s", url, url)
			if err != nil {
				said = err.Error()
				if hinted, ok := errors.AsType[hintedError](err); ok {
					said += hinted.hint
				}
			}
			if strings.Contains(said, "hunter2") || strings.Contains(said, "ter2") {
				t.Errorf("shows the password: %s", said)
			}
		})
	}
}

func TestFlagWinsOverVariable(t *testing.T) {
	env := Environment{Getenv: func(name string) string {
		if name != urlVariable {
			t.Errorf("asked for %s", name)
		}
		return "amqp://variable/"
	}}
	silent := Environment{Getenv: func(string) string { return "" }}
	for _, test := range []struct {
		env  Environment
		flag string
		want brokerURL
	}{
		{env, "amqp://flag/", "amqp://flag/"},
		{env, "", "amqp://variable/"},
		{silent, "", defaultURL},
	} {
		if got, err := resolveURL(test.env, test.flag, defaultURL); got != test.want || err != nil {
			t.Errorf("flag %q: %q, %v; want %q", test.flag, string(got), err, string(test.want))
		}
	}
}

func TestBrokerErrorsSayWhatToDo(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, test := range []struct {
		name   string
		err    error
		broker bool // the exit code is ExitBroker
		says   string
	}{
		{"nobody listens", refused, true, "dormouse serve"},
		{"several, joined", errors.Join(refused, refused), true, "dormouse serve"},
		{"password", fmt.Errorf("connect: %w", amqp.ErrCredentials), true, "does not accept"},
		{"another protocol", amqp.ErrFrame, true, "15672"},
		{"no TLS", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, true, "5671"},
		{"virtual host", amqp.ErrVhost, true, "virtual host"},
		{"name", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "rabit"}}, true, "rabit"},
		{"no answer", context.DeadlineExceeded, true, "firewall"},
		{"permission", &amqp.Error{Code: amqp.AccessRefused, Reason: "ACCESS_REFUSED - configure access to exchange 'dormouse.delay' refused"}, false, "permissions"},
		{"mismatch", &amqp.Error{Code: amqp.PreconditionFailed, Reason: "PRECONDITION_FAILED - inequivalent arg 'x-queue-type'"}, false, "other arguments"},
		{"missing", &amqp.Error{Code: amqp.NotFound, Reason: "NOT_FOUND - no queue 'email'"}, false, "dormouse declare"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := brokerURL("amqp://guest:hunter2@127.0.0.1/").explain(test.err)
			_, broker := errors.AsType[brokerError](err)
			if broker != test.broker {
				t.Errorf("a broker error: %v, want %v", broker, test.broker)
			}
			said := err.Error()
			if hinted, ok := errors.AsType[hintedError](err); ok {
				said += "\n" + hinted.hint
			}
			if !strings.Contains(said, test.says) || strings.Contains(said, "hunter2") {
				t.Errorf("says %q, want %q in it", said, test.says)
			}
		})
	}
}
