package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/duration"
	"github.com/dormousemq/dormouse/internal/memory"
)

func newServe(env Environment) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a broker that any AMQP 0-9-1 client can use",
		Long: `Serve runs a broker that behaves as RabbitMQ does, on this machine. It says when it is
ready. An interrupt or a termination signal ends it in order: clients are told, and
everything that was confirmed is on disk. A second signal ends it at once, and nothing
that was confirmed is lost by that either.

Messages are kept in the folder of --data, by default
  $XDG_DATA_HOME/dormouse, else ~/.local/share/dormouse   on Unix
  ~/Library/Application Support/dormouse                  on macOS
  %LocalAppData%\dormouse                                 on Windows
or, with --memory, nowhere: they are gone when the broker ends.

The user is guest with the password guest, from this machine only, as with RabbitMQ.
--users names a file of other users.`,
		Example: `  dormouse serve
  dormouse serve --data /var/lib/dormouse --listen 127.0.0.1:5673
  dormouse serve --memory --listen 127.0.0.1:0 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.serve(cmd.Context(), env) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", defaultListen, "the address to listen on; port 0 takes a free one")
	flags.StringVar(&o.management, "management-listen", "", "the address of RabbitMQ's management HTTP API, or "+managementOff+"\n(default "+defaultManagementListen+", if it is free)")
	flags.StringVar(&o.data, "data", "", "the folder for messages and definitions, made when missing")
	flags.StringVar(&o.users, "users", "", "a file with a line NAME:PASSWORD for each user, instead of guest")
	flags.BoolVar(&o.memory, "memory", false, "keep everything in memory only")
	flags.StringVar(&o.sync, "sync", "always", "when a confirmed message is on disk: always; interval (synced five times a second: a crash loses what was confirmed since); never (left to the system: a loss of power may lose half a minute or more)")
	flags.StringVar(&o.memoryLimit, "memory-limit", "40%", "with more memory in use publishers are blocked: a share of the memory there is, a size such as 2GiB, or none")
	flags.StringVar(&o.consumerTimeout, "consumer-timeout", "30m", "how long a consumer may keep a message of a quorum queue unacknowledged, unless the queue or a policy says otherwise, or "+timeoutOff)
	flags.DurationVar(&o.grace, "grace", 10*time.Second, "how long an orderly end may take")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json")
	flags.BoolVar(&o.json, "json", false, "say that it is ready as JSON")
	flags.StringVar(&o.pprof, "pprof", "", "serve Go's profiles on this address of this machine, such as 127.0.0.1:6060")
	flags.StringVar(&o.definitions, "definitions", "", "a file of RabbitMQ's definitions (rabbitmqctl export_definitions) that are to exist")
	o.tls.addTo(flags)
	return cmd
}

type serveOptions struct {
	listen, management  string
	data, users         string
	memory              bool
	sync, memoryLimit   string
	consumerTimeout     string
	grace               time.Duration
	logLevel, logFormat string
	json                bool
	pprof               string // empty: no profiles
	definitions         string // empty: none
	tls                 tlsOptions
}

func (o *serveOptions) serve(ctx context.Context, env Environment) error {
	logger, err := newLogger(env, o.logLevel, o.logFormat)
	if err != nil {
		return err
	}
	dir, err := o.folder(env)
	if err != nil {
		return err
	}
	policy, err := syncPolicy(o.sync)
	if err != nil {
		return err
	}
	memoryLimit, err := limitMemory(o.memoryLimit, env.Getenv)
	if err != nil {
		return err
	}
	timeout, err := consumerTimeout(o.consumerTimeout)
	if err != nil {
		return err
	}
	users, err := readUsers(o.users)
	if err != nil {
		return err
	}
	definitions, err := readDefinitions(o.definitions)
	if err != nil {
		return err
	}
	secure, err := o.tls.config()
	if err != nil {
		return err
	}
	login, err := o.tls.certificateName()
	if err != nil {
		return err
	}
	if o.pprof != "" {
		stop, err := serveProfiles(ctx, o.pprof, logger)
		if err != nil {
			return err
		}
		defer func() { _ = stop() }()
	}
	open, err := o.openSockets(ctx, secure, logger)
	if err != nil {
		return err
	}
	ballast := make([]byte, ballastSize)
	defer runtime.KeepAlive(ballast)
	b, err := broker.New(broker.Options{
		Dir: dir, Users: users, Definitions: definitions, CertificateLogin: login, Sync: policy, MemoryLimit: memoryLimit,
		ConsumerTimeout: timeout, Logger: logger,
	})
	if err != nil {
		if errors.Is(err, broker.ErrDefinitions) {
			err = fmt.Errorf("%s: %w", o.definitions, err)
		}
		return errors.Join(explainFolder(err, dir), open.Close())
	}
	served := open.serve(b, secure)
	if err := o.sayReady(env, open, dir); err != nil {
		return errors.Join(err, b.Close())
	}

	select {
	case err := <-served:
		return errors.Join(err, b.Close())
	case <-ctx.Done():
	}
	logger.Info("shutting down")
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.grace)
	defer cancel()
	err = b.Shutdown(bounded)
	if err != nil && bounded.Err() != nil {
		logger.Warn("clients did not leave in time and were cut off", "error", err)
		return nil
	}
	return err
}

// ballastSize is the size of a piece of memory that nobody touches, so that it takes none, but that the garbage collector
// counts. It collects at twice what is in use: of a broker that keeps little in memory, every few megabytes.
const ballastSize = 32 << 20

func syncPolicy(name string) (broker.SyncPolicy, error) {
	switch name {
	case "always":
		return broker.SyncAlways, nil
	case "interval":
		return broker.SyncInterval, nil
	case "never":
		return broker.SyncNever, nil
	}
	return 0, usagef("--sync %q is not always, interval or never", name)
}

const timeoutOff = "off"

// consumerTimeout reads the flag of that name, as broker.Options takes it.
func consumerTimeout(text string) (time.Duration, error) {
	if text == timeoutOff {
		return -1, nil
	}
	d, err := duration.Parse(text)
	if err != nil {
		return 0, usagef("--consumer-timeout: %w, or %s", err, timeoutOff)
	}
	if d <= 0 {
		return 0, usagef("--consumer-timeout %q is no time; for none say %s", text, timeoutOff)
	}
	return d, nil
}

// limitMemory returns the limit in bytes, -1 for none, and has Go collect garbage in time
// to keep it, unless GOMEMLIMIT says otherwise.
func limitMemory(text string, getenv func(string) string) (int64, error) {
	limit, err := memory.ParseLimit(text)
	if err != nil {
		return 0, usagef("--memory-limit %w", err)
	}
	bytes := limit.Of(memory.Available())
	if bytes > math.MaxInt64 {
		return -1, nil
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(bytes))
	}
	return int64(bytes), nil
}

// folder is where messages are kept; empty means in memory.
func (o *serveOptions) folder(env Environment) (string, error) {
	switch {
	case o.memory && o.data != "":
		return "", usagef("either --data or --memory")
	case o.memory:
		return "", nil
	case o.data != "":
		return o.data, nil
	}
	return defaultFolder(runtime.GOOS, env.Getenv)
}

func defaultFolder(system string, getenv func(string) string) (string, error) {
	base := ""
	switch home := getenv("HOME"); {
	case getenv("XDG_DATA_HOME") != "" && system != "windows":
		base = getenv("XDG_DATA_HOME")
	case system == "windows":
		base = getenv("LocalAppData")
	case home == "":
	case system == "darwin":
		base = filepath.Join(home, "Library", "Application Support")
	default:
		base = filepath.Join(home, ".local", "share")
	}
	if base == "" {
		return "", usagef("there is no home folder to keep messages in; name a folder by --data, or use --memory")
	}
	return filepath.Join(base, "dormouse"), nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	return listenOn(ctx, "--listen", address)
}

// listenOn listens on the address that a flag names.
func listenOn(ctx context.Context, flag, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, hint(fmt.Errorf("the address %s is in use, perhaps by a RabbitMQ or another dormouse", address),
			"Choose another by %s, such as %[1]s 127.0.0.1:5673, or %[1]s 127.0.0.1:0 for any free port.", flag)
	case errors.Is(err, fs.ErrPermission):
		return nil, hint(fmt.Errorf("this user may not listen on %s", address), "Choose a port above 1023 by %s.", flag)
	}
	return nil, hint(usagef("cannot listen on %q: %w", address, err), "%s takes HOST:PORT, such as 127.0.0.1:5672.", flag)
}

func beyondLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// explainFolder says what to do about a data folder that cannot be opened.
func explainFolder(err error, dir string) error {
	switch {
	case errors.Is(err, broker.ErrInUse):
		return hint(fmt.Errorf("the data folder %s is in use by another dormouse", dir),
			"End that one, or choose another folder by --data.")
	case errors.Is(err, fs.ErrPermission):
		return hint(fmt.Errorf("this user may not write the data folder %s", dir), "Choose another folder by --data.")
	}
	return err
}

// ready is what `dormouse serve --json` prints once clients can connect.
type ready struct {
	Address    string `json:"address"`
	URL        string `json:"url"`
	TLS        string `json:"tls,omitempty"`        // the address for encrypted connections, if there is one
	Management string `json:"management,omitempty"` // the URL of the management HTTP API, if it is on
	Data       string `json:"data,omitempty"`       // empty: in memory
}

func (o *serveOptions) sayReady(env Environment, open sockets, dir string) error {
	r := ready{Address: open.amqp.Addr().String(), Data: dir}
	r.URL = "amqp://" + r.Address + "/"
	if open.secured != nil {
		r.TLS = open.secured.Addr().String()
	}
	if open.management != nil {
		r.Management = "http://" + open.management.Addr().String() + "/api"
	}
	if o.json {
		return printJSON(env.Stdout, r)
	}
	said := "dormouse is ready: AMQP 0-9-1 on " + r.Address
	if r.TLS != "" {
		said += ", with TLS on " + r.TLS
	}
	if r.Management != "" {
		said += ", management on " + r.Management
	}
	if dir == "" {
		said += ", data in memory only"
	} else {
		said += ", data in " + dir
	}
	_, err := fmt.Fprintln(env.Stdout, said)
	return err
}

func newLogger(env Environment, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level %q is not debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(env.Stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(env.Stderr, options)), nil
	}
	return nil, usagef("--log-format %q is neither text nor json", format)
}
