package pattern_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/pattern"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		expression, name string
		want             bool
	}{
		{".*", "", true},
		{"^.*", "a\nb", true},
		{"", "anything", true},
		{"^$", "", true},
		{"^$", "x", false},
		{"orders", "my.orders.eu", true},
		{"^orders", "my.orders", false},
		{`^orders\.`, "orders.eu", true},
		{`^orders\.`, "orders-eu", false},
		{"^(?!amq\\.).*", "amq.direct", false},
		{"^(?!amq\\.).*", "orders", true},
		{`^(a|b)\1$`, "aa", true},
		{`^(a|b)\1$`, "ab", false},
		{"(?<=x)y", "xy", true},
		{"(?i)^ORDERS$", "orders", true},
	} {
		p, err := pattern.Compile(c.expression)
		if err != nil {
			t.Errorf("%q: %v", c.expression, err)
		} else if got := p.Match(c.name); got != c.want {
			t.Errorf("%q matches %q: %t", c.expression, c.name, got)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, expression := range []string{"(", "[a", "a)", "*"} {
		if _, err := pattern.Compile(expression); err == nil {
			t.Errorf("%q was accepted", expression)
		}
	}
}

// An expression that takes for ever must not hold up anybody for ever.
func TestMatchGivesUp(t *testing.T) {
	p, err := pattern.Compile(`^(?=(a+)+$)x`)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if p.Match(strings.Repeat("a", 64) + "!") {
		t.Error("it matches")
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
