// Package broker is an embedded AMQP 0-9-1 broker that behaves as RabbitMQ does.
// Clients in any language connect to it unchanged.
//
//	b, err := broker.New(broker.Options{Dir: "/var/lib/dormouse"})
//	if err != nil {
//		return err
//	}
//	l, err := net.Listen("tcp", "127.0.0.1:5672")
//	if err != nil {
//		return err
//	}
//	go b.Serve(l)
//	…
//	err = b.Shutdown(ctx)
//
// What is durable is kept in one data folder: durable exchanges and queues, their
// bindings, and persistent messages in durable queues. A publish is confirmed when
// the message is synced to disk. With an empty [Options.Dir] everything is kept in
// memory, which suits tests.
package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/dormousemq/dormouse/internal/access"
	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/definitions"
	"github.com/dormousemq/dormouse/internal/disk"
	"github.com/dormousemq/dormouse/internal/management"
	"github.com/dormousemq/dormouse/internal/memory"
	"github.com/dormousemq/dormouse/internal/session"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/vhost"
)

// ErrClosed is returned by [Broker.Serve] after Shutdown or Close.
var ErrClosed = errors.New("broker: closed")

// ErrDefinitions is returned by [New] when Options.Definitions cannot be read or made.
var ErrDefinitions = errors.New("definitions")

// Why [New] cannot open a data folder, for errors.Is. The folder was left untouched.
var (
	// ErrInUse: another process, or another Broker, has it open.
	ErrInUse = store.ErrInUse
	// ErrNewerFormat: a newer version of the broker wrote it.
	ErrNewerFormat = store.ErrNewerFormat
	// ErrDamaged: what is in it cannot be read as what it should be.
	ErrDamaged = store.ErrDamaged
)

// Options of a broker. The zero value is a broker in memory with RabbitMQ's default
// user.
type Options struct {
	// Dir is the data folder. It is made if there is none, and belongs to one
	// process at a time. Empty keeps everything in memory.
	Dir string

	// Users are the passwords by user name. Each is an administrator with all
	// permissions in the virtual host "/"; one who was here at an earlier start and is
	// not any more is deleted, users who were made otherwise stay. Nil is the user
	// "guest" with the password "guest", unless there are users in Dir. As in RabbitMQ, a
	// user called guest may connect from this machine only, and one without a password
	// not at all.
	Users map[string]string

	// Definitions are what is to exist from the start, as RabbitMQ exports it in JSON:
	// users, virtual hosts, permissions, policies, exchanges, queues and bindings. What
	// exists already stays as it is, but for users, permissions and policies, which are
	// what Definitions say.
	Definitions []byte

	// CertificateLogin is which part of a client certificate is the name of its user, for
	// clients that log in by the mechanism EXTERNAL. See ServeTLS.
	CertificateLogin CertificateName

	// DiskFreeLimit is how much must be free on the disk of Dir, in bytes: with less,
	// connections that publish are blocked, as in RabbitMQ, until there is room again.
	// Zero is 50 MiB, negative is no limit.
	DiskFreeLimit int64

	// MemoryLimit is how much memory the whole process may use, in bytes: with more,
	// connections that publish are blocked, as in RabbitMQ, until consumers have made
	// room. Zero is 40 % of what the machine, or its container, has; negative is no limit.
	MemoryLimit int64

	// ConsumerTimeout is how long a message of a quorum queue may be out unacknowledged,
	// unless the queue, a policy or the consumer says otherwise: then it goes to another
	// consumer. Zero is 30 minutes, as in RabbitMQ, negative is no limit.
	ConsumerTimeout time.Duration

	// Sync is when what is confirmed is on disk. Zero is SyncAlways.
	Sync SyncPolicy

	// Logger is told what happens to connections, queues and the data folder. Nil
	// discards.
	Logger *slog.Logger

	// Clock is what message TTLs and queue expiry go by. Nil is the machine's clock.
	// Its type is internal: package dormousetest runs a broker on a clock that a test
	// moves.
	Clock clock.Clock
}

// CertificateName is which part of a client certificate is the name of its user.
type CertificateName = access.CertificateName

// What the name of a user may come from, RabbitMQ's ssl_cert_login_from.
const (
	// DistinguishedName is the whole subject, the last part first, as in "CN=alice,O=Example".
	DistinguishedName = access.DistinguishedName
	// CommonName is the subject's CN.
	CommonName = access.CommonName
)

// SyncPolicy says when a message that is confirmed, or a declaration that is answered, is
// synced to disk.
type SyncPolicy = store.SyncPolicy

// The sync policies.
const (
	// SyncAlways confirms only what is synced, so that no crash loses it.
	SyncAlways = store.SyncAlways
	// SyncInterval confirms at once and syncs five times a second: a crash may lose what
	// was confirmed in the last fifth of a second.
	SyncInterval = store.SyncInterval
	// SyncNever confirms at once and leaves syncing to the operating system: a crash of
	// the process may lose the last few messages that were confirmed, one of the machine
	// those of the last half minute or more.
	SyncNever = store.SyncNever
)

const (
	// defaultDiskFreeLimit is RabbitMQ's default of disk_free_limit.
	defaultDiskFreeLimit = 50 << 20
)

func (o *Options) validate() error {
	if o.Sync < SyncAlways || o.Sync > SyncNever {
		return fmt.Errorf("broker: Options.Sync is %d, not one of the sync policies", o.Sync)
	}
	for name := range o.Users {
		if name == "" {
			return errors.New("broker: Options.Users has a user without a name")
		}
	}
	return nil
}

// Broker is a broker. Its methods are safe for concurrent use.
type Broker struct {
	log     *slog.Logger
	users   map[string]string
	store   *store.Store
	hosts   *vhost.Hosts
	access  *access.Directory
	session *session.Server
	manager *management.Handler

	mu        sync.Mutex
	listeners map[net.Listener]string // their protocols
	address   net.Addr                // of the first
	closed    bool
	serving   sync.WaitGroup
	watching  sync.WaitGroup
	stopWatch func() // ends the alarms
	ending    sync.Once
	closeErr  error // of the data folder
}

// New opens the data folder and recovers what is in it. It listens to nothing yet,
// but message TTLs begin to run. The error says, and errors.Is tells, whether the
// folder is in use by another process, written by a newer version, or damaged; it is
// left untouched then.
func New(o Options) (*Broker, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	b := &Broker{log: o.Logger, users: maps.Clone(o.Users), listeners: map[net.Listener]string{}}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	var err error
	failing := make(chan struct{}, 1)
	if o.Dir == "" {
		b.store, err = store.OpenMemory(store.Options{Logger: b.log})
	} else {
		b.store, err = store.Open(o.Dir, store.Options{Logger: b.log, Sync: o.Sync, OnFailure: func(error) {
			select {
			case failing <- struct{}{}:
			default:
			}
		}})
	}
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	if err := b.openDefinitions(o); err != nil {
		return nil, errors.Join(fmt.Errorf("broker: %w", err), b.store.Close())
	}
	b.session = session.NewServer(session.Options{Host: b.hosts.Host, Directory: b.access, CertificateName: o.CertificateLogin, Logger: b.log})
	b.manager = b.newManager(o)
	b.hosts.Start()
	ctx, stop := context.WithCancel(context.Background())
	b.stopWatch = stop
	if o.Dir != "" {
		b.watchDisk(ctx, o.Dir, o.DiskFreeLimit, failing)
	}
	b.watchMemory(ctx, o.MemoryLimit)
	b.watching.Go(func() { b.manager.Run(ctx) })
	return b, nil
}

// openDefinitions opens the virtual hosts and the users, and makes the users of the
// options.
func (b *Broker) openDefinitions(o Options) (err error) {
	b.hosts, err = vhost.Open(vhost.Options{Store: b.store, Clock: o.Clock, Logger: b.log, ConsumerTimeout: o.ConsumerTimeout, Deleting: b.deletingVHost})
	if err != nil {
		return err
	}
	b.access, err = access.Open(access.Options{
		Store: b.store, Logger: b.log,
		VHost:   func(name string) bool { return b.hosts.Host(name) != nil },
		Deleted: func(name string) { b.session.CloseUser(name) },
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if o.Users != nil {
		err = b.access.Seed(ctx, o.Users, vhost.Default)
	}
	if err == nil && o.Definitions != nil {
		if err = definitions.Import(ctx, definitions.Broker{
			Directory: b.access, Hosts: b.hosts, Globals: management.NewGlobals(b.store), Logger: b.log,
		}, o.Definitions); err != nil {
			err = fmt.Errorf("%w: %w", ErrDefinitions, err)
		}
	}
	if err == nil && o.Users == nil {
		err = b.access.Seed(ctx, nil, vhost.Default) // now that it is known whether there are others
	}
	return err
}

// deletingVHost takes away what belongs to a virtual host and is kept elsewhere.
func (b *Broker) deletingVHost(tx *store.Tx, name string) {
	b.access.DropVHost(tx, name)
	b.session.CloseVHost(name)
}

func (b *Broker) watchDisk(ctx context.Context, dir string, limit int64, failing <-chan struct{}) {
	alarm := &disk.Alarm{
		Dir: dir, Limit: diskLimit(limit), Failure: b.store.Err, Now: failing, Logger: b.log,
		Raise: func() { b.session.Block("disk") }, Clear: func() { b.session.Unblock("disk") },
	}
	alarm.Check()
	b.watching.Go(func() { alarm.Run(ctx) })
}

func (b *Broker) watchMemory(ctx context.Context, limit int64) {
	if limit < 0 {
		return
	}
	alarm := &memory.Alarm{
		Limit: memoryLimit(limit), Logger: b.log, Used: b.memoryUsed,
		Raise: func() { b.session.Block("memory") }, Clear: func() { b.session.Unblock("memory") },
	}
	alarm.Check()
	b.watching.Go(func() { alarm.Run(ctx) })
}

// Serve accepts connections on l until Shutdown or Close, and closes l. It may be
// called for several listeners at a time. It always returns an error: ErrClosed after
// Shutdown or Close, else why it cannot accept connections any more.
func (b *Broker) Serve(l net.Listener) error { return b.serve(l, "amqp") }

func (b *Broker) serve(l net.Listener, protocol string) error {
	if !b.add(l, protocol) {
		_ = l.Close()
		return ErrClosed
	}
	defer b.remove(l)
	b.log.Info("listening for AMQP", "address", l.Addr().String())
	for {
		c, err := b.accept(l)
		if err != nil {
			return err
		}
		go func() { _ = b.session.Serve(c) }()
	}
}

// ServeTLS is Serve for connections that are encrypted (amqps). config needs a certificate.
// If it verifies those of clients, a client that has one is offered the mechanism
// EXTERNAL: it may log in without a password as the user of whom the certificate is.
func (b *Broker) ServeTLS(l net.Listener, config *tls.Config) error {
	return b.serve(tls.NewListener(l, config), "amqp/ssl")
}

// maxAcceptDelay is the longest pause, after which a listener that is out of
// resources (file descriptors, mostly) is tried again.
const maxAcceptDelay = time.Second

func (b *Broker) accept(l net.Listener) (net.Conn, error) {
	for delay := 5 * time.Millisecond; ; delay = min(2*delay, maxAcceptDelay) {
		c, err := l.Accept()
		if err == nil {
			return c, nil
		}
		if b.isClosed() {
			return nil, ErrClosed
		}
		var temporary interface{ Temporary() bool }
		if !errors.As(err, &temporary) || !temporary.Temporary() {
			return nil, fmt.Errorf("broker: %w", err)
		}
		b.log.Error("cannot accept a connection", "error", err, "again in", delay)
		time.Sleep(delay)
	}
}

func (b *Broker) add(l net.Listener, protocol string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.address == nil && protocol != "http" {
		b.address = l.Addr()
	}
	b.listeners[l] = protocol
	b.serving.Add(1)
	return true
}

func (b *Broker) remove(l net.Listener) {
	_ = l.Close()
	b.mu.Lock()
	delete(b.listeners, l)
	b.mu.Unlock()
	b.serving.Done()
}

func (b *Broker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Addr is the address of the first listener, nil before Serve was called.
func (b *Broker) Addr() net.Addr {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.address
}

// URL is what a client connects to on this machine, "amqp://guest:guest@127.0.0.1:5672/",
// with the credentials of the user guest if Options know them, else without any. It is
// empty before Serve was called.
func (b *Broker) URL() string {
	tcp, ok := b.Addr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	ip := tcp.IP
	if ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
	}
	u := url.URL{Scheme: "amqp", Host: net.JoinHostPort(ip.String(), fmt.Sprint(tcp.Port)), Path: "/"}
	password, listed := b.users[access.Guest]
	if b.users == nil {
		password, listed = access.Guest, true
	}
	if _, err := b.access.Authenticate(access.Guest, password); listed && err == nil {
		u.User = url.UserPassword(access.Guest, password)
	}
	return u.String()
}

// Directory is the users of the broker and what they may do. Its type is internal: other
// programs manage users over the HTTP API.
func (b *Broker) Directory() *access.Directory { return b.access }

// Hosts are the virtual hosts of the broker. Its type is internal: other programs manage
// virtual hosts over the HTTP API.
func (b *Broker) Hosts() *vhost.Hosts { return b.hosts }

// Shutdown stops listening, closes all connections with CONNECTION_FORCED (320), so
// that clients know it was no accident, waits until they have gone, and closes the
// data folder. Messages that clients have not acknowledged are there again after the
// next start. When ctx ends before all clients have gone, their connections are cut,
// and Shutdown returns its error.
func (b *Broker) Shutdown(ctx context.Context) error {
	return b.end(func() error {
		// Connections that wait for room on a full disk end only with the store.
		defer context.AfterFunc(ctx, b.closeStore)()
		return b.session.Shutdown(ctx, "broker forced connection closure with reason 'shutdown'")
	})
}

// Close cuts all connections and closes the data folder. Whatever was confirmed is
// kept, as with Shutdown.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	defer time.AfterFunc(closePatience, b.closeStore).Stop()
	b.session.Close()
	return b.end(func() error { return nil })
}

// closePatience is how long Close waits for connections that wait for room on a full
// disk, before it closes the data folder under them.
const closePatience = 3 * time.Second

// closeStore closes the store, which can be done again.
func (b *Broker) closeStore() { _ = b.store.Close() }

// end ends the broker, if nobody has done so, by ending the sessions and closing the
// data folder. Whoever calls later waits for that.
func (b *Broker) end(sessions func() error) error {
	var err error
	b.ending.Do(func() {
		b.mu.Lock()
		b.closed = true
		for l := range b.listeners {
			_ = l.Close()
		}
		b.mu.Unlock()
		b.serving.Wait()
		err = sessions()
		b.stopWatch()
		b.watching.Wait()
		b.closeErr = b.store.Close() // first, so that what still moves is kept as it was
		b.hosts.Close()
	})
	return errors.Join(err, b.closeErr)
}
