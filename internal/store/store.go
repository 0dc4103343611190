// Package store keeps queue records and definitions on disk.
package store

import (
	"context"
	"iter"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// QueueID names a queue in the store. It is never used again for another queue.
type QueueID uint64

// SyncPolicy says when committed groups are synced to disk.
type SyncPolicy int

// The sync policies.
const (
	SyncAlways   SyncPolicy = iota // before waiters are told (default)
	SyncInterval                   // a few times a second; waiters are told after the write
	SyncNever                      // when the operating system likes
)

// Options of a store. The zero value is a store on disk that syncs always and logs nothing.
type Options struct {
	FS     vfs.FS       // nil: the operating system's
	Logger *slog.Logger // nil: discards
	Sync   SyncPolicy
}

// Record is one record's content. Size is exactly the number of bytes that AppendTo appends.
type Record interface {
	AppendTo(dst []byte) []byte
	Size() int
}

// Waiter is told that a Tx is durable (err nil) or that its group could not be written yet.
type Waiter interface{ Committed(tag uint64, err error) }

// Counters of one queue.
type Counters struct {
	Messages, Bytes                   uint64 // durable records and their size
	TransientMessages, TransientBytes uint64 // transient ones
	NextSeq                           uint64
	Delivered                         uint64
}

// Store is an open store.
type Store struct{}

// Open opens the store in dir.
func Open(dir string, o Options) (*Store, error) { return &Store{}, nil }

// OpenMemory opens a store in memory.
func OpenMemory(o Options) (*Store, error) { return &Store{}, nil }

// Close closes the store.
func (s *Store) Close() error { return nil }

// Err is the reason why the store cannot write at the moment, or nil.
func (s *Store) Err() error { return nil }

// Counters of q as of the last committed group.
func (s *Store) Counters(q QueueID) Counters { return Counters{} }

// Queues returns the counters of all queues known to the store.
func (s *Store) Queues() map[QueueID]Counters { return nil }

// Definitions returns the committed definitions whose key begins with prefix, in the order of keys.
func (s *Store) Definitions(prefix string) (iter.Seq2[string, []byte], error) {
	return func(func(string, []byte) bool) {}, nil
}

// Scan calls fn with the committed records of q from sequence number from on, at most limit of them.
func (s *Store) Scan(q QueueID, from uint64, limit int, fn func(seq uint64, record, mark []byte) error) error {
	return nil
}

// Begin opens a unit of work.
func (s *Store) Begin() *Tx { return &Tx{} }

// Tx is a unit of work.
type Tx struct{}

// Put adds a record.
func (t *Tx) Put(q QueueID, seq uint64, r Record, transient bool) *Put { return &Put{} }

// Remove removes a record.
func (t *Tx) Remove(q QueueID, seq uint64, p *Put) {}

// RemoveScanned removes a record that Scan delivered, of size bytes (the length of what Scan gave).
// It does what Remove with a nil Put does, and saves the store from looking the size up.
func (t *Tx) RemoveScanned(q QueueID, seq uint64, size int) {}

// Mark sets the mark of a record.
func (t *Tx) Mark(q QueueID, seq uint64, m []byte) {}

// Delivered raises the delivered high-water mark.
func (t *Tx) Delivered(q QueueID, upTo uint64) {}

// SetDefinition sets a definition.
func (t *Tx) SetDefinition(key string, value []byte) {}

// DeleteDefinition deletes a definition.
func (t *Tx) DeleteDefinition(key string) {}

// DropQueue drops everything of q.
func (t *Tx) DropQueue(q QueueID) {}

// Purge drops the records with from <= seq < to.
func (t *Tx) Purge(q QueueID, from, to uint64) {}

// End ends the unit of work; nobody waits.
func (t *Tx) End() {}

// Commit ends the unit of work; w is told.
func (t *Tx) Commit(w Waiter, tag uint64) { w.Committed(tag, nil) }

// Wait ends the unit of work and waits until it is durable.
func (t *Tx) Wait(ctx context.Context) error { return nil }

// Put is a record on its way to the disk.
type Put struct{ committed atomic.Bool }

// Committed reports whether the record is written.
func (p *Put) Committed() bool { return p.committed.Load() }
