package ladder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// KeyPrefix begins every ladder key. A message's own routing keys must not begin with it.
const KeyPrefix = "dm."

// longestDestination leaves room for the digits of any delay within the 255 bytes of a routing key (AMQP 0-9-1
// shortstr), whatever the ladder's settings.
const longestDestination = 255 - len("dm.36.9.9.23.5.9.5.9.9.")

// ExchangeDestination is the destination of messages that go to an exchange after their delay.
func ExchangeDestination(name string) string { return destination("x." + name) }

// QueueDestination is the destination of messages that go straight to a queue after their delay.
func QueueDestination(name string) string { return destination("q." + name) }

// destination replaces a name by its hash where it would not fit, and where one of its words is a wildcard of topic
// bindings and so would match other destinations too.
func destination(d string) string {
	if len(d) <= longestDestination && !hasWildcard(d) {
		return d
	}
	sum := sha256.Sum256([]byte(d))
	return "h." + hex.EncodeToString(sum[:])
}

func hasWildcard(d string) bool {
	for word := range strings.SplitSeq(d, ".") {
		if word == "*" || word == "#" {
			return true
		}
	}
	return false
}

// DestinationPattern is the key by which a destination is bound to the exchange Due.
func DestinationPattern(destination string) string {
	return "dm" + strings.Repeat(".*", unitCount) + "." + destination
}

// Key rounds d up and writes the ladder key. It returns the rounded delay as well.
func (l *Ladder) Key(d time.Duration, destination string) (string, time.Duration, error) {
	d, err := l.Round(d)
	if err != nil {
		return "", 0, err
	}
	b := make([]byte, 0, len("dm.36.9.9.23.5.9.5.9.9.")+len(destination))
	b = append(b, KeyPrefix...)
	for _, n := range digits(d) {
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, '.')
	}
	return string(append(b, destination...)), d, nil
}

// ErrNotKey is wrapped by the error for a string that is not a ladder key.
var ErrNotKey = errors.New("not a ladder key")

// ParseKey reads a ladder key.
func ParseKey(key string) (delay time.Duration, destination string, err error) {
	rest, ok := strings.CutPrefix(key, KeyPrefix)
	if !ok {
		return 0, "", fmt.Errorf("%w: %q", ErrNotKey, key)
	}
	for _, u := range units() {
		word, after, _ := strings.Cut(rest, ".")
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || n > u.top || strconv.Itoa(n) != word {
			return 0, "", fmt.Errorf("%w: %q: digit %q of %s", ErrNotKey, key, word, u.name)
		}
		delay += time.Duration(n) * u.size
		rest = after
	}
	if rest == "" {
		return 0, "", fmt.Errorf("%w: %q: no destination", ErrNotKey, key)
	}
	return delay, rest, nil
}
