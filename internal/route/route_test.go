package route

import (
	"slices"
	"strings"
	"testing"
)

// kinds are the constructors of all matchers, for what must hold for each of them.
var kinds = map[string]func() Matcher[string]{
	"direct":  NewDirect[string],
	"fanout":  NewFanout[string],
	"topic":   NewTopic[string],
	"headers": NewHeaders[string],
}

// matched returns the distinct destinations in order.
func matched(m Matcher[string], key string, h map[string]any) []string {
	got := []string{}
	m.Match(key, headersOf(h), func(d string) { got = append(got, d) })
	slices.Sort(got)
	return slices.Compact(got)
}

func headersOf(h map[string]any) func() Headers {
	return func() Headers {
		return func(name string) (any, bool) {
			v, ok := h[name]
			return v, ok
		}
	}
}

func wantMatch(t *testing.T, m Matcher[string], key string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := matched(m, key, nil); !slices.Equal(got, want) {
		t.Errorf("key %q: got %q, want %q", key, got, want)
	}
}

func TestBindingIdentity(t *testing.T) {
	for name, newMatcher := range kinds {
		t.Run(name, func(t *testing.T) {
			m := newMatcher()
			x := func(v any) Arguments { return Arguments{{"x-n", v}} }
			if !m.Bind("k", nil, "a") {
				t.Error("first bind is not new")
			}
			if m.Bind("k", Arguments{}, "a") {
				t.Error("same binding again is new")
			}
			if !m.Bind("k", x(int32(1)), "a") || !m.Bind("k", x(int64(1)), "a") {
				t.Error("other arguments, or the same number as another type, make no new binding")
			}
			if m.Unbind("other", nil, "a") || m.Unbind("k", x("1"), "a") || m.Unbind("k", nil, "b") {
				t.Error("unbind found a binding that is not there")
			}
			for _, args := range []Arguments{x(int32(1)), nil} {
				if !m.Unbind("k", args, "a") || m.Unbind("k", args, "a") {
					t.Errorf("unbind with %v did not remove exactly one", args)
				}
				wantMatch(t, m, "k", "a")
			}
			if !m.Unbind("k", x(int64(1)), "a") {
				t.Error("last binding not found")
			}
			wantMatch(t, m, "k")
		})
	}
}

func TestArgumentOrderHasNoMeaning(t *testing.T) {
	for name, newMatcher := range kinds {
		t.Run(name, func(t *testing.T) {
			m := newMatcher()
			m.Bind("k", Arguments{{"x-1", "1"}, {"x-2", "2"}}, "a")
			if m.Bind("k", Arguments{{"x-2", "2"}, {"x-1", "1"}}, "a") {
				t.Error("reordered arguments make a new binding")
			}
			if !m.Unbind("k", Arguments{{"x-2", "2"}, {"x-1", "1"}}, "a") {
				t.Error("reordered arguments are not found")
			}
		})
	}
}

func TestCallerMayReuseArguments(t *testing.T) {
	m := NewDirect[string]()
	args := Arguments{{"x", "1"}}
	m.Bind("k", args, "a")
	args[0].Value = "2"
	if m.Unbind("k", args, "a") {
		t.Error("binding changed with the caller's slice")
	}
}

// Many destinations of one key, removed from the middle: exercises the index and the swap.
func TestManyDestinations(t *testing.T) {
	for name, newMatcher := range kinds {
		t.Run(name, func(t *testing.T) {
			m := newMatcher()
			var all []string
			for i := range 100 {
				d := strings.Repeat("q", i+1)
				all = append(all, d)
				m.Bind("k", nil, d)
			}
			wantMatch(t, m, "k", slices.Clone(all)...)
			for len(all) > 0 {
				i := len(all) / 3
				if !m.Unbind("k", nil, all[i]) {
					t.Fatalf("%d left: not found", len(all))
				}
				all = slices.Delete(all, i, i+1)
				wantMatch(t, m, "k", slices.Clone(all)...)
			}
		})
	}
}

func TestDirect(t *testing.T) {
	m := NewDirect[string]()
	m.Bind("a", nil, "1")
	m.Bind("a", nil, "2")
	m.Bind("a.b", nil, "3")
	m.Bind("", nil, "4")
	m.Bind("#", nil, "5")
	wantMatch(t, m, "a", "1", "2")
	wantMatch(t, m, "a.b", "3")
	wantMatch(t, m, "", "4")
	wantMatch(t, m, "#", "5")
	wantMatch(t, m, "A")
}

func TestFanout(t *testing.T) {
	m := NewFanout[string]()
	m.Bind("x", nil, "1")
	m.Bind("y", nil, "1")
	m.Bind("", nil, "2")
	wantMatch(t, m, "anything", "1", "2")
	m.Unbind("x", nil, "1")
	wantMatch(t, m, "anything", "1", "2")
	m.Unbind("y", nil, "1")
	wantMatch(t, m, "anything", "2")
}
