package route

import (
	"fmt"
	"testing"
)

// spread tells where each of n values goes.
func spread(m Matcher[string], n int) map[string]string {
	to := map[string]string{}
	for i := range n {
		value := fmt.Sprint("value ", i)
		m.Match(value, nil, func(d string) { to[value] += d })
	}
	return to
}

func shares(to map[string]string) map[string]int {
	n := map[string]int{}
	for _, d := range to {
		n[d]++
	}
	return n
}

func TestConsistentHashSpreadsByWeight(t *testing.T) {
	m := NewConsistentHash[string]()
	m.Bind("1", nil, "a")
	m.Bind("2", nil, "b")
	m.Bind("5", nil, "c")
	got := shares(spread(m, 8000))
	for d, want := range map[string]int{"a": 1000, "b": 2000, "c": 5000} {
		if n := got[d]; n < want*8/10 || n > want*12/10 {
			t.Errorf("%s has %d of 8000, want about %d: %v", d, n, want, got)
		}
	}
}

func TestConsistentHashMovesLittle(t *testing.T) {
	m := NewConsistentHash[string]()
	for _, d := range []string{"a", "b", "c"} {
		m.Bind("10", nil, d)
	}
	before := spread(m, 4000)
	m.Bind("10", nil, "d")
	after := spread(m, 4000)
	moved := 0
	for value, d := range after {
		if d == before[value] {
			continue
		}
		if moved++; d != "d" {
			t.Fatalf("%s moved from %s to %s, which are both old", value, before[value], d)
		}
	}
	if moved < 800 || moved > 1200 {
		t.Errorf("%d of 4000 moved, want about 1000", moved)
	}
	m.Unbind("10", nil, "d")
	for value, d := range spread(m, 4000) {
		if d != before[value] {
			t.Fatalf("%s is with %s after the new one has gone, and was with %s", value, d, before[value])
		}
	}
}

func TestConsistentHashCountsTheFirstBindingOnly(t *testing.T) {
	m := NewConsistentHash[string]()
	m.Bind("1", nil, "a")
	m.Bind("1", nil, "b")
	if !m.Bind("100", nil, "a") || m.Bind("100", nil, "a") {
		t.Error("the second binding is not told from the third, which is the same")
	}
	if got := shares(spread(m, 1000)); got["b"] < 400 {
		t.Errorf("%v", got)
	}
	m.Unbind("1", nil, "b")
	m.Unbind("1", nil, "a")
	m.Unbind("100", nil, "a")
	if got := spread(m, 10); len(got) != 0 {
		t.Errorf("without bindings: %v", got)
	}
}

func TestCheckHashBinding(t *testing.T) {
	for key, want := range map[string]string{
		"1": "", "+7": "", "99999999999999999999": "", "0": "The binding key must be greater than 0", "-1": "The binding key must be greater than 0",
		"a": `The binding key must be an integer: <<"a">>`, "": `The binding key must be an integer: <<>>`, "1.5": `The binding key must be an integer: <<"1.5">>`,
	} {
		got := ""
		if err := CheckHashBinding(key); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

func TestRandomGivesEachItsShare(t *testing.T) {
	m := NewRandom[string]()
	m.Bind("x", nil, "a")
	m.Bind("y", nil, "a")
	m.Bind("x", nil, "b")
	for d, n := range shares(spread(m, 1000)) {
		if n < 400 || n > 600 {
			t.Errorf("%s has %d of 1000", d, n)
		}
	}
}
