package conformance

import (
	"fmt"
	"strconv"
	"strings"
)

// version is the RabbitMQ series whose behaviour is expected.
type version struct{ major, minor int }

var (
	v40 = version{4, 0}
	v43 = version{4, 3}
)

func (v version) before(o version) bool {
	return v.major < o.major || v.major == o.major && v.minor < o.minor
}

func (v version) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

func parseVersion(s string) (version, error) {
	major, rest, _ := strings.Cut(s, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	if err != nil {
		return version{}, fmt.Errorf("version %q: %w", s, err)
	}
	b, err := strconv.Atoi(minor)
	if err != nil {
		return version{}, fmt.Errorf("version %q: %w", s, err)
	}
	return version{a, b}, nil
}

// changed is an expectation that differs between versions.
type changed struct {
	in          version
	before, now any
}

// changedIn expects before up to the version and now from it on. Either may be another changed.
func changedIn(v version, before, now any) changed { return changed{v, before, now} }

// resolve returns what is expected of v.
func resolve(want any, v version) any {
	for {
		ch, ok := want.(changed)
		switch {
		case !ok:
			return want
		case v.before(ch.in):
			want = ch.before
		default:
			want = ch.now
		}
	}
}
