package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestProcessTellsOfThisOne(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc")
	}
	p := Process{ID: os.Getpid(), Dir: t.TempDir()}
	before, err := p.CPU()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for sum := 0; ; sum++ { // until at least one tick was used
		after, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		if after > before {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("a minute of work takes no CPU time")
		}
	}
	if resident, err := p.Resident(); err != nil || resident < 1<<20 {
		t.Errorf("resident %d, %v", resident, err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "file"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if disk, err := p.Disk(); err != nil || disk != 1000 {
		t.Errorf("disk %d, %v", disk, err)
	}
}

func TestProcessThatIsNotThere(t *testing.T) {
	p := Process{ID: 1 << 30}
	if _, err := p.CPU(); err == nil || !strings.Contains(err.Error(), "no process") {
		t.Errorf("error %v", err)
	}
	if _, err := p.Resident(); err == nil {
		t.Error("it has memory")
	}
}
