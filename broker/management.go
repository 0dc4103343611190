package broker

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/dormousemq/dormouse/internal/disk"
	"github.com/dormousemq/dormouse/internal/management"
	"github.com/dormousemq/dormouse/internal/memory"
)

// Management answers requests below /api/ as RabbitMQ's management plugin does. Users log
// in by basic authentication: serve it over TLS beyond this machine.
func (b *Broker) Management() http.Handler { return b.manager }

// ServeManagement serves RabbitMQ's management HTTP API on l until Shutdown or Close, and
// closes l. It may be called for several listeners at a time. It always returns an error:
// ErrClosed after Shutdown or Close, else why it cannot accept connections any more.
func (b *Broker) ServeManagement(l net.Listener) error {
	if !b.add(l, "http") {
		_ = l.Close()
		return ErrClosed
	}
	defer b.remove(l)
	b.log.Info("listening for management", "address", l.Addr().String())
	server := management.NewServer(b.manager, b.log)
	err := server.Serve(l)
	_ = server.Close() // and the connections
	if b.isClosed() || errors.Is(err, http.ErrServerClosed) {
		return ErrClosed
	}
	return fmt.Errorf("broker: %w", err)
}

func (b *Broker) newManager(o Options) *management.Handler {
	options := management.Options{
		Hosts: b.hosts, Users: b.access, Sessions: b.session, Store: b.store, Logger: b.log, Listeners: b.listening,
		Memory: func() management.Memory {
			return management.Memory{Used: b.memoryUsed(), Limit: memoryLimit(o.MemoryLimit)}
		},
	}
	if o.Dir != "" {
		options.Disk = func() management.Disk {
			free, err := disk.Free(o.Dir)
			if err != nil {
				b.log.Warn("cannot tell how much is free on the disk", "folder", o.Dir, "error", err)
			}
			return management.Disk{Free: free, Limit: diskLimit(o.DiskFreeLimit)}
		}
	}
	return management.New(options)
}

// listening are the sockets that the broker listens on.
func (b *Broker) listening() []management.Listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]management.Listener, 0, len(b.listeners))
	for l, protocol := range b.listeners {
		all = append(all, management.Listener{Protocol: protocol, Address: l.Addr()})
	}
	return all
}

func (b *Broker) memoryUsed() uint64 { return memory.Used() + b.store.Memory() }

// memoryLimit is the limit of an option, in bytes; 0 if there is none.
func memoryLimit(option int64) uint64 {
	if option < 0 {
		return 0
	}
	available, known := memory.Available()
	return memory.Limit{Bytes: uint64(option)}.Of(available, known)
}

// diskLimit is the limit of an option, in bytes; 0 if there is none.
func diskLimit(option int64) uint64 {
	if option == 0 {
		option = defaultDiskFreeLimit
	}
	return uint64(max(option, 0))
}
