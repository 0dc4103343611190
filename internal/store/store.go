package store

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// QueueID names a queue in the store. It must never be used for another queue.
type QueueID uint64

// SyncPolicy says when what is written is synced to disk.
type SyncPolicy int

const (
	// SyncAlways syncs each group before its waiters are told. It is the default, and the only policy under which a confirm
	// outlives every crash.
	SyncAlways SyncPolicy = iota

	// SyncInterval tells waiters before the write is on disk, and syncs five times a second. A crash of the process may lose as much
	// as one of the machine, since Pebble buffers what is not synced.
	SyncInterval

	// SyncNever is SyncInterval without the syncs: what is written reaches the operating system in blocks of 32 KiB.
	SyncNever
)

// MaxPending is the number of bytes (records, and an estimate for each operation) that may wait to be written before Begin blocks.
const MaxPending = 64 << 20

// Options of a store. The zero value is for a store on disk that syncs always and logs nothing.
type Options struct {
	FS     vfs.FS       // where the data folder is; nil is the operating system's file system
	Logger *slog.Logger // nil discards
	Sync   SyncPolicy

	// OnFailure, if not nil, is called when Err changes, with what it returns from then on: an error when the store has become unable
	// to write, nil when it can write again. It is called in the committer's goroutine and must not block.
	OnFailure func(err error)
}

// Store keeps records and definitions. Its methods are safe for concurrent use.
type Store struct {
	dir    string
	files  vfs.FS
	logger *slog.Logger
	sync   SyncPolicy
	memory bool
	lock   *pebble.Lock
	txs    sync.Pool
	tuning tuning

	mu       sync.Mutex
	room     sync.Cond // full was cleared, or closing set; with mu
	open     *group    // gathers
	inFlight int       // size of the group being written
	closing  bool
	full     atomic.Bool // written under mu

	wake chan struct{} // something happened that the committer should look at
	stop chan struct{} // closed by Close
	done chan struct{} // closed when the committer has ended

	failure   atomic.Pointer[error] // see Err
	onFailure func(error)
	closeErr  error // set before done is closed

	states struct {
		sync.RWMutex // held by the committer for changes only
		byID         map[QueueID]*queueState
	}

	engine struct {
		sync.RWMutex // read-held while the instance is in use by readers; the committer needs no lock to use it
		current      *engine
		err          error // why current is nil
	}

	committer    committer
	beyondRepair error // damage that could not be mended; the committer's
}

// tuning is what tests set otherwise.
type tuning struct {
	lazy, soft      time.Duration // see urgency
	sync            time.Duration // of SyncInterval
	retry, retryMax time.Duration // between attempts to write again
	memTable        uint64        // bytes of a Pebble memtable
	block           int           // bytes of a block of a table
	pending         int           // see MaxPending
	trimAfter       uint64        // see Store.trim
	fewRecords      uint64        // see batchWriter.deleteRecords
}

var defaultTuning = tuning{
	lazy: 10 * time.Millisecond, soft: 250 * time.Millisecond,
	sync:  200 * time.Millisecond,
	retry: 100 * time.Millisecond, retryMax: 5 * time.Second,
	memTable: 16 << 20,
	block:    32 << 10, // records are read in order, many at a time
	pending:  MaxPending,

	trimAfter:  4096,
	fewRecords: 256,
}

// Open opens the data folder dir, and makes it if there is none. Transient records that an earlier process left are dropped.
// Errors: ErrInUse, ErrNewerFormat, ErrDamaged, and what the file system says.
func Open(dir string, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	return openStore(dir, o, defaultTuning, false)
}

// OpenMemory opens an empty store in memory, which ends with Close. It uses o.Logger only.
func OpenMemory(o Options) (*Store, error) {
	o.FS, o.Sync = vfs.NewMem(), SyncNever
	return openStore("memory", o, defaultTuning, true)
}

func openStore(dir string, o Options, t tuning, memory bool) (*Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		dir: dir, files: o.FS, logger: o.Logger, sync: o.Sync, memory: memory, tuning: t, onFailure: o.OnFailure,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	s.txs.New = func() any { return &Tx{s: s} }
	s.room.L = &s.mu
	s.open = &group{}

	var err error
	var exists bool
	if s.lock, exists, err = lockFolder(s.files, dir); err != nil {
		return nil, err
	}
	e, err := s.openSound(exists)
	if err != nil {
		if errors.Is(err, ErrDamaged) {
			err = fmt.Errorf("%w; restore %s from a copy, or move it away to start empty", err, dir)
		} else {
			err = fmt.Errorf("open the data folder %s: %w", dir, err)
		}
		return nil, errors.Join(err, s.lock.Close())
	}
	s.engine.current = e
	s.open.number = s.committer.written + 1
	go s.commitLoop()
	return s, nil
}

// openSound opens an engine and loads what is in it. What is damaged is mended, unless it is beyond that: then nothing is touched.
func (s *Store) openSound(exists bool) (*engine, error) {
	if exists {
		if err := s.checkReadable(); err != nil {
			return nil, err
		}
	}
	e, err := s.openEngine()
	if err != nil {
		return nil, err
	}
	err = s.recover(e, nil)
	if errors.Is(err, ErrDamaged) && len(e.damage.found()) > 0 {
		return s.replace(e)
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (s *Store) openEngine() (*engine, error) {
	return openEngine(s.dir, engineOptions{fs: s.files, lock: s.lock, logger: s.logger, memory: s.memory, memTable: s.tuning.memTable, block: s.tuning.block, onFail: s.awaken})
}

// Close writes what is pending, tells all waiters, and closes the store. Units of work that end later are told ErrClosed.
// The error, if any, says that something pending could not be written. A second call returns what the first did.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		close(s.stop)
		s.room.Broadcast()
	}
	s.mu.Unlock()
	<-s.done
	return s.closeErr
}

// Err returns nil while the store can write, and otherwise why it cannot (ErrUnavailable) until it can again.
func (s *Store) Err() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// setFailure sets what Err returns, and returns it; a nil cause is the end of the failure.
func (s *Store) setFailure(cause error) error {
	var err error
	if cause == nil {
		s.failure.Store(nil)
	} else {
		err = fmt.Errorf("%w: %w", ErrUnavailable, cause)
		s.failure.Store(&err)
	}
	return err
}

// Usage tells how much room there is.
type Usage struct {
	Used uint64 // bytes that the store takes on disk
	Free uint64 // bytes that are free on the disk; 0 with a file system that cannot tell
}

// Usage returns how much the store takes and how much room is left on its disk. It takes long enough not to be asked for each message.
func (s *Store) Usage() (Usage, error) {
	e, release, err := s.reader()
	if err != nil {
		return Usage{}, err
	}
	defer release()
	m := e.db.Metrics()
	// Of the log in use, PhysicalSize knows only how large it was when it was opened.
	u := Usage{Used: m.DiskSpaceUsage() - m.WAL.PhysicalSize + max(m.WAL.PhysicalSize, m.WAL.Size)}
	disk, err := s.files.GetDiskUsage(s.dir)
	if err != nil && !errors.Is(err, vfs.ErrUnsupported) {
		return u, err
	}
	u.Free = disk.AvailBytes
	return u, nil
}

// Memory is how much the engine holds in memory beside the Go heap, in bytes: what is not in tables yet, and the cache.
func (s *Store) Memory() uint64 {
	e, release, err := s.reader()
	if err != nil {
		return 0
	}
	defer release()
	m := e.db.Metrics()
	return m.MemTable.Size + m.MemTable.ZombieSize + uint64(m.BlockCache.Size)
}

// noteRoom sets full by what is pending; with mu.
func (s *Store) noteRoom() {
	full := s.open.size()+s.inFlight > s.tuning.pending
	if full == s.full.Load() {
		return
	}
	s.full.Store(full)
	if !full {
		s.room.Broadcast()
	}
}

func (s *Store) awaitRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.full.Load() && !s.closing {
		s.room.Wait()
	}
}

func (s *Store) awaken() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
