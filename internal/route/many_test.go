package route

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// Unbinding must cost the same however many bindings there are, even those of one destination or of one key. Were it
// a search, 100,000 of them would take minutes.
func TestManyBindingsGoQuickly(t *testing.T) {
	const n = 100_000
	makers := map[string]func() Matcher[string]{"x-consistent-hash": NewConsistentHash[string], "x-random": NewRandom[string]}
	maps.Copy(makers, kinds)
	bindings := map[string]func(i int) (string, Arguments, string){
		"keys":      func(i int) (string, Arguments, string) { return fmt.Sprint(i + 1), nil, "q" },
		"arguments": func(i int) (string, Arguments, string) { return "1", Arguments{{"a", int32(i)}}, "q" },
	}
	for name, newMatcher := range makers {
		for by, nth := range bindings {
			t.Run(name+" by "+by, func(t *testing.T) {
				m := newMatcher()
				began := time.Now()
				for i := range n {
					if !m.Bind(nth(i)) {
						t.Fatalf("binding %d is not new", i)
					}
				}
				for i := range n {
					if !m.Unbind(nth(i)) {
						t.Fatalf("binding %d is not there", i)
					}
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("took %v", took)
				}
				wantMatch(t, m, "1")
			})
		}
	}
}
