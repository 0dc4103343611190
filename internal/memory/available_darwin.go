package memory

import "golang.org/x/sys/unix"

// Available is how much memory the machine has, in bytes; false if it cannot be told.
func Available() (uint64, bool) {
	n, err := unix.SysctlUint64("hw.memsize")
	return n, err == nil
}
