package message

import (
	"cmp"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dormousemq/dormouse/internal/wire"
	"github.com/dormousemq/dormouse/internal/xdeath"
)

// What a consumer sees are the broker's headers and those of the publisher that have no namesake, by name.
func TestDeliveredMergesHeadersByName(t *testing.T) {
	own := []string{
		"x-acquired-count", "x-death", "x-delivery-count",
		"x-first-death-exchange", "x-first-death-queue", "x-first-death-reason",
		"x-last-death-exchange", "x-last-death-queue", "x-last-death-reason",
	}
	rapid.Check(t, func(t *rapid.T) {
		p := wire.Properties{Flags: wire.FlagDeliveryMode | wire.FlagContentType, DeliveryMode: 2, ContentType: "text/plain"}
		names := rapid.SliceOfN(rapid.SampledFrom(append([]string{"a", "b", "x-e", "z"}, own...)), 0, 6).Draw(t, "names")
		for i, name := range names {
			p.Flags |= wire.FlagHeaders
			p.Headers = append(p.Headers, wire.Field{Name: name, Value: int32(i)})
		}
		m := Message{Exchange: "x", Keys: []string{"k"}, Properties: p.AppendTo(nil), Expiration: NoExpiration, Priority: NoPriority}
		deaths := rapid.IntRange(0, 3).Draw(t, "deaths")
		for i := range deaths {
			m = *m.DeadLetter(Death{Queue: []string{"q", "r", "s"}[i], Reason: xdeath.Expired, Time: time.Unix(7, 0), Exchange: "y"})
		}
		counts := Counts{Returns: uint32(rapid.IntRange(0, 2).Draw(t, "returns")), Failures: uint32(rapid.IntRange(0, 2).Draw(t, "failures"))}

		got, err := wire.ParseProperties(m.Delivered(counts))
		if err != nil {
			t.Fatal(err)
		}
		var added []string
		if counts.Returns > 0 {
			added = append(added, own[0])
		}
		if deaths > 0 {
			added = append(append(added, own[1]), own[3:]...)
		}
		if counts.Failures > 0 {
			added = append(added, own[2])
		}
		want := p.Headers
		if len(added) > 0 {
			want = slices.DeleteFunc(slices.Clone(want), func(f wire.Field) bool { return slices.Contains(added, f.Name) })
			for _, name := range added {
				v, ok := got.Headers.Get(name)
				if !ok {
					t.Fatalf("%s is missing", name)
				}
				want = append(want, wire.Field{Name: name, Value: v})
			}
			slices.SortStableFunc(want, func(a, b wire.Field) int { return cmp.Compare(a.Name, b.Name) })
			want = slices.CompactFunc(want, func(a, b wire.Field) bool { return a.Name == b.Name })
		}
		if !slices.EqualFunc(got.Headers, want, func(a, b wire.Field) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("headers %v, want %v", got.Headers, want)
		}
		if died, _ := got.Headers.Get("x-death"); deaths > 0 && len(died.([]any)) != deaths {
			t.Fatalf("x-death %v", died)
		}
		if got.ContentType != p.ContentType || got.DeliveryMode != p.DeliveryMode {
			t.Fatalf("properties %+v", got)
		}
	})
}
