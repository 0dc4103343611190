package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		t                Type
		key              string
		policy, argument any
		want             any
	}{
		{Classic, "message-ttl", int64(5), int32(3), int32(3)},
		{Quorum, "message-ttl", int64(2), int64(3), int64(2)},
		{Classic, "expires", int64(5), int64(9), int64(5)},
		{Classic, "max-length", int64(0), int64(9), int64(0)},
		{Quorum, "max-length-bytes", int64(10), int64(9), int64(9)},
		{Stream, "max-length-bytes", int64(10), int64(9), int64(10)},
		{Classic, "overflow", "drop-head", "reject-publish", "reject-publish"},
		{Quorum, "overflow", "drop-head", "reject-publish", "drop-head"},
		{Classic, "dead-letter-exchange", "p", "a", "a"},
		{Quorum, "dead-letter-exchange", "p", "a", "a"},
		{Quorum, "dead-letter-routing-key", "p", "a", "a"},
		{Quorum, "dead-letter-strategy", "at-least-once", "at-most-once", "at-most-once"},
		{Quorum, "delayed-retry-type", "failed", "all", "failed"},
		{Quorum, "delayed-retry-min", int64(5), int64(3), int64(3)},
		{Quorum, "delayed-retry-max", int64(5), int64(7), int64(5)},
		{Quorum, "delivery-limit", int64(5), int64(7), int64(5)},
		{Quorum, "delivery-limit", int64(-1), int64(7), int64(7)},
		{Quorum, "delivery-limit", int64(5), int64(-1), int64(5)},
		{Quorum, "delivery-limit", int64(-3), int64(-1), int64(-1)},
		{Quorum, "delivery-limit", int64(5), "text", int64(5)},
		{Quorum, "consumer-timeout", int64(5), int64(7), int64(5)},
		{Exchange, "alternate-exchange", "p", "a", "a"},
	} {
		if got := Resolve(c.t, c.key, c.policy, c.argument); got != c.want {
			t.Errorf("%s %s: of policy %v and argument %v comes %v, want %v", c.t, c.key, c.policy, c.argument, got, c.want)
		}
	}
}

func TestMergeOfOperatorPolicy(t *testing.T) {
	got := Merge(
		Definition{"message-ttl": int64(5), "overflow": "drop-head", "delivery-limit": int64(-1), "delayed-retry-min": int64(5), "delayed-retry-max": int64(50), "delayed-retry-type": "all", "dead-letter-exchange": "x"},
		Definition{"message-ttl": int64(9), "overflow": "reject-publish", "delivery-limit": int64(4), "delayed-retry-min": int64(7), "delayed-retry-max": int64(40), "delayed-retry-type": "failed", "max-length": int64(1)},
	)
	want := Definition{
		"message-ttl": int64(5), "overflow": "reject-publish", "delivery-limit": int64(4), "delayed-retry-min": int64(7),
		"delayed-retry-max": int64(40), "delayed-retry-type": "failed", "dead-letter-exchange": "x", "max-length": int64(1),
	}
	if !(Effective{Definition: got}).Equal(Effective{Definition: want}) {
		t.Errorf("merged to %v, want %v", got, want)
	}
}

// definitions draws valid settings of the given kind.
func definitions(k Kind) *rapid.Generator[Definition] {
	return rapid.Custom(func(t *rapid.T) Definition {
		d := Definition{}
		for _, s := range settings {
			if k == Operator && s.operator == nil || !rapid.Bool().Draw(t, s.key) {
				continue
			}
			d[s.key] = value(s).Draw(t, s.key)
		}
		return d
	})
}

// value draws a valid value of a setting.
func value(s setting) *rapid.Generator[any] {
	all := []any{"drop-head", "reject-publish", "all", "failed", "at-least-once", "balanced", "lazy", "1h", "text", int64(0), int64(1), int64(2), int64(16), int64(200), int64(1000), int64(-1)}
	return rapid.SampledFrom(slices.DeleteFunc(all, func(v any) bool { return !s.valid(v) }))
}

func TestMergeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		regular, operator := definitions(Regular).Draw(t, "regular"), definitions(Operator).Draw(t, "operator")
		merged := Merge(regular, operator)
		for _, s := range settings {
			r, inRegular := regular[s.key]
			o, inOperator := operator[s.key]
			m, inMerged := merged[s.key]
			switch {
			case inMerged != (inRegular || inOperator):
				t.Fatalf("%s: there before %v %v, and after %v", s.key, inRegular, inOperator, inMerged)
			case inRegular && inOperator && m != r && m != o:
				t.Fatalf("%s: %v is neither %v nor %v", s.key, m, r, o)
			case inRegular && !inOperator && m != r, inOperator && !inRegular && m != o:
				t.Fatalf("%s: %v and %v become %v", s.key, r, o, m)
			}
			if limit, isLimit := Integer(m); isLimit && inOperator && s.key != "delivery-limit" && s.key != "delayed-retry-min" && s.key != "target-group-size" && s.key != "queue-version" {
				if n, _ := Integer(o); limit > n {
					t.Fatalf("%s: %d is beyond the operator's %d", s.key, limit, n)
				}
			}
		}
		if again := Merge(merged, operator); !(Effective{Definition: again}).Equal(Effective{Definition: merged}) {
			t.Fatalf("merged again to %v, not %v", again, merged)
		}
	})
}

func TestResolveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(settings).Draw(t, "setting")
		kind := rapid.SampledFrom([]Type{Classic, Quorum, Stream, Exchange}).Draw(t, "type")
		policy, argument := value(s).Draw(t, "policy"), value(s).Draw(t, "argument")
		got := Resolve(kind, s.key, policy, argument)
		if got != policy && got != argument {
			t.Fatalf("%s: %v is neither %v nor %v", s.key, got, policy, argument)
		}
		if same := Resolve(kind, s.key, policy, policy); same != policy {
			t.Fatalf("%s: of %v and the same comes %v", s.key, policy, same)
		}
	})
}

func TestWhatIsValidIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := definitions(Regular).Draw(t, "definition")
		if len(d) == 0 || d.retryProblem() != "" {
			t.Skip("nothing to take")
		}
		if err := (Policy{Kind: Regular, Name: "p", Definition: d}).Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
