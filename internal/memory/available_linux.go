package memory

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Available is how much memory the process can have, in bytes: what the machine has, or
// less if its container (control group) allows less. False if it cannot be told.
func Available() (uint64, bool) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, false
	}
	machine := info.Totalram * uint64(info.Unit)
	if group, limited := groupLimit(os.DirFS("/")); limited {
		return min(machine, group), true
	}
	return machine, true
}

// groupLimit is the smallest memory limit of the control groups that the process is in.
// Source: cgroups(7), and Documentation/admin-guide/cgroup-v2.rst of Linux.
func groupLimit(root fs.FS) (smallest uint64, limited bool) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max" // version 2
		if parts[0] != "0" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// In a container the path may be the one outside, which is not there: then
		// the mount is the container's own group.
		for dir := path.Join(mount, parts[2]); ; dir = path.Dir(dir) {
			if n, ok := readLimit(root, path.Join(dir, file)); ok && (!limited || n < smallest) {
				smallest, limited = n, true
			}
			if dir == mount || len(dir) < len(mount) {
				break
			}
		}
	}
	return smallest, limited
}

func readLimit(root fs.FS, name string) (uint64, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil // "max" is no number
}
