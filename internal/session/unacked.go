package session

import (
	"slices"
	"sort"

	"github.com/dormousemq/dormouse/internal/queue"
)

// unacked is a message that a client has and has not settled yet.
type unacked struct {
	tag   uint64
	queue queue.Source
	entry *queue.Entry // nil once it is settled
	got   bool         // by basic.get, so the limit of the channel does not count it
}

// ledger is the unacknowledged messages of a channel, in the order of their tags.
// Tags only grow. Settled ones in the middle leave a gap until gaps prevail.
type ledger struct {
	list []unacked
	live int
	got  int // of the live ones by basic.get
}

// consumed is how many messages consumers have.
func (l *ledger) consumed() int { return l.live - l.got }

func (l *ledger) add(u unacked) {
	if cap(l.list) == len(l.list) && l.live < len(l.list)/2 {
		l.compact()
	}
	l.list = append(l.list, u)
	l.live++
	if u.got {
		l.got++
	}
}

// settled counts that u is no longer there.
func (l *ledger) settled(u unacked) {
	l.live--
	if u.got {
		l.got--
	}
}

func (l *ledger) compact() {
	l.list = slices.DeleteFunc(l.list, func(u unacked) bool { return u.entry == nil })
}

// take appends to dst the message with that tag, or with multiple all up to and
// with it, and removes them. It returns false, and takes nothing, if there is no
// message with that tag.
func (l *ledger) take(dst []unacked, tag uint64, multiple bool) ([]unacked, bool) {
	i := 0
	if l.first() != tag {
		i = sort.Search(len(l.list), func(i int) bool { return l.list[i].tag >= tag })
	}
	if i == len(l.list) || l.list[i].tag != tag || l.list[i].entry == nil {
		return dst, false
	}
	if !multiple {
		dst = append(dst, l.list[i])
		l.settled(l.list[i])
		l.list[i] = unacked{tag: tag}
		l.trim()
		return dst, true
	}
	for _, u := range l.list[:i+1] {
		if u.entry != nil {
			dst = append(dst, u)
			l.settled(u)
		}
	}
	clear(l.list[:i+1])
	l.list = l.list[i+1:]
	l.trim()
	return dst, true
}

// takeAll appends all messages to dst and removes them.
func (l *ledger) takeAll(dst []unacked) []unacked {
	for _, u := range l.list {
		if u.entry != nil {
			dst = append(dst, u)
		}
	}
	*l = ledger{}
	return dst
}

// putBack returns messages that take or takeAll had removed.
func (l *ledger) putBack(back []unacked) {
	l.compact()
	l.list = append(l.list, back...)
	slices.SortFunc(l.list, func(a, b unacked) int {
		if a.tag < b.tag {
			return -1
		}
		return 1
	})
	l.live = len(l.list)
	for _, u := range back {
		if u.got {
			l.got++
		}
	}
}

func (l *ledger) first() uint64 {
	if len(l.list) == 0 {
		return 0
	}
	return l.list[0].tag
}

// trim drops settled messages from the front.
func (l *ledger) trim() {
	for len(l.list) > 0 && l.list[0].entry == nil {
		l.list[0] = unacked{}
		l.list = l.list[1:]
	}
}
