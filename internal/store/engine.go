package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// engine is one Pebble instance. It lives until a write fails; then the store opens another.
type engine struct {
	db      *pebble.DB
	guard   *guardFS
	batch   *pebble.Batch // used again for each group
	options *pebble.Options
	damage  damage
	closed  bool
}

type engineOptions struct {
	fs     vfs.FS
	lock   *pebble.Lock
	logger *slog.Logger
	onFail func() // a write failed, or damage was found; must not block

	memory   bool // nothing needs to survive the process
	readOnly bool
	memTable uint64
	block    int
}

// openEngine opens Pebble in dir. The error wraps ErrDamaged when it is the content of the folder that is wrong.
func openEngine(dir string, o engineOptions) (*engine, error) {
	e := &engine{guard: &guardFS{FS: o.fs, onFail: o.onFail}, damage: damage{dealt: make(chan struct{})}}
	e.options = e.pebbleOptions(o)
	db, err := pebble.Open(dir, e.options)
	if failure := e.guard.failure(); failure != nil {
		if err == nil {
			_ = db.Close()
		}
		return nil, failure
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, readError(err)
	}
	e.db = db
	e.batch = db.NewBatch(pebble.WithInitialSizeBytes(64<<10), pebble.WithMaxRetainedSizeBytes(8<<20))
	return e, nil
}

// pebbleOptions are sized for a broker on a small machine: at most 4 memtables of 16 MiB and a cache of 32 MiB. Large memtables let more
// messages live and die without reaching a table.
func (e *engine) pebbleOptions(o engineOptions) *pebble.Options {
	p := &pebble.Options{
		FS:                          e.guard,
		Lock:                        o.lock,
		Logger:                      pebbleLogger{o.logger, e.guard},
		FormatMajorVersion:          pebble.FormatValueSeparation,
		DisableWAL:                  o.memory,
		ReadOnly:                    o.readOnly,
		CacheSize:                   32 << 20,
		MemTableSize:                o.memTable,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               128 << 20,
		MaxOpenFiles:                512,
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { o.logger.Debug("background work failed", "err", err.Error()) },
			PossibleAPIMisuse: func(info pebble.PossibleAPIMisuseInfo) {
				if info.Kind == pebble.NondeterministicSingleDelete {
					o.logger.Error("a record was written twice", "key", fmt.Sprintf("%x", info.UserKey))
				}
			},
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				if e.guard.failure() == nil && e.damage.report(info.Path, keySpan{info.Bounds.Start, info.Bounds.End.Key}) {
					o.logger.Error("data is damaged", "file", info.Path, "err", info.Details.Error())
					o.onFail()
				}
			},
		},
	}
	p.TargetFileSizes[0] = 8 << 20
	p.FlushSplitBytes = 4 << 20 // so that compactions of different queues need not wait for each other
	for i := range p.Levels {
		p.Levels[i].BlockSize = o.block
	}
	p.EnsureDefaults()
	return p
}

// deleteRange deletes the records and marks of q in r, unsynced. It is a help only: nobody waits for it, and if it fails, the guard knows.
func (e *engine) deleteRange(space byte, q QueueID, r span) {
	_ = e.db.DeleteRange(appendRecordKey(nil, space, q, r.lo, partMark), appendRecordKey(nil, space, q, r.hi, partMark), pebble.NoSync)
}

// finish moves what is in memory to tables, so that the next open has nothing to replay.
func (e *engine) finish() error {
	if err := e.guard.failure(); err != nil {
		return err
	}
	if err := e.db.Flush(); err != nil {
		return err
	}
	return e.guard.failure()
}

// close may be called again.
func (e *engine) close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	err := e.batch.Close()
	return errors.Join(err, e.db.Close())
}

// pebbleLogger sends what Pebble logs to slog. What Pebble finds fatal ends the instance, not the process.
type pebbleLogger struct {
	logger *slog.Logger
	guard  *guardFS
}

func (l pebbleLogger) log(format string, args []any) {
	if l.logger.Enabled(context.Background(), slog.LevelDebug) {
		l.logger.Debug("pebble: " + fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Infof(format string, args ...any)  { l.log(format, args) }
func (l pebbleLogger) Errorf(format string, args ...any) { l.log(format, args) }
func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.guard.fail(fmt.Errorf("pebble: "+format, args...))
}

// readError marks an error of Pebble that tells of damage.
func readError(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
