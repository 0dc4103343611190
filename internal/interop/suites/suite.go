package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// suite is the tests of one client library.
type suite struct {
	name, about string
	packages    []string // Debian packages it needs
	// prepare fetches the suite and builds it in an empty folder.
	prepare func(ctx context.Context, dir string) error
	// run runs the tests that prepare has put into dir.
	run func(ctx context.Context, dir string, to broker) (results, error)
}

// all is the suites in the order in which they are run and reported.
func all() []suite {
	return []suite{amqp091(), streadway(), watermill(), amqplib(), nodeAMQP(), javaClient(), phpExtension(), librabbitmq(), mojo()}
}

// broker is one of the brokers under test.
type broker struct {
	name       string
	url        string
	address    string // host:port of the AMQP listener
	management string // base URL of the management API; empty when it has none
}

func newBroker(name, amqp, management string) (broker, error) {
	u, err := url.Parse(amqp)
	if err != nil {
		return broker{}, fmt.Errorf("the URL of %s: %w", name, err)
	}
	if u.Scheme != "amqp" || u.Port() == "" {
		return broker{}, fmt.Errorf("the URL of %s is %q, but has to be amqp://USER:PASSWORD@HOST:PORT/", name, amqp)
	}
	return broker{name: name, url: amqp, address: u.Host, management: management}, nil
}

// comparison is the results of one suite on each of the brokers, in their order.
type comparison struct {
	suite   suite
	results []results
}

// runAll runs the suites that name stands for on every broker. A suite that cannot be run is an error and does not keep the
// others from running.
func runAll(ctx context.Context, cache, name string, brokers []broker, log io.Writer) ([]comparison, error) {
	suites, err := chosen(name)
	if err != nil {
		return nil, err
	}
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no cache folder (%w); name one with --cache", err)
		}
		cache = filepath.Join(user, "dormouse-suites")
	}
	var runs []comparison
	var failed error
	for _, s := range suites {
		dir := filepath.Join(cache, s.name)
		if err := ready(ctx, s, dir, log); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		run := comparison{suite: s}
		for _, b := range brokers {
			fmt.Fprintf(log, "%s on %s …\n", s.name, b.name)
			start := time.Now()
			res, err := forwarded(ctx, s, dir, b)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s on %s: %w", s.name, b.name, err))
			}
			fmt.Fprintf(log, "%s on %s: %s in %s\n", s.name, b.name, res.count(), time.Since(start).Round(time.Second))
			run.results = append(run.results, res)
		}
		runs = append(runs, run)
	}
	return runs, failed
}

// ready fetches and builds a suite unless an earlier run has done so.
func ready(ctx context.Context, s suite, dir string, log io.Writer) error {
	done := filepath.Join(dir, ".ready")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	if err := installed(ctx, s.packages); err != nil {
		return err
	}
	fmt.Fprintf(log, "fetching %s into %s …\n", s.name, dir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := s.prepare(ctx, dir); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o644)
}

// forwarded runs a suite while the default ports of AMQP and of the management API lead to the broker.
func forwarded(ctx context.Context, s suite, dir string, b broker) (results, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	toPort := map[string]string{"127.0.0.1:5672": b.address}
	if b.management != "" {
		u, err := url.Parse(b.management)
		if err != nil {
			return nil, fmt.Errorf("the management URL: %w", err)
		}
		toPort["127.0.0.1:15672"] = u.Host
	}
	var listeners []io.Closer
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	for from, to := range toPort {
		listener, err := forward(ctx, from, to)
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, listener)
	}
	return s.run(ctx, dir, b)
}
