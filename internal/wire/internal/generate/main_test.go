package main

import (
	"bytes"
	"go/format"
	"os"
	"testing"
)

func TestMethodsAreUpToDate(t *testing.T) {
	spec, err := os.ReadFile("../../spec.txt")
	if err != nil {
		t.Fatal(err)
	}
	methods, err := parse(string(spec))
	if err != nil {
		t.Fatal(err)
	}
	want, err := format.Source(generate(methods))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../methods_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("methods_gen.go does not match spec.txt: run go generate")
	}
}

func TestParseRejects(t *testing.T) {
	for _, spec := range []string{
		"class basic",
		"class basic x",
		"class basic 60\nack eighty",
		"ack 80",
		"class basic 60\nack",
		"class basic 60\nack 80 delivery-tag",
		"class basic 60\nack 80 delivery-tag quad",
	} {
		if _, err := parse(spec); err == nil {
			t.Errorf("parse(%q) succeeded", spec)
		}
	}
}
