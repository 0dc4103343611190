package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardFS is the file system of one Pebble instance. The first write that fails ends the instance: from then on no write, rename or
// removal reaches the disk, and each is reported as done, the failed one too. So the disk stays as a crash at that moment would
// leave it, which is what Pebble's recovery is made for; and Pebble, which panics or exits in its background goroutines when it sees
// some of these errors, sees none. Whoever uses the instance asks failure before believing what it says.
type guardFS struct {
	vfs.FS
	broken atomic.Pointer[error]
	onFail func() // called once; must not block
}

// failure is the error that ended the instance, or nil.
func (g *guardFS) failure() error {
	if err := g.broken.Load(); err != nil {
		return *err
	}
	return nil
}

func (g *guardFS) fail(err error) {
	if g.broken.CompareAndSwap(nil, &err) {
		g.onFail()
	}
}

// do runs a write unless the instance has failed. A write that fails ends the instance.
func (g *guardFS) do(what, name string, write func() error) {
	if g.failure() != nil {
		return
	}
	if err := write(); err != nil {
		g.fail(fmt.Errorf("%s %s: %w", what, name, err))
	}
}

// file runs a write that gives a file to write to; after a failure that is one that takes all and keeps nothing.
func (g *guardFS) file(what, name string, open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	g.do(what, name, func() (err error) {
		f, err = open()
		return err
	})
	if f == nil || g.failure() != nil {
		if f != nil {
			_ = f.Close()
		}
		return &lostFile{vfs.NewMemFile(nil)}, nil
	}
	return &guardFile{File: f, guard: g, name: name}, nil
}

func (g *guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return g.file("create", name, func() (vfs.File, error) { return g.FS.Create(name, c) })
}

func (g *guardFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return g.file("open", name, func() (vfs.File, error) { return g.FS.OpenReadWrite(name, c, o...) })
}

func (g *guardFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return g.file("reuse", to, func() (vfs.File, error) { return g.FS.ReuseForWrite(from, to, c) })
}

func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: f, guard: g, name: name}, nil
}

func (g *guardFS) Link(from, to string) error {
	g.do("link", to, func() error { return g.FS.Link(from, to) })
	return nil
}

func (g *guardFS) Rename(from, to string) error {
	g.do("rename", to, func() error { return g.FS.Rename(from, to) })
	return nil
}

func (g *guardFS) MkdirAll(dir string, mode os.FileMode) error {
	g.do("make folder", dir, func() error { return g.FS.MkdirAll(dir, mode) })
	return nil
}

// Remove reports its errors: a file too many does no harm, and Pebble copes.
func (g *guardFS) Remove(name string) error {
	if g.failure() != nil {
		return nil
	}
	return g.FS.Remove(name)
}

func (g *guardFS) RemoveAll(name string) error {
	if g.failure() != nil {
		return nil
	}
	return g.FS.RemoveAll(name)
}

func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// guardFile is a file opened for writing, or a folder opened to be synced.
type guardFile struct {
	vfs.File
	guard *guardFS
	name  string
}

func (f *guardFile) Write(p []byte) (int, error) {
	f.guard.do("write", f.name, func() error { return wrote(f.File.Write(p)) })
	return len(p), nil
}

func (f *guardFile) WriteAt(p []byte, off int64) (int, error) {
	f.guard.do("write", f.name, func() error { return wrote(f.File.WriteAt(p, off)) })
	return len(p), nil
}

// wrote drops the count: a short write has an error.
func wrote(_ int, err error) error { return err }

func (f *guardFile) Sync() error {
	f.guard.do("sync", f.name, f.File.Sync)
	return nil
}

func (f *guardFile) SyncData() error {
	f.guard.do("sync", f.name, f.File.SyncData)
	return nil
}

func (f *guardFile) SyncTo(n int64) (full bool, _ error) {
	f.guard.do("sync", f.name, func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, nil
}

func (f *guardFile) Close() error {
	if err := f.File.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		f.guard.fail(fmt.Errorf("close %s: %w", f.name, err))
	}
	return nil
}

// lostFile takes writes and forgets them.
type lostFile struct{ vfs.File }

func (*lostFile) Write(p []byte) (int, error)            { return len(p), nil }
func (*lostFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (*lostFile) ReadAt([]byte, int64) (int, error)      { return 0, io.EOF }
func (*lostFile) Sync() error                            { return nil }
func (*lostFile) SyncData() error                        { return nil }
func (*lostFile) SyncTo(int64) (bool, error)             { return true, nil }
