package store

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDefinitionKeysAreUnambiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune{0, 1, 2, 'a'}), 0, 4, -1), 1, 3)
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		if (DefinitionKey("kind", a...) == DefinitionKey("kind", b...)) != slices.Equal(a, b) {
			t.Fatalf("%q and %q have the keys %q and %q", a, b, DefinitionKey("kind", a...), DefinitionKey("kind", b...))
		}
		begins := len(b) > len(a) && slices.Equal(a, b[:len(a)])
		if prefix := DefinitionKey("kind", append(slices.Clone(a), "")...); strings.HasPrefix(DefinitionKey("kind", b...), prefix) != begins {
			t.Fatalf("%q is the prefix of %q: %t", prefix, b, !begins)
		}
	})
}
