package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion is the version of what the package comment draws, written to the file FORMAT. Versions so far:
//
//	1  the first
const formatVersion = 1

const (
	formatFile   = "FORMAT"
	formatPrefix = "dormouse store "
)

// lockFolder makes dir a data folder if it is none, checks that it can be used, and locks it. exists tells whether it was one before.
func lockFolder(files vfs.FS, dir string) (_ *pebble.Lock, exists bool, err error) {
	exists, err = checkFormat(files, dir)
	if err != nil {
		return nil, false, err
	}
	if !exists {
		if err := files.MkdirAll(dir, 0o700); err != nil {
			return nil, false, fmt.Errorf("make the data folder: %w", err)
		}
	}
	lock, err := pebble.LockDirectory(dir, files)
	if err != nil {
		if _, cannotOpen := errors.AsType[*fs.PathError](err); cannotOpen {
			return nil, false, fmt.Errorf("lock the data folder: %w", err)
		}
		return nil, false, fmt.Errorf("%w: another process has %s open; stop it, or give this one a folder of its own", ErrInUse, dir)
	}
	if !exists {
		if err := writeFormat(files, dir); err != nil {
			return nil, false, errors.Join(err, lock.Close())
		}
	}
	return lock, exists, nil
}

// checkFormat reports whether dir is a data folder of a version that can be read. It touches nothing.
func checkFormat(files vfs.FS, dir string) (exists bool, err error) {
	names, err := files.List(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the data folder: %w", err)
	}
	text, err := readFile(files, files.PathJoin(dir, formatFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for _, name := range names {
			if strings.HasPrefix(name, "marker.") || strings.HasPrefix(name, "MANIFEST") {
				return false, fmt.Errorf("%w: %s has data but no file %s; restore the folder from a copy, or give an empty one", ErrDamaged, dir, formatFile)
			}
		}
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the data folder: %w", err)
	}
	number, ok := strings.CutPrefix(strings.TrimSpace(text), formatPrefix)
	version, err := strconv.Atoi(number)
	switch {
	case !ok || err != nil || version < 1:
		return false, fmt.Errorf("%w: %s in %s is not understood; restore the folder from a copy", ErrDamaged, formatFile, dir)
	case version > formatVersion:
		return false, fmt.Errorf("%w: %s has version %d, this program reads up to %d; use the version that wrote it, or a newer one", ErrNewerFormat, dir, version, formatVersion)
	}
	return true, nil
}

func writeFormat(files vfs.FS, dir string) error {
	name := files.PathJoin(dir, formatFile)
	if err := writeFile(files, name+".tmp", fmt.Sprintf("%s%d\n", formatPrefix, formatVersion)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := files.Rename(name+".tmp", name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := syncFolder(files, dir); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func readFile(files vfs.FS, name string) (string, error) {
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(f)
	return string(b), errors.Join(err, f.Close())
}

func writeFile(files vfs.FS, name, content string) error {
	f, err := files.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(content))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(files vfs.FS, dir string) error {
	f, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
