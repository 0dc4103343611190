package main

import (
	"fmt"
	"maps"
	"slices"
)

// outcome is how a test ended.
type outcome string

const (
	passed  outcome = "passed"
	failed  outcome = "failed"
	skipped outcome = "skipped"
	missing outcome = "–" // it did not run, since what it belongs to ended before
)

// results is the outcome of each test of a suite by its name.
type results map[string]outcome

// add notes the outcome of a test. A test that is run several times has failed when it failed once.
func (r results) add(name string, o outcome) {
	switch before := r[name]; {
	case before == failed:
	case o == failed, before == "", before == skipped:
		r[name] = o
	}
}

// of is the outcome of a test, missing when it did not run.
func (r results) of(name string) outcome {
	if o, ok := r[name]; ok {
		return o
	}
	return missing
}

// counts is how many tests ended in which way.
type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

func (r results) count() counts {
	var c counts
	for _, o := range r {
		switch o {
		case passed:
			c.passed++
		case failed:
			c.failed++
		default:
			c.skipped++
		}
	}
	return c
}

// names is all tests that ran on any of the brokers, sorted.
func (c comparison) names() []string {
	every := map[string]bool{}
	for _, r := range c.results {
		for name := range r {
			every[name] = true
		}
	}
	return slices.Sorted(maps.Keys(every))
}

// differing is the tests that did not end alike on all brokers, sorted.
func (c comparison) differing() []string {
	return slices.DeleteFunc(c.names(), func(name string) bool {
		return !slices.ContainsFunc(c.results, func(r results) bool { return r.of(name) != c.results[0].of(name) })
	})
}

// failing is the tests that failed on all brokers alike, sorted.
func (c comparison) failing() []string {
	return slices.DeleteFunc(c.names(), func(name string) bool {
		return slices.ContainsFunc(c.results, func(r results) bool { return r.of(name) != failed })
	})
}
