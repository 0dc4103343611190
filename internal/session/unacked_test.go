package session

import (
	"reflect"
	"slices"
	"testing"

	"github.com/dormousemq/dormouse/internal/queue"

	"pgregory.net/rapid"
)

func tags(list []unacked) []uint64 {
	tags := []uint64{}
	for _, u := range list {
		tags = append(tags, u.tag)
	}
	return tags
}

// A ledger against the simplest thing that does the same: a sorted list of tags.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l ledger
		model := []uint64{}
		next := uint64(1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				next += uint64(rapid.IntRange(1, 2).Draw(t, "step")) // deliveries without ack leave gaps
				l.add(unacked{tag: next, entry: &queue.Entry{}})
				model = append(model, next)
			},
			"take": func(t *rapid.T) {
				tag := uint64(rapid.IntRange(0, int(next)+1).Draw(t, "tag"))
				multiple := rapid.IntRange(0, 3).Draw(t, "multiple") == 0
				got, ok := l.take(nil, tag, multiple)
				i, known := slices.BinarySearch(model, tag)
				if ok != known {
					t.Fatalf("take(%d) returned %v", tag, ok)
				}
				want := []uint64{}
				switch {
				case known && multiple:
					want, model = slices.Clone(model[:i+1]), model[i+1:]
				case known:
					want, model = []uint64{tag}, slices.Delete(slices.Clone(model), i, i+1)
				}
				if !reflect.DeepEqual(tags(got), want) {
					t.Fatalf("took %v, want %v", tags(got), want)
				}
			},
			"take all": func(t *rapid.T) {
				if got := tags(l.takeAll(nil)); !slices.Equal(got, model) {
					t.Fatalf("took %v, want %v", got, model)
				}
				model = []uint64{}
			},
			"take and put back": func(t *rapid.T) {
				tag := uint64(rapid.IntRange(0, int(next)).Draw(t, "tag"))
				got, _ := l.take(nil, tag, rapid.Bool().Draw(t, "multiple"))
				l.putBack(got)
			},
			"": func(t *rapid.T) {
				if l.live != len(model) {
					t.Fatalf("%d are live, want %d", l.live, len(model))
				}
			},
		})
	})
}

// One message that is never settled must not keep the room of all that follow.
func TestLedgerStaysSmall(t *testing.T) {
	var l ledger
	l.add(unacked{tag: 1, entry: &queue.Entry{}})
	for tag := uint64(2); tag < 100_000; tag++ {
		l.add(unacked{tag: tag, entry: &queue.Entry{}})
		if _, ok := l.take(nil, tag, false); !ok {
			t.Fatalf("%d was not there", tag)
		}
	}
	if cap(l.list) > 100 {
		t.Errorf("room for %d", cap(l.list))
	}
}
