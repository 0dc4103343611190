package store

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// countingFS counts the syncs of files created.
type countingFS struct {
	vfs.FS
	syncs atomic.Int64
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (c *countingFS) Create(name string, k vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, k)
	return &countingFile{f, c}, err
}

func (f *countingFile) Sync() error     { f.fs.syncs.Add(1); return f.File.Sync() }
func (f *countingFile) SyncData() error { f.fs.syncs.Add(1); return f.File.SyncData() }
