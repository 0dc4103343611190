package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// damagedStore makes a folder in which each of some queues has records of 200 bytes, and returns a function that finds the
// content of a record in the folder's tables and spoils it.
func damagedStore(t *testing.T, queues QueueID, records uint64) (files *vfs.MemFS, spoil func(q QueueID, seq uint64)) {
	t.Helper()
	files = vfs.NewMem()
	s := mustOpen(t, files)
	content := map[QueueID]map[uint64][]byte{}
	random := rand.NewChaCha8([32]byte{})
	for q := QueueID(1); q <= queues; q++ {
		content[q] = map[uint64][]byte{}
		tx := s.Begin()
		for seq := range records {
			record := make([]byte, 200)
			_, _ = random.Read(record) // so that it is not compressed
			content[q][seq] = record[100:120]
			tx.Put(q, seq, blob(record), false)
		}
		end(t, tx)
	}
	closeVerified(t, s)
	return files, func(q QueueID, seq uint64) {
		t.Helper()
		if !spoilBytes(t, files, content[q][seq]) {
			t.Fatalf("record %d of queue %d is not in a table", seq, q)
		}
	}
}

func spoilBytes(t *testing.T, files *vfs.MemFS, part []byte) (found bool) {
	t.Helper()
	names, err := files.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		b, err := files.UnsafeGetFileDataBuffer(files.PathJoin("data", name))
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, part); i >= 0 {
			b[i] ^= 0xff
			found = true
		}
	}
	return found
}

func openLogged(t *testing.T, files vfs.FS) (*Store, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	s, err := openStore("data", Options{FS: files, Logger: slog.New(slog.NewTextHandler(log, nil))}, testTuning, false)
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

// TestDamagedBlock: what cannot be read is named and set aside, and all else is read, of the same queue and of others.
func TestDamagedBlock(t *testing.T) {
	const records = 1000
	files, spoil := damagedStore(t, 3, records)
	spoil(2, 500)
	s, log := openLogged(t, files)
	got := scan(t, s, 2, 0, 0)
	if len(got) < records-200 || len(got) >= records {
		t.Errorf("%d of %d records are left", len(got), records)
	}
	if got[0].seq != 0 || got[len(got)-1].seq != records-1 {
		t.Errorf("what is left is %d to %d", got[0].seq, got[len(got)-1].seq)
	}
	for _, q := range []QueueID{1, 3} {
		if n := len(scan(t, s, q, 0, 0)); n != records {
			t.Errorf("queue %d has %d records", q, n)
		}
	}
	if c := s.Counters(2); c.Messages != uint64(len(got)) || c.Bytes != 200*uint64(len(got)) || c.NextSeq != records {
		t.Errorf("counters %+v, %d records", c, len(got))
	}
	tx := s.Begin()
	tx.Put(2, records, blob("new"), false)
	tx.RemoveScanned(2, 0, 200)
	end(t, tx)
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	names, err := files.List("data/damaged")
	if err != nil || len(names) != 2 {
		t.Errorf("set aside: %v, %v", names, err)
	}
	closeVerified(t, s)
	for _, want := range []string{"data is damaged", "set aside", "of queue 2"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	if n := strings.Count(log.String(), "\n"); n > 5 {
		t.Errorf("the log has %d lines", n)
	}
	s = mustOpen(t, files)
	if n := len(scan(t, s, 2, 0, 0)); n != len(got) {
		t.Errorf("%d records after a restart", n)
	}
	closeVerified(t, s)
}

// TestDamageAnywhere flips a bit at one place after another of a table: the store opens, or says why not; all that it has is sound.
func TestDamageAnywhere(t *testing.T) {
	const records, queues = 300, 2
	for place := range 24 {
		bits := []byte{1, 0xff}[place%2]
		files, _ := damagedStore(t, queues, records)
		names, err := files.List("data")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, ".sst") {
				continue
			}
			b, err := files.UnsafeGetFileDataBuffer(files.PathJoin("data", name))
			if err != nil {
				t.Fatal(err)
			}
			at := len(b) * place / 16
			if place >= 16 { // more of them near the end, where the index is
				at = len(b) - 1 - 40*(place-16)
			}
			b[max(0, at)] ^= bits
		}
		var log bytes.Buffer
		s, err := openStore("data", Options{FS: files, Logger: slog.New(slog.NewTextHandler(&log, nil))}, testTuning, false)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("place %d: %v", place, err)
			}
			continue
		}
		total := 0
		for q := range QueueID(queues) {
			err := s.Scan(q+1, 0, 0, func(uint64, []byte, []byte) error { total++; return nil })
			if err != nil {
				t.Errorf("place %d: scan: %v\n%s", place, err, &log)
			}
		}
		if bits == 1 && total != queues*records && place < 16 {
			t.Errorf("place %d: %d records are left after one bit was flipped\n%s", place, total, &log)
		}
		tx := s.Begin()
		tx.Put(1, 5000+skippedNumbers, blob("new"), false)
		end(t, tx)
		s.engine.RLock()
		lost := s.engine.current.damage.found()
		s.engine.RUnlock()
		if len(lost) > 0 {
			t.Errorf("place %d: still damaged: %v", place, lost)
		}
		if err := s.Close(); err != nil {
			t.Errorf("place %d: close: %v", place, err)
		}
	}
}

// TestDamageInCompaction: damage that nobody but a compaction reads is mended as well.
func TestDamageInCompaction(t *testing.T) {
	const records = 1000
	files, spoil := damagedStore(t, 3, records)
	spoil(2, 700)
	s, _ := openLogged(t, files)
	s.engine.RLock()
	e := s.engine.current
	_ = e.db.Compact(t.Context(), []byte{spaceDurable}, []byte{spaceDurable + 1}, false)
	s.engine.RUnlock()
	select {
	case <-e.damage.dealt:
	case <-time.After(10 * time.Second):
		t.Fatal("the damage is not mended")
	}
	if got := scan(t, s, 2, 0, 0); len(got) < records-200 || len(got) >= records {
		t.Errorf("%d of %d records are left", len(got), records)
	}
	closeVerified(t, s)
}

// TestRemovalOfWhatIsDamaged: purges and removals go on over damage.
func TestRemovalOfWhatIsDamaged(t *testing.T) {
	const records = 1000
	files, spoil := damagedStore(t, 5, records)
	for q := QueueID(1); q <= 4; q++ {
		spoil(q, 500)
	}
	s, _ := openLogged(t, files)
	tx := s.Begin()
	tx.Remove(1, 500, nil)
	tx.RemoveScanned(1, 501, 200)
	tx.Purge(2, 0, maxSeq)
	tx.Purge(3, 490, 510)
	tx.DropQueue(4)
	end(t, tx)
	for q, most := range map[QueueID]int{1: records - 1, 2: 0, 3: records - 20, 4: 0} {
		if got := scan(t, s, q, 0, 0); len(got) > most {
			t.Errorf("queue %d has %d records", q, len(got))
		}
	}
	if got := scan(t, s, 5, 0, 0); len(got) != records {
		t.Errorf("the other queue has %d records", len(got))
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	closeVerified(t, s)
}

// TestDamagedDefinitions: without its definitions a folder is not opened, and stays as it is.
func TestDamagedDefinitions(t *testing.T) {
	files := vfs.NewMem()
	s := mustOpen(t, files)
	value := make([]byte, 8<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(value)
	tx := s.Begin()
	tx.SetDefinition("queue\x00/\x00q", value)
	tx.Put(1, 1, blob("x"), false)
	end(t, tx)
	closeVerified(t, s)
	if !spoilBytes(t, files, value[5000:5020]) {
		t.Fatal("the definition is not in a table")
	}
	before := snapshot(t, files)
	_, err := openStore("data", Options{FS: files}, testTuning, false)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "restore") {
		t.Errorf("open: %v", err)
	}
	if after := snapshot(t, files); after != before {
		t.Errorf("the folder was\n%s\nis\n%s", before, after)
	}
}

// snapshot lists the files of the data folder with their content's checksum.
func snapshot(t *testing.T, files *vfs.MemFS) string {
	t.Helper()
	names, err := files.List("data")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		content, err := files.UnsafeGetFileDataBuffer(files.PathJoin("data", name))
		if errors.Is(err, fs.ErrNotExist) || err != nil {
			continue // a folder
		}
		sum := uint64(0)
		for len(content) >= 8 {
			sum = sum*31 + binary.BigEndian.Uint64(content)
			content = content[8:]
		}
		b.WriteString(name + " " + string(binary.AppendUvarint(nil, sum)) + "\n")
	}
	return b.String()
}
