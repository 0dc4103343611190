package ladder

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustNew(t testing.TB, s Settings) *Ladder {
	t.Helper()
	l, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDefaultLadderIsTheWireContract(t *testing.T) {
	l := mustNew(t, Settings{})
	if got := len(l.Lanes()); got != 81 {
		t.Errorf("%d lanes, want 81", got)
	}
	toLane, toDue := 0, 0
	for _, b := range l.Bindings() {
		if b.Queue != "" {
			toLane++
		} else {
			toDue++
		}
	}
	if toLane != 407 || toDue != 9 {
		t.Errorf("%d bindings to lanes and %d to due, want 407 and 9", toLane, toDue)
	}
	wantExchanges := []string{
		"dormouse.delay", "dormouse.delay.10d", "dormouse.delay.1d", "dormouse.delay.1h", "dormouse.delay.10m",
		"dormouse.delay.1m", "dormouse.delay.10s", "dormouse.delay.1s", "dormouse.delay.100ms",
	}
	if got := l.Exchanges(); !slices.Equal(got, wantExchanges) {
		t.Errorf("exchanges %v", got)
	}
	lanes := map[string]Lane{}
	for _, lane := range l.Lanes() {
		lanes[lane.Queue] = lane
	}
	for _, c := range []struct {
		queue string
		ttl   time.Duration
		next  string
	}{
		{"dormouse.delay.300d", 300 * Day, "dormouse.delay.10d"},
		{"dormouse.delay.90d", 90 * Day, "dormouse.delay.1d"},
		{"dormouse.delay.7d", 7 * Day, "dormouse.delay.1h"},
		{"dormouse.delay.20h", 20 * time.Hour, "dormouse.delay.10m"},
		{"dormouse.delay.50m", 50 * time.Minute, "dormouse.delay.1m"},
		{"dormouse.delay.5m", 5 * time.Minute, "dormouse.delay.10s"},
		{"dormouse.delay.30s", 30 * time.Second, "dormouse.delay.1s"},
		{"dormouse.delay.9s", 9 * time.Second, "dormouse.delay.100ms"},
		{"dormouse.delay.300ms", 300 * time.Millisecond, "dormouse.due"},
	} {
		if got := lanes[c.queue]; got.TTL != c.ttl || got.Next != c.next {
			t.Errorf("lane %s is %+v, want %v then %s", c.queue, got, c.ttl, c.next)
		}
	}
	for _, want := range []Binding{
		{Exchange: "dormouse.delay", Key: "dm.0.0.0.0.0.5.#", Queue: "dormouse.delay.5m"},
		{Exchange: "dormouse.delay.1h", Key: "dm.*.*.*.0.0.5.#", Queue: "dormouse.delay.5m"},
		{Exchange: "dormouse.delay.1m", Key: "dm.*.*.*.*.*.5.#", Queue: "dormouse.delay.5m"},
		{Exchange: "dormouse.delay", Key: "dm.3.#", Queue: "dormouse.delay.300d"},
		{Exchange: "dormouse.delay", Key: "dm.0.0.0.0.0.0.0.0.0.#", ToExchange: "dormouse.due"},
		{Exchange: "dormouse.delay.100ms", Key: "dm.*.*.*.*.*.*.*.*.0.#", ToExchange: "dormouse.due"},
	} {
		if !slices.Contains(l.Bindings(), want) {
			t.Errorf("no binding %+v", want)
		}
	}
}

func TestKeys(t *testing.T) {
	l := mustNew(t, Settings{})
	for _, c := range []struct {
		delay time.Duration
		dest  string
		key   string
	}{
		{90 * time.Minute, QueueDestination("email"), "dm.0.0.0.1.3.0.0.0.0.q.email"},
		{0, ExchangeDestination("orders"), "dm.0.0.0.0.0.0.0.0.0.x.orders"},
		{-time.Second, ExchangeDestination("orders"), "dm.0.0.0.0.0.0.0.0.0.x.orders"},
		{1, ExchangeDestination("orders"), "dm.0.0.0.0.0.0.0.0.1.x.orders"},
		{DefaultMax, ExchangeDestination("a.b"), "dm.3.9.9.23.5.9.5.9.9.x.a.b"},
	} {
		key, rounded, err := l.Key(c.delay, c.dest)
		if err != nil || key != c.key {
			t.Errorf("Key(%v, %s) = %s, %v; want %s", c.delay, c.dest, key, err, c.key)
		}
		d, dest, err := ParseKey(key)
		if err != nil || d != rounded || dest != c.dest {
			t.Errorf("ParseKey(%s) = %v, %s, %v", key, d, dest, err)
		}
	}
	for _, bad := range []string{"", "dm", "dm.", "orders", "dm.0.0.0.0.0.0.0.0.0", "dm.0.0.0.24.0.0.0.0.0.q.a", "dm.0.0.0.01.0.0.0.0.0.q.a", "dm.-1.0.0.0.0.0.0.0.0.q.a", "dm.0.0.0.0.0.0.0.0.0."} {
		if _, _, err := ParseKey(bad); !errors.Is(err, ErrNotKey) {
			t.Errorf("ParseKey(%q) = %v, want ErrNotKey", bad, err)
		}
	}
}

func TestDestinationsThatDoNotFitAreHashed(t *testing.T) {
	l := mustNew(t, Settings{Max: GreatestMax})
	fits := strings.Repeat("a", longestDestination-2)
	for _, c := range []struct {
		name   string
		hashed bool
	}{{"email", false}, {fits, false}, {fits + "a", true}, {"a.*.b", true}, {"#", true}, {"a*b", false}, {"..", false}, {strings.Repeat("é", 127), true}} {
		d := QueueDestination(c.name)
		if got := strings.HasPrefix(d, "h."); got != c.hashed {
			t.Errorf("queue %q: destination %q", c.name, d)
		}
		if d == ExchangeDestination(c.name) {
			t.Errorf("queue and exchange %q share destination %q", c.name, d)
		}
		key, _, err := l.Key(3649*Day+23*time.Hour+59*time.Minute+59900*time.Millisecond, d)
		if err != nil || len(key) > 255 || len(DestinationPattern(d)) > 255 {
			t.Errorf("queue %q: key of %d bytes, pattern of %d, %v", c.name, len(key), len(DestinationPattern(d)), err)
		}
	}
	if got, want := DestinationPattern("x.orders"), "dm.*.*.*.*.*.*.*.*.*.x.orders"; got != want {
		t.Errorf("pattern %s, want %s", got, want)
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name   string
		s      Settings
		lanes  int
		max    time.Duration
		broken string
	}{
		{"default", Settings{}, 81, DefaultMax, ""},
		{"seconds", Settings{Resolution: time.Second}, 72, DefaultMax - 900*time.Millisecond, ""},
		{"a day", Settings{Max: Day}, 61, Day, ""},
		{"ten years", Settings{Max: GreatestMax}, 114, GreatestMax, ""},
		{"30 days", Settings{Max: 30 * Day}, 3 + 9 + 23 + 5 + 9 + 5 + 9 + 9, 30 * Day, ""},
		{"less than a day", Settings{Max: Day - 1}, 0, 0, "maximum delay"},
		{"beyond RabbitMQ", Settings{Max: GreatestMax + 1}, 0, 0, "maximum delay"},
		{"resolution", Settings{Resolution: time.Millisecond}, 0, 0, "resolution"},
		{"reserved prefix", Settings{Prefix: "amq.x"}, 0, 0, "prefix"},
		{"long prefix", Settings{Prefix: strings.Repeat("p", 201)}, 0, 0, "prefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := New(c.s)
			if c.broken != "" {
				if err == nil || !strings.Contains(err.Error(), c.broken) {
					t.Fatalf("error %v, want one about %s", err, c.broken)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Lanes()) != c.lanes || l.Max() != c.max {
				t.Errorf("%d lanes up to %v, want %d up to %v", len(l.Lanes()), l.Max(), c.lanes, c.max)
			}
			if _, err := l.Round(l.Max() + 1); !errors.Is(err, ErrTooLong) {
				t.Errorf("a delay beyond the maximum: %v", err)
			}
			if _, err := l.Round(math.MaxInt64); !errors.Is(err, ErrTooLong) {
				t.Errorf("the longest duration: %v", err)
			}
		})
	}
}

func TestCommonDelaysTakeOneLane(t *testing.T) {
	l := mustNew(t, Settings{})
	for _, d := range []time.Duration{30 * time.Second, 5 * time.Minute, time.Hour, 7 * Day, 90 * Day} {
		if n := len(l.Path(d)); n != 1 {
			t.Errorf("%v takes %d lanes", d, n)
		}
	}
	if n := len(l.Path(24 * time.Hour)); n != 1 {
		t.Errorf("24 h takes %d lanes", n)
	}
}

func TestRoundLanes(t *testing.T) {
	l := mustNew(t, Settings{})
	for _, c := range []struct {
		d, want time.Duration
		n       int
	}{
		{time.Hour + 23*time.Minute + 45*time.Second, time.Hour + 30*time.Minute, 2},
		{time.Hour + 4*time.Minute + 30*time.Second, time.Hour + 5*time.Minute, 2},
		{time.Hour + 59*time.Minute, 2 * time.Hour, 2},
		{9*Day + 23*time.Hour + time.Second, 10 * Day, 2},
		{1234 * time.Millisecond, 1300 * time.Millisecond, 2},
		{11050 * time.Millisecond, 12 * time.Second, 2},
		{90 * time.Second, 90 * time.Second, 2},
		{90 * time.Second, 2 * time.Minute, 1},
		{DefaultMax, DefaultMax, 2},
		{0, 0, 2},
	} {
		if got, err := l.RoundLanes(c.d, c.n); err != nil || got != c.want {
			t.Errorf("RoundLanes(%v, %d) = %v, %v; want %v", c.d, c.n, got, err, c.want)
		}
	}
}

func genSettings(t *rapid.T) Settings {
	return Settings{
		Max:        time.Duration(rapid.Int64Range(int64(LeastMax), int64(GreatestMax)).Draw(t, "max")),
		Resolution: rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(t, "resolution"),
	}
}

// genDelay draws delays of every size: 0.1 s as likely as years.
func genDelay(t *rapid.T, l *Ladder) time.Duration {
	bits := rapid.IntRange(20, 63).Draw(t, "bits")
	limit := l.Max()
	if bits < 63 && limit > 1<<bits {
		limit = 1 << bits
	}
	return time.Duration(rapid.Int64Range(1, int64(limit)).Draw(t, "delay"))
}

// Walking the bindings as a topic exchange does, every delay passes lanes of its own that add up to it rounded up, at most
// one of each unit, each key matches exactly one binding at every exchange, and the walk ends at due.
func TestEveryDelayWalksToItsSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := mustNew2(t, genSettings(t))
		d := genDelay(t, l)
		key, rounded, err := l.Key(d, QueueDestination("work"))
		if err != nil {
			t.Fatal(err)
		}
		if rounded < d || rounded-d >= l.Resolution() || rounded%l.Resolution() != 0 {
			t.Fatalf("%v rounded to %v", d, rounded)
		}
		lanes := map[string]Lane{}
		for _, lane := range l.Lanes() {
			lanes[lane.Queue] = lane
		}
		from := map[string][]Binding{}
		for _, b := range l.Bindings() {
			from[b.Exchange] = append(from[b.Exchange], b)
		}
		var sum time.Duration
		var walked []Lane
		used := map[int]bool{}
		for at := l.Entry(); at != l.Due(); {
			var hit []Binding
			for _, b := range from[at] {
				if matches(b.Key, key) {
					hit = append(hit, b)
				}
			}
			if len(hit) != 1 {
				t.Fatalf("%s matches %d bindings of %s: %v", key, len(hit), at, hit)
			}
			if hit[0].ToExchange != "" {
				at = hit[0].ToExchange
				continue
			}
			lane := lanes[hit[0].Queue]
			if used[lane.unit] {
				t.Fatalf("two lanes of one unit for %v", d)
			}
			used[lane.unit] = true
			walked = append(walked, lane)
			sum += lane.TTL
			at = lane.Next
		}
		if sum != rounded {
			t.Fatalf("lanes of %v add up to %v, want %v", d, sum, rounded)
		}
		if !slices.Equal(walked, l.Path(rounded)) {
			t.Fatalf("walked %v, Path says %v", walked, l.Path(rounded))
		}
	})
}

func TestRoundLanesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := mustNew2(t, genSettings(t))
		d := genDelay(t, l)
		n := rapid.IntRange(1, 3).Draw(t, "n")
		fine, _ := l.Round(d)
		got, err := l.RoundLanes(d, n)
		if err != nil || got < fine {
			t.Fatalf("%v rounded to %v, %v", d, got, err)
		}
		if len(l.Path(got)) > n && got != fine {
			t.Fatalf("%v rounded to %v, which takes %d lanes", d, got, len(l.Path(got)))
		}
		if got != fine && n == 2 && float64(got-fine) > 0.1*float64(fine) {
			t.Fatalf("%v rounded to %v, more than a tenth later", d, got)
		}
	})
}

// A key for a lane that this ladder does not have must match nothing at the entry: inside, it would be stuck.
func TestForeignKeysAreUnroutableAtTheEntry(t *testing.T) {
	wide := mustNew(t, Settings{Max: GreatestMax})
	rapid.Check(t, func(t *rapid.T) {
		narrow := mustNew2(t, genSettings(t))
		d := genDelay(t, wide)
		key, rounded, err := wide.Key(d, QueueDestination("work"))
		if err != nil {
			t.Skip("beyond ten years")
		}
		known := true
		have := map[string]bool{}
		for _, lane := range narrow.Lanes() {
			have[lane.Queue] = true
		}
		for _, lane := range wide.Path(rounded) {
			known = known && have[lane.Queue]
		}
		routed := false
		for _, b := range narrow.Bindings() {
			if b.Exchange == narrow.Entry() && matches(b.Key, key) {
				routed = true
			}
		}
		if routed != known {
			t.Fatalf("%v on a ladder up to %v by %v: all lanes there %v, routed %v", rounded, narrow.Max(), narrow.Resolution(), known, routed)
		}
	})
}

func mustNew2(t *rapid.T, s Settings) *Ladder {
	l, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// matches is topic matching, written down naively.
func matches(pattern, key string) bool {
	return matchWords(strings.Split(pattern, "."), strings.Split(key, "."))
}

func matchWords(pattern, key []string) bool {
	switch {
	case len(pattern) == 0:
		return len(key) == 0
	case pattern[0] == "#":
		return matchWords(pattern[1:], key) || len(key) > 0 && matchWords(pattern, key[1:])
	case len(key) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == key[0]) && matchWords(pattern[1:], key[1:])
}
