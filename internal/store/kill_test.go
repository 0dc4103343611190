package store

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// killDir, when set, makes the test binary the process that TestKill kills: it writes to the data folder it names.
const killDir = "DORMOUSE_STORE_TEST_KILL"

// TestKill writes from a process of its own to a real folder, kills that process, and looks at what is left; three times over the same folder.
func TestKill(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		writeUntilKilled(dir)
	}
	dir := t.TempDir()
	for range 3 {
		confirmed, removed := killWriter(t, dir)
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		verify(t, s)
		// Unit of work n puts n to queue 1 and to queue 2, and removes n-100 from queue 1. So what is left must begin no later than
		// at the first that was not removed, have no gap, go as far as what was confirmed, and agree in both queues.
		one, two := scan(t, s, 1, 0, 0), scan(t, s, 2, 0, 0)
		if len(one) == 0 || len(two) == 0 {
			t.Fatalf("%d and %d records left, %d confirmed", len(one), len(two), confirmed)
		}
		for i, r := range one {
			if want := one[0].seq + uint64(i); r.seq != want || !strings.HasPrefix(r.record, fmt.Sprint(want, " ")) {
				t.Fatalf("record %d is %d: %.20q", want, r.seq, r.record)
			}
		}
		last := one[len(one)-1].seq
		if one[0].seq < removed || one[0].seq+99 != last {
			t.Errorf("queue 1 has %d to %d; removals were confirmed up to %d", one[0].seq, last, removed)
		}
		if last < confirmed || two[len(two)-1].seq != last {
			t.Errorf("queue 1 ends with %d, queue 2 with %d, confirmed were %d", last, two[len(two)-1].seq, confirmed)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killWriter runs a writer, kills it, and returns what it had been told.
func killWriter(t *testing.T, dir string) (confirmed, removed uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), killDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // the writer ends when this process does
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		confirmed, err = strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			t.Fatalf("the writer says %q", lines.Text())
		}
		if n == 100 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if confirmed < 500 {
		t.Fatalf("the writer ended early, after %d", confirmed)
	}
	return confirmed, max(confirmed, 100) - 100
}

func writeUntilKilled(dir string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	s, err := Open(dir, Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	told := printer{ahead: make(chan struct{}, 50)}
	seq := s.Counters(1).NextSeq
	filler := strings.Repeat("x", 500)
	puts := map[uint64]*Put{} // nothing of what an earlier process put
	for ; ; seq++ {
		tx := s.Begin()
		puts[seq] = tx.Put(1, seq, blob(fmt.Sprint(seq, " ", filler)), false)
		tx.Put(2, seq, blob(fmt.Sprint(seq)), false)
		if seq >= 100 {
			tx.Remove(1, seq-100, puts[seq-100])
			delete(puts, seq-100)
		}
		if seq%8 == 7 {
			tx.Purge(2, 0, seq-7)
			told.ahead <- struct{}{}
			tx.Commit(told, seq)
		} else {
			tx.End()
		}
	}
}

// printer prints the tags it is told. The writer is ahead by as many commits as the channel takes.
type printer struct{ ahead chan struct{} }

func (p printer) Committed(tag uint64, err error) {
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(tag)
	<-p.ahead
}
