package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"syscall"

	"github.com/dormousemq/dormouse/broker"
)

const (
	defaultListen           = "127.0.0.1:5672"
	defaultManagementListen = "127.0.0.1:15672"
	managementOff           = "off"
)

// sockets are what a broker listens on. Those that are not wanted are nil.
type sockets struct {
	amqp, secured, management net.Listener
}

// openSockets opens what the flags ask for. secure is for the encrypted one.
func (o *serveOptions) openSockets(ctx context.Context, secure *tls.Config, logger *slog.Logger) (s sockets, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.amqp, err = listen(ctx, o.listen); err != nil {
		return s, err
	}
	if s.secured, err = o.tls.listener(ctx, secure); err != nil {
		return s, err
	}
	if s.management, err = o.openManagement(ctx, logger); err != nil {
		return s, err
	}
	if beyondLoopback(s.amqp.Addr()) {
		logger.Warn("listening beyond this machine: traffic is not encrypted, and guest may log in from this machine only",
			"address", s.amqp.Addr().String())
	}
	if s.management != nil && beyondLoopback(s.management.Addr()) {
		logger.Warn("management beyond this machine: passwords are not encrypted on their way, and guest may log in from this machine only",
			"address", s.management.Addr().String())
	}
	return s, nil
}

// openManagement opens the socket of the management API. That a RabbitMQ has the default one is no reason not to start.
func (o *serveOptions) openManagement(ctx context.Context, logger *slog.Logger) (net.Listener, error) {
	switch o.management {
	case managementOff:
		return nil, nil
	case "":
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", defaultManagementListen)
		if errors.Is(err, syscall.EADDRINUSE) {
			logger.Warn("the management HTTP API is off: its address is in use, perhaps by a RabbitMQ; --management-listen gives it another",
				"address", defaultManagementListen)
			return nil, nil
		}
		return l, err
	}
	return listenOn(ctx, "--management-listen", o.management)
}

// Close closes the sockets.
func (s sockets) Close() error {
	var errs []error
	for _, l := range []net.Listener{s.amqp, s.secured, s.management} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// serve has the broker serve all sockets, and returns where it says that it has ended.
func (s sockets) serve(b *broker.Broker, secure *tls.Config) <-chan error {
	served := make(chan error, 3)
	go func() { served <- b.Serve(s.amqp) }()
	if s.secured != nil {
		go func() { served <- b.ServeTLS(s.secured, secure) }()
	}
	if s.management != nil {
		go func() { served <- b.ServeManagement(s.management) }()
	}
	return served
}
