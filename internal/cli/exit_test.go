package cli

import "testing"

func TestOnceLeavesOutRepetitions(t *testing.T) {
	for text, want := range map[string]string{
		"one":                                  "one",
		"connect: refused\nrefused":            "connect: refused",
		"connect: refused\nrefused\ntimed out": "connect: refused\ntimed out",
		"refused\nconnect: refused":            "refused\nconnect: refused",
	} {
		if got := once(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
