package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Process is a broker's process on this machine. The zero value is one that is not known, of which nothing is told.
type Process struct {
	// ID is its number, 0 if it is not known.
	ID int
	// Dir is where it keeps its data, empty if that is not known.
	Dir string
}

// clockTick is the unit of CPU times in /proc: USER_HZ is 100 on every Linux.
const clockTick = 10 * time.Millisecond

// CPU is the processor time that the process has used in user and system mode since it began.
func (p Process) CPU() (time.Duration, error) {
	stat, err := p.read("stat")
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may have spaces; state is the first field behind it, utime and stime the 12th and 13th.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("the CPU time of process %d is not in /proc/%d/stat", p.ID, p.ID)
	}
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * clockTick, errors.Join(err1, err2)
}

// Resident is the memory of the process that is in use, in bytes.
func (p Process) Resident() (int64, error) {
	status, err := p.read("status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("the resident memory of process %d is not in /proc/%d/status", p.ID, p.ID)
}

func (p Process) read(name string) ([]byte, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.ID, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no process %d on this machine, or no /proc to tell of it (Linux only)", p.ID)
	}
	return content, err
}

// Disk is how much the files in Dir take, in bytes. Files that vanish meanwhile count as nothing.
func (p Process) Disk() (int64, error) {
	var total int64
	err := filepath.WalkDir(p.Dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}

// usage is the CPU time of a broker and of this process.
type usage struct{ broker, client time.Duration }

// use reads the CPU times. What is not known stays 0.
func (p Process) use() (u usage, err error) {
	if p.ID != 0 {
		if u.broker, err = p.CPU(); err != nil {
			return u, err
		}
	}
	u.client, _ = Process{ID: os.Getpid()}.CPU() // where there is no /proc nothing is said of it
	return u, nil
}
