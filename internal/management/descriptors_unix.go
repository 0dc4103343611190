//go:build unix

package management

import (
	"os"

	"golang.org/x/sys/unix"
)

// descriptors is how many files and sockets the process has open, and may have; false
// where the system does not tell.
func descriptors() (open, limit int, known bool) {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0, 0, false
	}
	var allowed unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &allowed); err != nil {
		return 0, 0, false
	}
	return len(entries), int(min(allowed.Cur, 1<<31)), true
}
