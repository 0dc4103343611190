//go:build linux || darwin || freebsd

package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free returns how much the process may still write to the disk of dir, in bytes.
func Free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return uint64(max(0, int64(s.Bavail))) * uint64(s.Bsize), nil
}
