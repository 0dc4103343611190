package wire

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tables generates tables with every type of value, nested up to depth.
func tables(depth int) *rapid.Generator[Table] {
	return rapid.Custom(func(t *rapid.T) Table {
		var table Table
		for range rapid.IntRange(0, 4).Draw(t, "fields") {
			name := rapid.StringN(0, 20, 255).Draw(t, "name")
			table = append(table, Field{Name: name, Value: values(depth).Draw(t, "value")})
		}
		return table
	})
}

func values(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(), rapid.Int8().AsAny(), rapid.Uint8().AsAny(), rapid.Int16().AsAny(), rapid.Uint16().AsAny(),
		rapid.Int32().AsAny(), rapid.Uint32().AsAny(), rapid.Int64().AsAny(), rapid.Float32().AsAny(), rapid.Float64().AsAny(),
		rapid.String().AsAny(),
		rapid.SliceOf(rapid.Byte()).AsAny(),
		rapid.Map(rapid.Uint64(), func(n uint64) any { return Timestamp(n) }),
		rapid.Custom(func(t *rapid.T) any { return Decimal{rapid.Uint8().Draw(t, "scale"), rapid.Uint32().Draw(t, "value")} }),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Map(tables(depth-1), func(t Table) any { return t }),
			rapid.Custom(func(t *rapid.T) any {
				a := []any{}
				for range rapid.IntRange(0, 3).Draw(t, "elements") {
					a = append(a, values(depth-1).Draw(t, "element"))
				}
				return a
			}))
	}
	return rapid.OneOf(kinds...)
}

func TestTableRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := tables(3).Draw(t, "table")
		encoded := want.AppendTo(nil)
		got, err := ParseTable(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(normal(got), normal(want)) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if again := got.AppendTo(nil); !bytes.Equal(again, encoded) {
			t.Fatalf("encoded again: % x, want % x", again, encoded)
		}
		if err := ValidateTable(encoded); err != nil {
			t.Fatal(err)
		}
	})
}

// normal makes nil and empty tables and slices comparable, and NaN equal to itself.
func normal(v any) any {
	switch v := v.(type) {
	case Table:
		fields := []any{}
		for _, f := range v {
			fields = append(fields, f.Name, normal(f.Value))
		}
		return fields
	case []any:
		a := []any{"array"}
		for _, e := range v {
			a = append(a, normal(e))
		}
		return a
	case []byte:
		return "octets " + string(v)
	case float64:
		return math.Float64bits(v)
	case float32:
		return math.Float32bits(v)
	}
	return v
}

func TestTableWireForm(t *testing.T) {
	for _, test := range []struct {
		value any
		wire  string
	}{
		{nil, "V"},
		{true, "t\x01"},
		{int8(-1), "b\xff"},
		{uint8(255), "B\xff"},
		{int16(-2), "s\xff\xfe"},
		{uint16(2), "u\x00\x02"},
		{int32(-3), "I\xff\xff\xff\xfd"},
		{uint32(3), "i\x00\x00\x00\x03"},
		{int64(-4), "l\xff\xff\xff\xff\xff\xff\xff\xfc"},
		{float32(1), "f\x3f\x80\x00\x00"},
		{float64(1), "d\x3f\xf0\x00\x00\x00\x00\x00\x00"},
		{Decimal{2, 314}, "D\x02\x00\x00\x01\x3a"},
		{Timestamp(5), "T\x00\x00\x00\x00\x00\x00\x00\x05"},
		{"hi", "S\x00\x00\x00\x02hi"},
		{[]byte("hi"), "x\x00\x00\x00\x02hi"},
		{[]any{true, nil}, "A\x00\x00\x00\x03t\x01V"},
		{Table{{"k", "v"}}, "F\x00\x00\x00\x08\x01kS\x00\x00\x00\x01v"},
	} {
		want := "\x01n" + test.wire
		table := Table{{"n", test.value}}
		if got := string(table.AppendTo(nil)); got != want {
			t.Errorf("%T encoded as %q, want %q", test.value, got, want)
		}
		got, err := ParseTable([]byte(want))
		if err != nil || !reflect.DeepEqual(got, table) {
			t.Errorf("%q parsed as %v, %v", want, got, err)
		}
		for n := 1; n < len(want); n++ {
			if _, err := ParseTable([]byte(want[:n])); err == nil {
				t.Errorf("%q, cut short, was parsed", want[:n])
			}
		}
	}
}

func TestTableReadsForeignTypes(t *testing.T) {
	table, err := ParseTable([]byte("\x01aU\xff\xfe\x01bL\xff\xff\xff\xff\xff\xff\xff\xfc\x01at\x07"))
	if err != nil {
		t.Fatal(err)
	}
	want := Table{{"a", int16(-2)}, {"b", int64(-4)}, {"a", true}}
	if !reflect.DeepEqual(table, want) {
		t.Errorf("got %v, want %v", table, want)
	}
	if v, ok := table.Get("a"); !ok || v != int16(-2) {
		t.Errorf("Get(a) = %v, %v; want the first", v, ok)
	}
	if _, ok := table.Get("c"); ok {
		t.Error("Get(c) found something")
	}
}

func TestTableRejects(t *testing.T) {
	arrays, tables := "V", ""
	for range maxNesting + 1 {
		arrays = string(appendLong([]byte{'A'}, arrays))
		tables = string(appendLong([]byte("\x01nF"), tables))
	}
	for name, b := range map[string]string{
		"unknown type":       "\x01nQ",
		"no type":            "\x01n",
		"name too long":      "\x05n",
		"string too long":    "\x01nS\xff\xff\xff\xffx",
		"array too long":     "\x01nA\x00\x00\x00\x02V",
		"table too long":     "\x01nF\x7f\xff\xff\xff",
		"bad element":        "\x01nA\x00\x00\x00\x01Q",
		"bad field of table": "\x01nF\x00\x00\x00\x03\x01kQ",
		"arrays too deep":    "\x01n" + arrays,
		"tables too deep":    tables,
		"octets left at end": "\x01nV\x00",
	} {
		_, err := ParseTable([]byte(b))
		if e, ok := err.(*Exception); !ok || e.Code != SyntaxError {
			t.Errorf("%s: ParseTable returned %v", name, err)
		}
		if e, ok := ValidateTable([]byte(b)).(*Exception); !ok || e.Code != SyntaxError {
			t.Errorf("%s: ValidateTable returned %v", name, e)
		}
	}
}

func TestLookupTable(t *testing.T) {
	b := Table{{"a", int32(1)}, {"cc", []any{"x", "y"}}, {"a", int32(2)}}.AppendTo(nil)
	if v, ok := LookupTable(b, "cc"); !ok || !reflect.DeepEqual(v, []any{"x", "y"}) {
		t.Errorf("cc = %v, %v", v, ok)
	}
	if v, ok := LookupTable(b, "a"); !ok || v != int32(1) {
		t.Errorf("a = %v, %v; want the first", v, ok)
	}
	for _, b := range [][]byte{b, nil, b[:len(b)-1], {5}, {1, 'a'}, {1, 'a', 'Q'}} {
		if v, ok := LookupTable(b, "b"); ok {
			t.Errorf("b = %v in % x", v, b)
		}
	}
}

func TestAppendPanicsOnForeignType(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Table{{"n", struct{}{}}}.AppendTo(nil)
}

func TestLongNamesAreCut(t *testing.T) {
	b := Table{{strings.Repeat("n", 300), true}}.AppendTo(nil)
	table, err := ParseTable(b)
	if err != nil || len(table) != 1 || len(table[0].Name) != 255 {
		t.Errorf("got %v, %v", table, err)
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte(""))
	f.Add(Table{{"a", int32(1)}, {"b", []any{"x", Table{{"c", nil}}}}}.AppendTo(nil))
	f.Add([]byte("\x01nA\x00\x00\x00\x02VV\x01mD\x01\x00\x00\x00\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := ParseTable(b)
		if verr := ValidateTable(b); (err == nil) != (verr == nil) {
			t.Fatalf("ParseTable: %v, ValidateTable: %v", err, verr)
		}
		if err != nil {
			return
		}
		encoded := table.AppendTo(nil)
		again, err := ParseTable(encoded)
		if err != nil || !reflect.DeepEqual(normal(again), normal(table)) {
			t.Fatalf("%v became %v, %v", table, again, err)
		}
		for _, field := range table {
			want, _ := table.Get(field.Name)
			if got, ok := LookupTable(b, field.Name); !ok || !reflect.DeepEqual(normal(got), normal(want)) {
				t.Fatalf("LookupTable(%q) = %v, want %v", field.Name, got, want)
			}
		}
	})
}
