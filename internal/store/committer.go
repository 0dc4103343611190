package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// committer is the state of the one goroutine that writes.
type committer struct {
	written  uint64        // number of the last group on disk
	touched  []*queueState // queues of the group being written
	last     *queueState   // the one touched last
	spare    *group        // for the next open group
	unsynced time.Time     // since when something is written and not synced, under SyncInterval
	doubt    bool          // records that were written may be gone, since they were not synced when the engine failed
}

// commitLoop is the committer's goroutine.
func (s *Store) commitLoop() {
	defer close(s.done)
	for {
		g, last := s.nextGroup()
		if err := s.commit(g); err != nil {
			if err := s.retry(g, err); err != nil {
				s.giveUp(err)
				return
			}
		}
		s.mu.Lock()
		s.inFlight = 0
		s.noteRoom()
		s.mu.Unlock()
		g.reset(0)
		s.committer.spare = g
		if last {
			s.giveUp(nil)
			return
		}
	}
}

// nextGroup waits until the open group is due and seals it. It also returns, maybe with an empty group, when the engine has
// failed, and when the store is closing; then last is true.
func (s *Store) nextGroup() (g *group, last bool) {
	var armed urgency
	var due, sync <-chan time.Time
	if t := s.committer.unsynced; !t.IsZero() {
		sync = time.After(time.Until(t.Add(s.tuning.sync)))
	}
	for {
		if e := s.engine.current; !s.memory && e.guard.failure() == nil && len(e.damage.found()) > 0 {
			s.mend()
		}
		s.mu.Lock()
		u, closing := s.open.urgency, s.closing
		if u == urgencyNow || closing || s.engine.current.guard.failure() != nil {
			return s.seal(), closing
		}
		s.mu.Unlock()

		if u > armed {
			armed = u
			due = time.After(s.tuning.soft)
			if u == urgencyLazy {
				due = time.After(s.tuning.lazy)
			}
		}
		select {
		case <-s.wake:
		case <-s.stop:
		case <-due:
			s.mu.Lock()
			closing = s.closing
			return s.seal(), closing
		case <-sync:
			s.syncNow()
			sync = nil
		}
	}
}

// seal makes the open group the one in flight, and releases mu.
func (s *Store) seal() *group {
	defer s.mu.Unlock()
	g := s.open
	next := s.committer.spare
	if next == nil {
		next = &group{}
	}
	s.committer.spare = nil
	next.number = g.number + 1
	s.open = next
	s.inFlight = g.size()
	return g
}

// commit writes g and tells its waiters.
func (s *Store) commit(g *group) error {
	if err := s.write(g); err != nil {
		return err
	}
	tell(g.waiters, nil)
	return nil
}

func tell(waiters []waiting, err error) {
	for _, w := range waiters {
		w.w.Committed(w.tag, err)
	}
}

// retry tells g's waiters that it failed, and opens fresh engines until one has taken g. It returns an error only when the store is
// closed meanwhile.
func (s *Store) retry(g *group, cause error) error {
	s.logger.Error("cannot write, will try again", "folder", s.dir, "err", cause)
	err := s.setFailure(cause)
	if s.onFailure != nil {
		s.onFailure(err)
	}
	tell(g.waiters, err)
	clear(g.waiters)
	g.waiters = g.waiters[:0]
	wait := s.tuning.retry
	for {
		closing := s.pause(wait, err)
		wait = min(2*wait, s.tuning.retryMax)
		cause = s.restart(cause)
		if cause == nil {
			if s.committer.written >= g.number {
				g.written()
			} else {
				cause = s.write(g)
			}
		}
		if cause == nil {
			break
		}
		s.logger.Debug("still cannot write", "folder", s.dir, "err", cause)
		err = s.setFailure(cause)
		if closing {
			return err
		}
	}
	s.logger.Info("can write again", "folder", s.dir)
	_ = s.setFailure(nil)
	if s.onFailure != nil {
		s.onFailure(nil)
	}
	s.mu.Lock()
	if s.open.live > 0 || len(s.open.delivered) > 0 {
		s.open.urgency = urgencyNow
	}
	s.mu.Unlock()
	return nil
}

// pause waits for d, and tells all who commit meanwhile that the store cannot write. It returns at once when the store is closing.
func (s *Store) pause(d time.Duration, err error) (closing bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		s.mu.Lock()
		waiters := s.open.waiters
		s.open.waiters = nil
		s.open.urgency = urgencyNone
		closing = s.closing
		s.mu.Unlock()
		tell(waiters, err)
		if closing {
			return true
		}
		select {
		case <-s.wake:
		case <-timer.C:
			return false
		case <-s.stop:
		}
	}
}

// restart replaces the engine. What the old one wrote stands; what it failed to write, or held in memory only, is gone.
func (s *Store) restart(cause error) error {
	s.engine.Lock()
	old := s.engine.current
	s.engine.current, s.engine.err = nil, s.Err()
	s.engine.Unlock()
	if old != nil {
		old.damage.end()
		if err := old.close(); err != nil {
			s.logger.Debug("close after a failed write", "err", err.Error())
		}
	}
	if s.beyondRepair != nil {
		return s.beyondRepair
	}
	if vfs.IsNoSpaceError(cause) || errors.Is(cause, errDiskFull) {
		if err := s.checkSpace(); err != nil {
			return err
		}
	}
	e, err := s.openEngine()
	if err != nil {
		return err
	}
	if err := s.load(e, s.states.byID); err != nil {
		return errors.Join(err, e.close())
	}
	s.engine.Lock()
	s.engine.current, s.engine.err = e, nil
	s.engine.Unlock()
	s.committer.doubt = s.sync != SyncAlways
	return nil
}

var errDiskFull = errors.New("the disk is full")

// checkSpace says whether there is room to recover. Trying without would fill the disk again with files that only a successful
// recovery removes.
func (s *Store) checkSpace() error {
	const least = 16 << 20
	disk, err := s.files.GetDiskUsage(s.dir)
	if err != nil {
		return nil // it cannot tell: just try
	}
	names, err := s.files.List(s.dir)
	if err != nil {
		return err
	}
	var logs uint64
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		info, err := s.files.Stat(s.files.PathJoin(s.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		logs += uint64(info.Size())
	}
	if need := logs + least; disk.AvailBytes < need {
		return fmt.Errorf("%d MiB free on the disk of %s, %d MiB needed to go on: %w", disk.AvailBytes>>20, s.dir, need>>20, errDiskFull)
	}
	return nil
}

// giveUp ends the store; err is why something could not be written, if so.
func (s *Store) giveUp(err error) {
	s.mu.Lock()
	waiters := s.open.waiters
	s.open.waiters = nil
	s.mu.Unlock()
	tell(waiters, err)

	s.engine.Lock()
	defer s.engine.Unlock()
	if e := s.engine.current; e != nil {
		s.engine.current = nil
		e.damage.end()
		if err := e.finish(); err != nil {
			s.logger.Warn("the next start will take longer", "folder", s.dir, "err", err)
		}
		err = errors.Join(err, e.close())
	}
	s.engine.err = ErrClosed
	s.closeErr = errors.Join(err, s.lock.Close())
}
