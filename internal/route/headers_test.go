package route

import (
	"slices"
	"testing"
)

func TestHeaders(t *testing.T) {
	type h = map[string]any
	for _, c := range []struct {
		name    string
		args    Arguments
		yes, no []h
	}{
		{"no arguments", nil, []h{nil, {"a": "1"}}, nil},
		{"all alone", Arguments{{"x-match", "all"}}, []h{nil, {"a": "1"}}, nil},
		{"any alone", Arguments{{"x-match", "any"}}, nil, []h{nil, {"a": "1"}}},
		{"all by default", Arguments{{"a", "1"}, {"b", "2"}},
			[]h{{"a": "1", "b": "2"}, {"a": "1", "b": "2", "c": "3"}},
			[]h{nil, {"a": "1"}, {"b": "2"}, {"a": "1", "b": "3"}}},
		{"any", Arguments{{"x-match", "any"}, {"a", "1"}, {"b", "2"}},
			[]h{{"a": "1"}, {"a": "2", "b": "2"}},
			[]h{nil, {"a": "2"}, {"c": "1"}}},
		{"void asks for presence", Arguments{{"a", nil}}, []h{{"a": "1"}, {"a": nil}}, []h{nil, {"b": "1"}}},
		{"void does not match a value", Arguments{{"a", "1"}}, nil, []h{{"a": nil}}},
		{"x- ignored by all", Arguments{{"x-match", "all"}, {"x-a", "1"}, {"b", "2"}},
			[]h{{"b": "2"}, {"b": "2", "x-a": "9"}}, []h{{"x-a": "1"}}},
		{"x- ignored by any", Arguments{{"x-match", "any"}, {"x-a", "1"}}, nil, []h{{"x-a": "1"}}},
		{"all-with-x", Arguments{{"x-match", "all-with-x"}, {"x-a", "1"}, {"b", "2"}},
			[]h{{"b": "2", "x-a": "1"}}, []h{{"b": "2"}, {"x-a": "1"}}},
		{"any-with-x", Arguments{{"x-match", "any-with-x"}, {"x-a", "1"}, {"b", "2"}},
			[]h{{"x-a": "1"}, {"b": "2"}}, []h{nil, {"x-match": "any-with-x"}}},
		{"names are case sensitive", Arguments{{"A", "1"}}, nil, []h{{"a": "1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewHeaders[string]()
			m.Bind("ignored", c.args, "q")
			for _, h := range c.yes {
				if !slices.Equal(matched(m, "", h), []string{"q"}) {
					t.Errorf("no match with %v", h)
				}
			}
			for _, h := range c.no {
				if len(matched(m, "", h)) != 0 {
					t.Errorf("match with %v", h)
				}
			}
		})
	}
}

func TestHeadersWithoutHeaders(t *testing.T) {
	m := NewHeaders[string]()
	m.Bind("", nil, "all")
	m.Bind("", Arguments{{"a", nil}}, "a")
	var got []string
	m.Match("", nil, func(d string) { got = append(got, d) })
	if !slices.Equal(got, []string{"all"}) {
		t.Errorf("got %v", got)
	}
}

// stamp stands for a named field type of a codec.
type stamp uint64

func TestEqual(t *testing.T) {
	// Values of one class are equal to each other and to no value of another class.
	classes := [][]any{
		{int8(1), uint8(1), int16(1), uint16(1), int32(1), uint32(1), int64(1), stamp(1)},
		{int8(-1), int64(-1)},
		{uint64(1<<64 - 1)},
		{float32(1), float64(1)},
		{1.5, float32(1.5)},
		{"1", []byte("1")},
		{"", []byte{}},
		{"true"},
		{true},
		{false},
		{nil},
		{[]any{int32(1), "a"}, []any{int32(1), "a"}},
		{[]any{int64(1), "a"}},
		{[]any{"a", int32(1)}},
		{[]any{}},
		{struct{ Scale uint8 }{1}},
	}
	for i, as := range classes {
		for j, bs := range classes {
			for _, a := range as {
				for _, b := range bs {
					if got := equal(a, b); got != (i == j) {
						t.Errorf("equal(%T %v, %T %v) = %v", a, a, b, b, got)
					}
				}
			}
		}
	}
}

func TestCheckHeadersBinding(t *testing.T) {
	for _, c := range []struct {
		args Arguments
		want string
	}{
		{nil, ""},
		{Arguments{{"x-match", "all"}}, ""},
		{Arguments{{"x-match", "any"}}, ""},
		{Arguments{{"x-match", "all-with-x"}}, ""},
		{Arguments{{"a", "1"}, {"x-match", "any-with-x"}}, ""},
		{Arguments{{"x-match", "some"}}, `Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x`},
		{Arguments{{"x-match", int32(1)}}, "Invalid x-match field type signedint (value 1); expected longstr"},
		{Arguments{{"x-match", nil}}, "Invalid x-match field type void (value undefined); expected longstr"},
		{Arguments{{"x-match", []any{"a", int64(1)}}}, `Invalid x-match field type array (value [{longstr,<<"a">>},{long,1}]); expected longstr`},
		{Arguments{{"x-match", true}}, "Invalid x-match field type bool (value true); expected longstr"},
	} {
		got := ""
		if err := CheckHeadersBinding(c.args); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v: got %q, want %q", c.args, got, c.want)
		}
	}
}
