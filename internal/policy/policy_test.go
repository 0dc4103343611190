package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The texts are what RabbitMQ 4.3.6 answers to PUT /api/policies.
func TestWhatRabbitMQSaysOfADefinition(t *testing.T) {
	for definition, want := range map[string]string{
		`{"max-length":-1}`:                                 "-1 is not a valid maximum length",
		`{"max-length":"5"}`:                                `<<"5">> is not a valid maximum length`,
		`{"max-length":1.5}`:                                "1.5 is not a valid maximum length",
		`{"max-length":5.0}`:                                "5.0 is not a valid maximum length",
		`{"max-length":1e3}`:                                "1.0e3 is not a valid maximum length",
		`{"max-length":-1.0e30}`:                            "-1.0e30 is not a valid maximum length",
		`{"max-length":true}`:                               "true is not a valid maximum length",
		`{"max-length":null}`:                               "null is not a valid maximum length",
		`{"max-length":[1,"a"]}`:                            `[1,<<"a">>] is not a valid maximum length`,
		`{"max-length":{"a":1}}`:                            `#{<<"a">> => 1} is not a valid maximum length`,
		`{"foo":1}`:                                         `[{<<"foo">>,1}] are not recognised policy settings`,
		`{"foo":1,"bar":"x"}`:                               `[{<<"bar">>,<<"x">>},{<<"foo">>,1}] are not recognised policy settings`,
		`{}`:                                                "no policy provided",
		`{"max-length":-1,"foo":2}`:                         "-1 is not a valid maximum length",
		`{"max-length":-1,"max-length-bytes":-2}`:           "-1 is not a valid maximum length",
		`{"delayed-retry-type":"x","max-length":-1}`:        "-1 is not a valid maximum length",
		`{"delayed-retry-type":"all"}`:                      "delayed-retry-min is required when delayed-retry-type is all",
		`{"delayed-retry-type":"x"}`:                        `<<"x">> is not a valid delayed retry type. Must be one of: all, failed, returned, disabled`,
		`{"delayed-retry-min":0}`:                           "0 is not a valid delayed retry minimum delay. Must be a positive integer",
		`{"delayed-retry-min":10,"delayed-retry-max":5}`:    "delayed-retry-max (5) must not be smaller than delayed-retry-min (10)",
		`{"delayed-retry-type":"disabled"}`:                 "",
		`{"overflow":"x"}`:                                  `<<"x">> is not a valid overflow value`,
		`{"alternate-exchange":1}`:                          "1 is not a valid alternate exchange name",
		`{"dead-letter-strategy":1}`:                        "1 is not a valid dead letter strategy",
		`{"expires":0}`:                                     "0 is not a valid queue expiry",
		`{"message-ttl":315360000001}`:                      "",
		`{"delivery-limit":-5}`:                             "",
		`{"delivery-limit":"x"}`:                            `<<"x">> is not a valid delivery limit`,
		`{"queue-mode":"lazy"}`:                             "",
		`{"queue-version":3}`:                               "3 is not a valid queue-version value",
		`{"queue-leader-locator":"x"}`:                      `<<"x">> is not a valid queue leader locator value`,
		`{"target-group-size":0}`:                           "0 is not a valid qq target count value",
		`{"max-age":"1x"}`:                                  `<<"1x">> is not a valid max age`,
		`{"max-age":"12h"}`:                                 "",
		`{"consumer-timeout":-1}`:                           "-1 is not a valid consumer timeout",
		`{"max-in-memory-length":-1}`:                       "-1 is not a valid maximum memory in bytes",
		`{"stream-max-segment-size-bytes":3000000001}`:      "3000000001 is not a valid segment size",
		`{"stream-filter-size-bytes":15}`:                   "15 is not a valid filter size. Valid range is 16-255",
		`{"initial-cluster-size":-1}`:                       "-1 is not a valid cluster size",
		`{"ha-mode":"all"}`:                                 `[{<<"ha-mode">>,<<"all">>}] are not recognised policy settings`,
		`{"max-priority":5}`:                                `[{<<"max-priority">>,5}] are not recognised policy settings`,
		`{"max-length":123456789012345678901234567890}`:     "",
		`{"dead-letter-exchange":"","message-ttl":0}`:       "",
		`{"dead-letter-exchange":"é\"x","overflow":"é\"x"}`: `<<"é\"x">> is not a valid overflow value`,
	} {
		var d Definition
		if err := json.Unmarshal([]byte(definition), &d); err != nil {
			t.Fatal(err)
		}
		check(t, definition, Policy{Kind: Regular, Name: "p", Pattern: ".*", Definition: d}.Validate(), want)
	}
}

func check(t *testing.T, of string, err error, want string) {
	t.Helper()
	if want != "" {
		want = "Validation failed\n\n" + want + "\n"
	}
	if err == nil {
		err = errors.New("")
	}
	if err.Error() != want {
		t.Errorf("%s:\ngot  %q\nwant %q", of, err, want)
	}
}

func TestWhatRabbitMQSaysOfAnOperatorPolicy(t *testing.T) {
	for _, c := range []struct {
		definition Definition
		want       string
	}{
		{Definition{"dead-letter-exchange": "x"}, `[{<<"dead-letter-exchange">>,<<"x">>}] are not recognised policy settings`},
		{Definition{"consumer-timeout": int64(5)}, `[{<<"consumer-timeout">>,5}] are not recognised policy settings`},
		{Definition{"queue-version": int64(1), "overflow": "x"}, `<<"x">> is not a valid overflow value`},
		{Definition{"max-length": int64(1), "delayed-retry-type": "all", "delayed-retry-min": int64(5)}, ""},
	} {
		check(t, fmt.Sprint(c.definition), Policy{Kind: Operator, Name: "p", Pattern: ".*", Definition: c.definition}.Validate(), c.want)
	}
}

func TestWhatRabbitMQSaysOfABody(t *testing.T) {
	const wrongApplyTo = "apply-to 'y' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'"
	indent := "\n" + strings.Repeat(" ", 54)
	for body, want := range map[string]string{
		`{"pattern":"[","definition":{"max-length":1}}`: `pattern should be regular expression but is invalid: {"missing terminating ] for character class",` + indent + "1}",
		`{"pattern":"(","definition":{"max-length":-1},"priority":"x","apply-to":"y"}`: "-1 is not a valid maximum length\n" + wrongApplyTo +
			"\n" + `pattern should be regular expression but is invalid: {"missing closing parenthesis",` + indent + "1}\n" +
			`priority should be a number, actually was <<"x">>`,
		`{"pattern":5,"definition":{"max-length":1}}`: "pattern should be a binary but was 5",
		`{"definition":{"max-length":1}}`:             `Key "pattern" not found in p`,
		`{"pattern":""}`:                              `Key "definition" not found in p`,
		`{"pattern":"","definition":5}`:               "definition must be a dictionary: 5",
		`{"pattern":"` + strings.Repeat("a", 1025) + `","definition":{"max-length":1}}`:    "pattern must not exceed 1024 bytes",
		`{"pattern":"a","definition":{"max-length":1},"apply-to":"streams","priority":-3}`: "",
		`{"pattern":"a","definition":{"max-length":1},"apply-to":"exchange"}`:              strings.Replace(wrongApplyTo, "'y'", "'exchange'", 1),
		`{"pattern":"^(?!amq\\.).*","definition":{"max-length":1}}`:                        "",
		`{"pattern":"(?<=a)b","definition":{"max-length":1}}`:                              "",
		`{"pattern":"(a)\\1","definition":{"max-length":1}}`:                               "",
		`{"pattern":"a++","definition":{"max-length":1}}`:                                  onlyRabbitMQTakes("possessive repetition", `++`),
		`{"pattern":"(?>a)","definition":{"max-length":1}}`:                                "",
	} {
		var decoded map[string]any
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.UseNumber()
		if err := decoder.Decode(&decoded); err != nil {
			t.Fatal(err)
		}
		_, err := Parse(Regular, "p", decoded)
		check(t, body, err, want)
	}
}

// onlyRabbitMQTakes is the answer to a pattern with something that this broker does not know.
func onlyRabbitMQTakes(what, expr string) string {
	return fmt.Sprintf("pattern has %s (%s), which RabbitMQ takes and this broker does not: "+
		"write it without, or say which names are meant by several policies of different priorities", what, expr)
}

func set(t *testing.T, policies ...Policy) *Set {
	t.Helper()
	var s Set
	for _, p := range policies {
		if p.Kind == "" {
			p.Kind = Regular
		}
		if err := s.Put(p); err != nil {
			t.Fatal(err)
		}
	}
	return &s
}

func TestPatternWithLookAround(t *testing.T) {
	s := set(t, Policy{Name: "p", Pattern: `^(?!amq\.|dead)`, Definition: Definition{"max-length": int64(1)}})
	for name, want := range map[string]string{"orders": "p", "amq.gen-1": "", "dead": "", "amqp": "p"} {
		if got := s.For(Target{Name: name, Type: Classic}); got.Policy != want {
			t.Errorf("%s: policy %q, want %q", name, got.Policy, want)
		}
	}
}

func TestWhichPolicyApplies(t *testing.T) {
	limit := Definition{"max-length": int64(1)}
	s := set(t,
		Policy{Name: "all", Pattern: "", Definition: Definition{"alternate-exchange": "a"}, Priority: -1},
		Policy{Name: "orders", Pattern: "^orders", Definition: limit, Priority: 5},
		Policy{Name: "higher", Pattern: "special", Definition: limit, Priority: 6},
		Policy{Name: "quorum", Pattern: "^orders", ApplyTo: "quorum_queues", Definition: limit, Priority: 7},
		Policy{Name: "redelivery", Pattern: "^limited", Definition: Definition{"delivery-limit": int64(1)}},
		Policy{Name: "exchanges", Pattern: "^x", ApplyTo: "exchanges", Definition: limit},
		Policy{Name: "queues", Pattern: "^x", ApplyTo: "queues", Definition: limit},
		Policy{Name: "equal", Pattern: "^x", ApplyTo: "queues", Definition: limit},
		Policy{Name: "streams", Pattern: "^s", ApplyTo: "streams", Definition: Definition{"max-age": "1h"}},
		Policy{Name: "classic", Pattern: "^s", ApplyTo: "classic_queues", Definition: limit},
	)
	for _, c := range []struct {
		name string
		t    Type
		want string
	}{
		{"other", Classic, "all"},
		{"orders", Classic, "orders"},
		{"orders", Quorum, "quorum"},
		{"orders", Stream, "all"},      // max-length is nothing for a stream
		{"orders", Exchange, "orders"}, // where nobody asks
		{"orders.special", Classic, "higher"},
		{"limited", Quorum, "redelivery"},
		{"limited", Classic, "all"},
		{"x", Exchange, "exchanges"},
		{"x", Classic, "equal"},
		{"s", Stream, "streams"},
		{"s", Classic, "classic"},
		{"s", Quorum, "all"},
	} {
		if got := s.For(Target{c.name, c.t}).Policy; got != c.want {
			t.Errorf("%s %q: policy %q, want %q", c.t, c.name, got, c.want)
		}
	}
	if !s.Delete(Regular, "higher") || s.Delete(Regular, "higher") || s.Delete(Operator, "orders") {
		t.Error("deleted what is not there, or not what is")
	}
	if got := s.For(Target{"orders.special", Classic}).Policy; got != "orders" {
		t.Errorf("after the deletion policy %q applies", got)
	}
}

func TestPutReplaces(t *testing.T) {
	s := set(t,
		Policy{Name: "p", Pattern: "a", Definition: Definition{"max-length": 1}},
		Policy{Kind: Operator, Name: "p", Pattern: "a", Definition: Definition{"max-length": 3, "expires": 7}},
		Policy{Name: "p", Pattern: "b", Definition: Definition{"max-length": 2}},
	)
	if err := s.Put(Policy{Kind: Regular, Name: "p", Pattern: "a"}); err == nil {
		t.Error("a policy without a definition was taken")
	}
	list := s.List(Regular)
	if len(list) != 1 || list[0].Pattern != "b" || list[0].ApplyTo != "all" || len(s.List(Operator)) != 1 {
		t.Fatalf("policies %v", list)
	}
	got := s.For(Target{"ab", Classic})
	want := Effective{Policy: "p", OperatorPolicy: "p", Definition: Definition{"max-length": int64(2), "expires": int64(7)}}
	if !got.Equal(want) {
		t.Errorf("in effect is %v, want %v", got, want)
	}
	if none := s.For(Target{"c", Classic}); !none.Equal(Effective{}) || none.Definition != nil {
		t.Errorf("in effect is %v for what no policy matches", none)
	}
}
