package memory

import (
	"testing"
	"testing/fstest"
)

func TestControlGroups(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, c := range map[string]struct {
		files   fstest.MapFS
		want    uint64
		limited bool
	}{
		"none": {fstest.MapFS{}, 0, false},
		"version 2": {fstest.MapFS{
			"proc/self/cgroup":                      file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max":          file("2000\n"),
			"sys/fs/cgroup/a/memory.max":            file("1000\n"),
			"sys/fs/cgroup/memory.max":              file("max\n"),
			"sys/fs/cgroup/elsewhere/b/memory.max":  file("1\n"),
			"sys/fs/cgroup/memory/a/b/memory.limit": file("1\n"),
		}, 1000, true},
		"version 2 without limit": {fstest.MapFS{
			"proc/self/cgroup":           file("0::/\n"),
			"sys/fs/cgroup/memory.max":   file("max\n"),
			"sys/fs/cgroup/a/memory.max": file("1\n"),
		}, 0, false},
		"a container's own view": {fstest.MapFS{
			"proc/self/cgroup":         file("0::/docker/0123\n"),
			"sys/fs/cgroup/memory.max": file("512\n"),
		}, 512, true},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": file("5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n"),
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":      file("4096\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":        file("9223372036854771712\n"),
			"sys/fs/cgroup/cpu,cpuacct/a/memory.limit_in_bytes": file("1\n"),
			"sys/fs/cgroup/memory/a/memory.max_usage_in_bytes":  file("1\n"),
		}, 4096, true},
	} {
		if got, limited := groupLimit(c.files); got != c.want || limited != c.limited {
			t.Errorf("%s: %d, %v; want %d, %v", name, got, limited, c.want, c.limited)
		}
	}
}
