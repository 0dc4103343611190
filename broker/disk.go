package broker

import (
	"context"
	"log/slog"
	"time"
)

// defaultDiskFreeLimit is RabbitMQ's default of disk_free_limit.
const defaultDiskFreeLimit = 50 << 20

// diskInterval is how often the disk is looked at.
const diskInterval = time.Second

// disk blocks publishers while the disk of the data folder is nearly full, or takes no
// writes.
type disk struct {
	limit uint64                 // that must be free, in bytes
	free  func() (uint64, error) // how much is
	err   func() error           // why the data folder cannot be written, nil if it can
	log   *slog.Logger
	alarm interface {
		Block(reason string)
		Unblock()
	}

	blocked bool
}

// watch looks at the disk until ctx ends.
func (d *disk) watch(ctx context.Context) {
	tick := time.NewTicker(diskInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.check()
		case <-ctx.Done():
			return
		}
	}
}

// lowOnDisk is RabbitMQ's reason for clients.
const lowOnDisk = "low on disk"

func (d *disk) check() {
	free, err := d.free()
	if err != nil {
		free = d.limit // nothing is known
	}
	failure := d.err()
	switch blocked := free < d.limit || failure != nil; {
	case blocked && !d.blocked:
		d.log.Error("publishers are blocked until there is room on the disk again", "free", free, "limit", d.limit, "error", failure)
		d.alarm.Block(lowOnDisk)
		d.blocked = true
	case !blocked && d.blocked:
		d.log.Info("publishers are not blocked any more", "free", free, "limit", d.limit)
		d.alarm.Unblock()
		d.blocked = false
	}
}
