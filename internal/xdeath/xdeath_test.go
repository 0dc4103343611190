package xdeath

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var epoch = time.Unix(1_700_000_000, 0)

// die records deaths written as "queue:reason", oldest first, a second apart.
func die(events ...string) *History {
	var h *History
	for i, e := range events {
		queue, reason, _ := strings.Cut(e, ":")
		h = h.Record(Event{
			Queue: queue, Reason: reason, Exchange: fmt.Sprint("x", i), Keys: []string{fmt.Sprint("k", i)},
			Time: epoch.Add(time.Duration(i) * time.Second), OriginalExpiration: fmt.Sprint(i),
		})
	}
	return h
}

func TestRecord(t *testing.T) {
	h := die("work:rejected", "wait:expired", "work:rejected", "work:expired", "wait:expired")
	want := &History{
		Deaths: Deaths{
			{"wait", "expired", "x1", []string{"k1"}, 2, epoch.Add(1 * time.Second), "1"},
			{"work", "expired", "x3", []string{"k3"}, 1, epoch.Add(3 * time.Second), "3"},
			{"work", "rejected", "x0", []string{"k0"}, 2, epoch, "0"},
		},
		FirstQueue: "work", FirstReason: "rejected", FirstExchange: "x0",
		LastQueue: "wait", LastReason: "expired", LastExchange: "x4",
	}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("got  %+v\nwant %+v", h, want)
	}
}

func TestRecordLeavesTheOldHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "queue") + ":" +
				rapid.SampledFrom([]string{Rejected, Expired}).Draw(t, "reason")
		})
		events := rapid.SliceOfN(event, 1, 12).Draw(t, "events")
		before := die(events[:len(events)-1]...)
		kept := die(events[:len(events)-1]...)
		after := before
		queue, reason, _ := strings.Cut(events[len(events)-1], ":")
		after = after.Record(Event{Queue: queue, Reason: reason})
		if !reflect.DeepEqual(before, kept) {
			t.Fatalf("history changed from %+v to %+v", kept, before)
		}

		var total int64
		for i, d := range after.Deaths {
			total += d.Count
			if after.Deaths.index(d.Queue, d.Reason) != i {
				t.Fatalf("two entries for %s %s", d.Queue, d.Reason)
			}
		}
		if total != int64(len(events)) {
			t.Fatalf("counts add up to %d of %d deaths", total, len(events))
		}
		if d := after.Deaths[0]; d.Queue != queue || d.Reason != reason {
			t.Fatalf("latest death %s:%s is not in front: %+v", queue, reason, after.Deaths)
		}
	})
}

func TestCycle(t *testing.T) {
	for _, c := range []struct {
		name    string
		history []string // the last one is the present death
		target  string
		want    bool
	}{
		{"never died", nil, "work", false},
		{"first visit", []string{"wait:expired"}, "work", false},
		{"into itself", []string{"q:expired"}, "q", true},
		{"rejected into itself", []string{"q:rejected"}, "q", false},
		{"two queues by time", []string{"q1:expired", "q2:expired"}, "q1", true},
		{"two queues by length and time", []string{"q1:maxlen", "q2:expired"}, "q1", true},
		{"rejected, waited", []string{"work:rejected", "wait:expired"}, "work", false},
		{"expired, rejected on the way", []string{"work:expired", "wait:rejected", "wait2:expired"}, "work", false},
		{"present death is a rejection", []string{"q1:expired", "q2:rejected"}, "q1", false},
		{"many rounds of rejection", []string{"work:rejected", "wait:expired", "work:rejected", "wait:expired"}, "work", false},
		{"delivery limit counts as automatic", []string{"work:delivery_limit", "wait:expired"}, "work", true},
		{"a lap by time after one by rejection ends before the wait queue",
			[]string{"work:rejected", "wait:expired", "work:expired"}, "wait", true},
		{"earlier rejection does not protect a later lap by time",
			[]string{"work:rejected", "wait:expired", "work:expired", "wait:expired"}, "work", true},
		{"earlier rejection does not protect a later lap by limit",
			[]string{"work:rejected", "wait:expired", "work:delivery_limit", "wait:expired"}, "work", true},
		{"rejection that is older than the target's latest death",
			[]string{"work:rejected", "work:expired", "wait:expired"}, "work", true},
		{"rejection that is newer than the target's latest automatic death",
			[]string{"work:expired", "work:rejected", "wait:expired"}, "work", false},
		{"wait queue again after a rejection", []string{"work:rejected", "wait:expired", "work:rejected"}, "wait", false},
		{"ladder of lanes", []string{"5m:expired", "30s:expired"}, "1s", false},
		{"a lane again, after automatic deaths only", []string{"5m:expired", "30s:expired", "work:expired"}, "5m", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := die(c.history...)
			reason := Expired
			if n := len(c.history); n > 0 {
				_, reason, _ = strings.Cut(c.history[n-1], ":")
			}
			if got := h.Cycle(c.target, reason); got != c.want {
				t.Errorf("cycle to %s with %v = %v", c.target, c.history, got)
			}
		})
	}
}

func TestCount(t *testing.T) {
	h := die("work:rejected", "wait:expired", "work:rejected", "work:expired")
	for _, c := range []struct {
		queue, reason string
		want          int64
	}{{"work", Rejected, 2}, {"work", Expired, 1}, {"wait", Expired, 1}, {"wait", Rejected, 0}, {"", "", 0}} {
		if got := h.Deaths.Count(c.queue, c.reason); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.queue, c.reason, got, c.want)
		}
	}
}

// table and list stand for the named types of a client library.
type (
	namedTable map[string]any
	namedList  []any
)

func TestParse(t *testing.T) {
	full := func() map[string]any {
		return map[string]any{
			"count": int64(3), "reason": "expired", "queue": "wait", "exchange": "x", "time": epoch,
			"routing-keys": []any{"k", "cc"}, "original-expiration": "100",
		}
	}
	want := Deaths{{"wait", "expired", "x", []string{"k", "cc"}, 3, epoch, "100"}}
	odd := full()
	odd["count"], odd["time"], odd["routing-keys"], odd["queue"] = uint32(3), epoch.Unix(), []string{"k", "cc"}, []byte("wait")
	garbage := map[string]any{
		"count": "3", "reason": 1, "queue": nil, "time": "now", "routing-keys": "k", "exchange": []any{}, "more": 1,
	}

	for _, c := range []struct {
		name   string
		header any
		want   Deaths
	}{
		{"plain maps", []any{full()}, want},
		{"named types", namedList{namedTable(full())}, want},
		{"slice of maps", []map[string]any{full()}, want},
		{"other types of the fields", []any{odd}, want},
		{"nothing", nil, nil},
		{"empty", []any{}, nil},
		{"no list", "x-death", nil},
		{"a table alone", full(), nil},
		{"entries that are no tables", []any{nil, 1, "x", []any{}, map[string]string{"queue": "q"}, full()}, want},
		{"fields of the wrong type", []any{garbage}, Deaths{{}}},
		{"negative count", []any{map[string]any{"count": int64(-1)}}, Deaths{{}}},
		{"keys that are no strings", []any{map[string]any{"routing-keys": []any{1, "k", nil}}}, Deaths{{Keys: []string{"k"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Parse(c.header); !slices.EqualFunc(got, c.want, func(a, b Death) bool { return reflect.DeepEqual(a, b) }) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
