package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTopic(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"", []string{""}, []string{"a", ".", "a.b"}},
		{"#", []string{"", "a", "a.b", ".", "..", "#", "*"}, nil},
		{"*", []string{"a", "*", "#"}, []string{"", "a.b", "."}},
		{"a", []string{"a"}, []string{"", "b", "a.", ".a", "a.a"}},
		{"*.*", []string{"a.b", ".", "a.", ".a"}, []string{"", "a", "a.b.c", ".."}},
		{".", []string{"."}, []string{"", "a", "a.", ".."}},
		{"a.", []string{"a."}, []string{"a", "a.b"}},
		{"a.#", []string{"a", "a.", "a.b", "a.b.c"}, []string{"", "b", "b.a", "ab"}},
		{"#.a", []string{"a", ".a", "b.a", "b.c.a", "a.a"}, []string{"", "a.b"}},
		{"a.*", []string{"a.b", "a."}, []string{"a", "a.b.c"}},
		{"*.a", []string{"b.a", ".a"}, []string{"a", "c.b.a"}},
		{"#.*", []string{"a", "a.b", "."}, []string{""}},
		{"*.#", []string{"a", "a.b", "."}, []string{""}},
		{"#.#", []string{"", "a", "a.b.c"}, nil},
		{"a.#.b", []string{"a.b", "a.x.b", "a..b", "a.b.b"}, []string{"a", "b", "a.b.c"}},
		{"#.a.#", []string{"a", "b.a", "a.b", "b.a.b"}, []string{"", "b", "ab"}},
		{"*.a.*", []string{"b.a.b", ".a."}, []string{"a", "b.a", "a.b"}},
		{"#a", []string{"#a"}, []string{"a", "b.a"}},
		{"*a.b", []string{"*a.b"}, []string{"aa.b", "a.b"}},
		{"a.*.#", []string{"a.b", "a.b.c", "a."}, []string{"a"}},
	} {
		m := NewTopic[string]()
		m.Bind(c.pattern, nil, "q")
		for _, key := range c.yes {
			if len(matched(m, key, nil)) == 0 {
				t.Errorf("%q does not match %q", c.pattern, key)
			}
		}
		for _, key := range c.no {
			if len(matched(m, key, nil)) != 0 {
				t.Errorf("%q matches %q", c.pattern, key)
			}
		}
	}
}

// matches is the definition of the topic rules, word by word.
func matches(pattern, key []string) bool {
	if len(pattern) == 0 {
		return len(key) == 0
	}
	if pattern[0] == "#" {
		return matches(pattern[1:], key) || len(key) > 0 && matches(pattern, key[1:])
	}
	return len(key) > 0 && (pattern[0] == "*" || pattern[0] == key[0]) && matches(pattern[1:], key[1:])
}

func words(key string) []string {
	if key == "" {
		return nil
	}
	return strings.Split(key, ".")
}

func TestTopicAgainstDefinition(t *testing.T) {
	type binding struct {
		pattern, dest string
	}
	rapid.Check(t, func(t *rapid.T) {
		// Few different words make many collisions; twelve make a node outgrow its list of edges.
		word := rapid.SampledFrom(append(strings.Fields("a a a b b c d e f g h i j * * # #"), ""))
		key := rapid.Map(rapid.SliceOfN(word, 0, 5), func(w []string) string { return strings.Join(w, ".") })
		m := NewTopic[string]()
		model := map[binding]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"bind": func(t *rapid.T) {
				b := binding{key.Draw(t, "pattern"), rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "dest")}
				if isNew := m.Bind(b.pattern, nil, b.dest); isNew == model[b] {
					t.Fatalf("bind %v: new is %v", b, isNew)
				}
				model[b] = true
			},
			"unbind": func(t *rapid.T) {
				b := binding{key.Draw(t, "pattern"), rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "dest")}
				for have := range model {
					if rapid.Bool().Draw(t, "existing") {
						b = have
					}
					break
				}
				if was := m.Unbind(b.pattern, nil, b.dest); was != model[b] {
					t.Fatalf("unbind %v: found is %v", b, was)
				}
				delete(model, b)
				if root := &m.(*topic[string]).root; len(model) == 0 && !(root.leaf() && root.here.empty()) {
					t.Fatal("nodes are left without a binding")
				}
			},
			"match": func(t *rapid.T) {
				k := key.Draw(t, "key")
				var want []string
				for b := range model {
					if matches(words(b.pattern), words(k)) {
						want = append(want, b.dest)
					}
				}
				slices.Sort(want)
				if got := matched(m, k, nil); !slices.Equal(got, slices.Compact(want)) {
					t.Fatalf("key %q: got %q, want %q of %v", k, got, want, model)
				}
			},
		})
	})
}

func TestCheckTopicBinding(t *testing.T) {
	for _, key := range []string{"", "#", "#.#", "a.#.b.#.c", "##.##.##", "a#.b#.c#"} {
		if err := CheckTopicBinding(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	err := CheckTopicBinding("#.a.#.b.#")
	if want := "Topic binding key '#.a.#.b.#' uses 3 '#' wildcards, at most 2 are allowed"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// ladder binds the lanes of a delay ladder as one exchange sees them: for each digit and value a pattern with zeros for
// the digits skipped.
func ladder() Matcher[int] {
	m := NewTopic[int]()
	lane := 0
	for digit, base := range []int{3, 9, 9, 23, 5, 9, 5, 9, 9} {
		for zeros := range digit + 1 {
			for v := 1; v <= base; v++ {
				p := "dm" + strings.Repeat(".*", digit-zeros) + strings.Repeat(".0", zeros) + fmt.Sprintf(".%d.#", v)
				m.Bind(p, nil, lane)
				lane++
			}
		}
	}
	return m
}

func BenchmarkTopicLadder(b *testing.B) {
	m := ladder()
	benchmarkMatch(b, m, "dm.0.0.0.1.3.0.0.0.0.q.email", nil)
}

func BenchmarkTopic100k(b *testing.B) {
	m := NewTopic[int]()
	for i := range 100_000 {
		m.Bind(fmt.Sprintf("user.%d.*.created", i), nil, i)
	}
	m.Bind("user.#", nil, -1)
	benchmarkMatch(b, m, "user.77777.eu.created", nil)
}

func BenchmarkDirect100k(b *testing.B) {
	m := NewDirect[int]()
	for i := range 100_000 {
		m.Bind(fmt.Sprintf("user.%d", i), nil, i)
	}
	benchmarkMatch(b, m, "user.77777", nil)
}

func BenchmarkFanout100(b *testing.B) {
	m := NewFanout[int]()
	for i := range 100 {
		m.Bind("", nil, i)
	}
	benchmarkMatch(b, m, "any", nil)
}

func BenchmarkHeaders100(b *testing.B) {
	m := NewHeaders[int]()
	for i := range 100 {
		m.Bind("", Arguments{{"type", "order"}, {"shard", int32(i)}}, i)
	}
	var order, shard any = "order", int64(42)
	h := Headers(func(name string) (any, bool) {
		switch name {
		case "type":
			return order, true
		case "shard":
			return shard, true
		}
		return nil, false
	})
	benchmarkMatch(b, m, "", func() Headers { return h })
}

func benchmarkMatch(b *testing.B, m Matcher[int], key string, h func() Headers) {
	n := 0
	yield := func(int) { n++ }
	b.ReportAllocs()
	for b.Loop() {
		m.Match(key, h, yield)
	}
	if n == 0 {
		b.Fatal("nothing matched")
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	one, two := "1", any("2")
	h := Headers(func(string) (any, bool) { return two, true })
	headers := func() Headers { return h }
	for name, newMatcher := range kinds {
		m := newMatcher()
		m.Bind("a.b", nil, one)
		m.Bind("a.b", Arguments{{"x-match", "any"}, {"n", "2"}, {"i", int32(2)}}, one)
		m.Bind("#.b", nil, "2")
		n := 0
		yield := func(string) { n++ }
		if allocs := testing.AllocsPerRun(100, func() { m.Match("a.b", headers, yield) }); allocs > 0 || n == 0 {
			t.Errorf("%s: %v allocations, %d matches", name, allocs, n)
		}
	}
}
