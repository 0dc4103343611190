package vhost

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dormousemq/dormouse/internal/clock"
	"github.com/dormousemq/dormouse/internal/store"
	"github.com/dormousemq/dormouse/internal/wire"
)

// fullDisk is a virtual host on a disk that can be full.
type fullDisk struct {
	*Host
	t      *testing.T
	memory *vfs.MemFS
	full   atomic.Bool
	room   chan struct{} // there is again
}

func openFullDisk(t *testing.T, memory *vfs.MemFS) *fullDisk {
	t.Helper()
	d := &fullDisk{t: t, memory: memory, room: make(chan struct{}, 1)}
	files := errorfs.Wrap(memory, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpLock {
			return syscall.ENOSPC
		}
		return nil
	}))
	s, err := store.Open("data", store.Options{FS: files, OnFailure: func(err error) {
		if err == nil {
			d.room <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := Open(Options{Store: s, Clock: clock.Real(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	hosts.Start()
	t.Cleanup(func() {
		d.full.Store(false)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		hosts.Close()
	})
	d.Host = hosts.Host(Default)
	return d
}

// changes are declarations, and what deletes the queue "old".
func (d *fullDisk) changes() error {
	_, declared := d.DeclareQueue(d.t.Context(), nil, QueueDeclare{Name: "q", Durable: true})
	_, deleted := d.DeleteQueue(d.t.Context(), nil, QueueDelete{Name: "old"})
	return errors.Join(
		declared,
		d.DeclareExchange(d.t.Context(), ExchangeDeclare{Name: "x", Type: "direct", Durable: true}),
		d.BindQueue(d.t.Context(), nil, Bind{Source: "x", Destination: "q", Key: "k"}),
		deleted,
	)
}

// fail makes changes that cannot be written, which their maker is told each time.
func (d *fullDisk) fail() {
	d.t.Helper()
	d.full.Store(true)
	for range 2 {
		failed := d.changes()
		if failed == nil || strings.Count(failed.Error(), store.ErrUnavailable.Error()) != 4 {
			d.t.Errorf("on a full disk: %v", failed)
		}
		if e, ok := errors.AsType[*wire.Exception](failed); !ok || e.Code != wire.InternalError {
			d.t.Errorf("on a full disk: %v", failed)
		}
	}
}

// holds tells what a machine that crashes now has when it is up again.
func (d *fullDisk) holds() (after *fullDisk, queue, exchange, old bool) {
	d.t.Helper()
	after = openFullDisk(d.t, d.memory.CrashClone(vfs.CrashCloneCfg{}))
	queue, exchange, old = after.HasQueue("q"), after.exchanges["x"] != nil, after.HasQueue("old")
	return after, queue, exchange, old
}

// What could not be written is made in memory and its maker is told that it failed. Once there is room it is written as well, and who
// tries again hears that it is done.
func TestDeclareOnAFullDisk(t *testing.T) {
	d := openFullDisk(t, vfs.NewCrashableMem())
	if _, err := d.DeclareQueue(t.Context(), nil, QueueDeclare{Name: "old", Durable: true}); err != nil {
		t.Fatal(err)
	}
	d.fail()
	d.full.Store(false)
	select {
	case <-d.room:
	case <-time.After(10 * time.Second):
		t.Fatal("the store does not recover")
	}
	if err := d.changes(); err != nil {
		t.Fatalf("once there is room: %v", err)
	}
	after, queue, exchange, old := d.holds()
	if !queue || !exchange || old {
		t.Errorf("after a crash: queue %v, exchange %v, deleted queue %v", queue, exchange, old)
	}
	if n := after.exchanges["x"].bindings.Len(); n != 1 {
		t.Errorf("after a crash the exchange has %d bindings", n)
	}
	if err := after.changes(); err != nil {
		t.Errorf("after a crash: %v", err)
	}
}

// If the broker dies first, nothing of it has happened, as its maker was told, and the names are free.
func TestCrashOnAFullDisk(t *testing.T) {
	d := openFullDisk(t, vfs.NewCrashableMem())
	if _, err := d.DeclareQueue(t.Context(), nil, QueueDeclare{Name: "old", Durable: true}); err != nil {
		t.Fatal(err)
	}
	d.fail()
	after, queue, exchange, old := d.holds()
	if queue || exchange || !old {
		t.Errorf("after a crash: queue %v, exchange %v, deleted queue %v", queue, exchange, old)
	}
	if err := after.DeclareExchange(t.Context(), ExchangeDeclare{Name: "x", Type: "topic", Durable: true}); err != nil {
		t.Errorf("after a crash: %v", err)
	}
}
