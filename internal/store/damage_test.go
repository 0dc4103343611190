package store

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestDamagedRecords: what cannot be read is reported, can be removed all the same, and harms no other queue.
func TestDamagedRecords(t *testing.T) {
	memory := vfs.NewMem()
	s := mustOpen(t, memory)
	const records = 1000
	random := rand.NewChaCha8([32]byte{})
	var spoil [][]byte
	for q := QueueID(1); q <= 5; q++ {
		tx := s.Begin()
		for seq := range uint64(records) {
			record := make([]byte, 200)
			_, _ = random.Read(record) // so that it is not compressed
			if seq == 500 {
				spoil = append(spoil, record[100:120])
			}
			tx.Put(q, seq, blob(record), false)
		}
		end(t, tx)
	}
	closeVerified(t, s)

	names, err := memory.List("data")
	if err != nil {
		t.Fatal(err)
	}
	spoilt := 0
	for _, name := range names {
		content, err := memory.UnsafeGetFileDataBuffer(memory.PathJoin("data", name))
		if err != nil {
			continue // a folder
		}
		for _, part := range spoil[:4] {
			if i := bytes.Index(content, part); i >= 0 {
				content[i] ^= 0xff
				spoilt++
			}
		}
	}
	if spoilt < 4 {
		t.Fatalf("found %d records to spoil", spoilt)
	}

	var log bytes.Buffer
	s, err = openStore("data", Options{FS: memory, Logger: slog.New(slog.NewTextHandler(&log, nil))}, testTuning, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	read := func(q QueueID) error {
		return s.Scan(q, 0, 0, func(uint64, []byte, []byte) error { return nil })
	}
	if err := read(1); !errors.Is(err, ErrDamaged) {
		t.Errorf("scan: %v", err)
	}
	tx := s.Begin()
	tx.Remove(1, 500, nil)
	tx.RemoveScanned(1, 501, 10)
	tx.Purge(2, 0, maxSeq)
	tx.Purge(3, 490, 510)
	tx.DropQueue(4)
	end(t, tx)
	for _, q := range []QueueID{2, 4, 5} {
		if err := read(q); err != nil {
			t.Errorf("scan of queue %d afterwards: %v", q, err)
		}
	}
	if got := scan(t, s, 5, 0, 0); len(got) != records {
		t.Errorf("the other queue has %d records", len(got))
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "damaged") {
		t.Errorf("logged:\n%s", &log)
	}
}
