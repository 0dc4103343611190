// Package ladder is the arithmetic of the delay ladder: it turns delays into digits, digits into lanes and keys, and
// gives the lanes, exchanges and bindings of a whole ladder as data. It talks to nobody.
//
// A lane is a queue with one constant time to live, so it expires in order and never blocks. A delay is written in
// calendar digits (hundreds of days, tens of days, days, hours, tens of minutes, minutes, tens of seconds, seconds,
// tenths of a second); each digit that is not zero is one lane:
//
//	1 h 30 min = dm.0.0.0.1.3.0.0.0.0.q.email
//
//	publish -> <prefix>.delay --dm.0.0.0.1.#--> lane 1h -> <prefix>.delay.10m --dm.*.*.*.*.3.#--> lane 30m
//	        -> <prefix>.delay.1m --dm.*.*.*.*.*.0.0.0.0.#--> <prefix>.due --dm.*.*.*.*.*.*.*.*.*.q.email--> queue email
//
// Bindings are flat: every exchange binds each lane of its unit and of all smaller ones directly, with zeros for the
// digits skipped, so a run of zeros costs no hop.
//
// The key's form never depends on the settings. A ladder with a smaller maximum or a coarser resolution only has fewer
// lanes; a key that needs a lane which is not there finds no binding at the entry and is returned to its publisher.
package ladder

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dormousemq/dormouse/internal/duration"
)

// Day is 24 hours: the ladder knows no time zones.
const Day = 24 * time.Hour

// The bounds of the settings, and their defaults.
const (
	DefaultPrefix     = "dormouse"
	DefaultMax        = 400*Day - 100*time.Millisecond
	DefaultResolution = 100 * time.Millisecond
	// LeastMax and GreatestMax bound the maximum. RabbitMQ's limit for a time to live is ten years.
	LeastMax    = Day
	GreatestMax = 3650 * Day
)

const longestPrefix = 200 // a lane's name must fit 255 bytes

// ErrTooLong is wrapped by the error for a delay beyond the ladder's maximum.
var ErrTooLong = errors.New("delay is longer than the ladder's maximum")

// A unit is the position of one digit.
type unit struct {
	name string
	size time.Duration
	top  int // its greatest digit
}

// unitCount is the number of digits.
const unitCount = 9

func units() [unitCount]unit {
	return [unitCount]unit{
		{"100d", 100 * Day, int(GreatestMax / (100 * Day))},
		{"10d", 10 * Day, 9},
		{"1d", Day, 9},
		{"1h", time.Hour, 23},
		{"10m", 10 * time.Minute, 5},
		{"1m", time.Minute, 9},
		{"10s", 10 * time.Second, 5},
		{"1s", time.Second, 9},
		{"100ms", 100 * time.Millisecond, 9},
	}
}

// Settings choose a ladder. Zero values mean the defaults.
type Settings struct {
	Prefix string
	// Max is the longest delay, from LeastMax to GreatestMax; it is rounded down to the resolution.
	Max time.Duration
	// Resolution is 100 ms or 1 s.
	Resolution time.Duration
}

// A Ladder is one ladder's settings, checked. It does not change, so it is safe for concurrent use.
type Ladder struct {
	prefix          string
	max, resolution time.Duration
}

// New checks the settings and fills in the defaults. The error names the setting.
func New(s Settings) (*Ladder, error) {
	if s.Prefix == "" {
		s.Prefix = DefaultPrefix
	}
	if s.Resolution == 0 {
		s.Resolution = DefaultResolution
	}
	if s.Max == 0 {
		s.Max = DefaultMax
	}
	switch {
	case strings.HasPrefix(s.Prefix, "amq."):
		return nil, fmt.Errorf("prefix %q: names that begin with amq. belong to the broker", s.Prefix)
	case len(s.Prefix) > longestPrefix:
		return nil, fmt.Errorf("prefix is longer than %d bytes", longestPrefix)
	case s.Resolution != 100*time.Millisecond && s.Resolution != time.Second:
		return nil, fmt.Errorf("resolution %v: must be 100ms or 1s", s.Resolution)
	case s.Max < LeastMax || s.Max > GreatestMax:
		return nil, fmt.Errorf("maximum delay %v: must be between %v (a day) and %v (ten years)", s.Max, LeastMax, GreatestMax)
	}
	return &Ladder{prefix: s.Prefix, max: s.Max.Truncate(s.Resolution), resolution: s.Resolution}, nil
}

// Prefix begins every name.
func (l *Ladder) Prefix() string { return l.prefix }

// Max is the longest delay.
func (l *Ladder) Max() time.Duration { return l.max }

// Resolution is what delays are rounded up to.
func (l *Ladder) Resolution() time.Duration { return l.resolution }

// Round rounds d up to the resolution. A delay that is not positive becomes 0, one beyond the maximum is an error.
func (l *Ladder) Round(d time.Duration) (time.Duration, error) {
	if d <= 0 {
		return 0, nil
	}
	up := d
	if rest := d % l.resolution; rest != 0 {
		up = d - rest + l.resolution
	}
	if up > l.max || up < d {
		return 0, fmt.Errorf("%w: %s, at most %s", ErrTooLong, duration.Format(d), duration.Format(l.max))
	}
	return up, nil
}

// RoundLanes rounds d up to the next delay that passes at most n lanes, so that it costs no more than n hops. Where that
// would be beyond the maximum, d is only rounded to the resolution.
func (l *Ladder) RoundLanes(d time.Duration, n int) (time.Duration, error) {
	up, err := l.Round(d)
	if err != nil {
		return 0, err
	}
	rest := up
	for _, u := range units() {
		if rest < u.size {
			continue
		}
		if n--; n == 0 {
			if rest %= u.size; rest != 0 {
				if coarse := up - rest + u.size; coarse <= l.max {
					return coarse, nil
				}
			}
			break
		}
		rest %= u.size
	}
	return up, nil
}

// digits writes d, rounded and within the greatest maximum, in calendar digits.
func digits(d time.Duration) (out [unitCount]int) {
	for i, u := range units() {
		out[i] = int(d / u.size)
		d %= u.size
	}
	return out
}

// A Lane is one queue of the ladder.
type Lane struct {
	// Queue is its name, as in dormouse.delay.30s.
	Queue string
	// TTL is the time that every message spends in it: x-message-ttl.
	TTL time.Duration
	// Next is the exchange that it dead-letters to.
	Next string

	unit, digit int
}

// first returns the index of the largest unit that has lanes and the greatest digit there.
func (l *Ladder) first() (index, top int) {
	for i, n := range digits(l.max) {
		if n != 0 {
			return i, n
		}
	}
	panic("ladder: the maximum is at least a day")
}

// last returns the index of the smallest unit that has lanes.
func (l *Ladder) last() int {
	if l.resolution == time.Second {
		return 7
	}
	return 8
}

// Lanes lists the lanes, the longest first.
func (l *Ladder) Lanes() []Lane {
	var lanes []Lane
	first, firstTop := l.first()
	for i := first; i <= l.last(); i++ {
		top := units()[i].top
		if i == first {
			top = firstTop
		}
		for n := top; n >= 1; n-- {
			lanes = append(lanes, l.lane(i, n))
		}
	}
	return lanes
}

func (l *Ladder) lane(unit, digit int) Lane {
	ttl := units()[unit].size * time.Duration(digit)
	next := l.Due()
	if unit < l.last() {
		next = l.exchange(unit + 1)
	}
	return Lane{Queue: l.prefix + ".delay." + laneName(ttl), TTL: ttl, Next: next, unit: unit, digit: digit}
}

func laneName(ttl time.Duration) string {
	switch {
	case ttl >= Day:
		return fmt.Sprintf("%dd", ttl/Day)
	case ttl >= time.Hour:
		return fmt.Sprintf("%dh", ttl/time.Hour)
	case ttl >= time.Minute:
		return fmt.Sprintf("%dm", ttl/time.Minute)
	case ttl >= time.Second:
		return fmt.Sprintf("%ds", ttl/time.Second)
	}
	return fmt.Sprintf("%dms", ttl/time.Millisecond)
}

// Path lists the lanes that the delay d, rounded by Round, passes through.
func (l *Ladder) Path(d time.Duration) []Lane {
	var path []Lane
	for i, n := range digits(d) {
		if n != 0 {
			path = append(path, l.lane(i, n))
		}
	}
	return path
}

// Entry is the exchange to publish delayed messages to.
func (l *Ladder) Entry() string { return l.prefix + ".delay" }

// Due is the exchange at the end, to which destinations are bound.
func (l *Ladder) Due() string { return l.prefix + ".due" }

// Unrouted is the exchange, and the queue, of messages whose destination is gone.
func (l *Ladder) Unrouted() string { return l.prefix + ".unrouted" }

func (l *Ladder) exchange(unit int) string { return l.Entry() + "." + units()[unit].name }

// Exchanges lists the topic exchanges that route to lanes: the entry and one for each unit below the largest.
func (l *Ladder) Exchanges() []string {
	names := []string{l.Entry()}
	first, _ := l.first()
	for i := first + 1; i <= l.last(); i++ {
		names = append(names, l.exchange(i))
	}
	return names
}

// A Binding is one binding of the ladder; either Queue or ToExchange is set.
type Binding struct {
	Exchange, Key     string
	Queue, ToExchange string
}

// Bindings lists all bindings of the ladder, the destinations' excepted.
func (l *Ladder) Bindings() []Binding {
	var all []Binding
	first, _ := l.first()
	lanes := l.Lanes()
	for i := first; i <= l.last(); i++ {
		from, wild := l.exchange(i), i // digits above an exchange's own unit are spent
		if i == first {
			from, wild = l.Entry(), 0
		}
		for _, lane := range lanes {
			if lane.unit >= i {
				all = append(all, Binding{Exchange: from, Key: l.pattern(wild, lane.unit, lane.digit), Queue: lane.Queue})
			}
		}
		all = append(all, Binding{Exchange: from, Key: l.pattern(wild, unitCount-1, 0), ToExchange: l.Due()})
	}
	return all
}

// pattern matches keys whose digits are anything before index wild, zero from there up to index at, and digit at it.
func (l *Ladder) pattern(wild, at, digit int) string {
	var b strings.Builder
	b.WriteString("dm")
	for i := 0; i <= at; i++ {
		switch {
		case i < wild:
			b.WriteString(".*")
		case i < at:
			b.WriteString(".0")
		default:
			fmt.Fprintf(&b, ".%d", digit)
		}
	}
	if last := l.last(); last < unitCount-1 && at <= last { // the tenths must be zero: no lane waits for them
		b.WriteString(strings.Repeat(".*", last-at))
		b.WriteString(".0")
	}
	b.WriteString(".#")
	return b.String()
}
