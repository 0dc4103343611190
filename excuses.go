package dormouse

import (
	"sync"
	"time"
)

// excuseLife is how long a message is expected to come back after its connection was lost.
const excuseLife = time.Hour

// excuses remembers the messages that this process held when it lost a connection. The broker counts their return like a crash, but
// this process knows better: it is alive.
type excuses struct {
	mu    sync.Mutex
	known map[string]excuse
}

type excuse struct {
	times int
	last  time.Time
}

// add excuses messages, by their fingerprints.
func (e *excuses) add(now time.Time, fingerprints []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil {
		e.known = map[string]excuse{}
	}
	for f, x := range e.known {
		if now.Sub(x.last) > excuseLife {
			delete(e.known, f)
		}
	}
	for _, f := range fingerprints {
		e.known[f] = excuse{times: e.known[f].times + 1, last: now}
	}
}

// times tells how many returns of a message are excused. fingerprint is only called when any message is.
func (e *excuses) times(fingerprint func() string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.known) == 0 {
		return 0
	}
	return e.known[fingerprint()].times
}

// settled forgets a message.
func (e *excuses) settled(fingerprint func() string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.known) > 0 {
		delete(e.known, fingerprint())
	}
}
