package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// amqplib's packages have their tests up to the version named here.
func amqplib() suite {
	return suite{
		name:     "amqplib",
		about:    "Node's amqplib 2.0.1",
		packages: []string{"nodejs"},
		prepare: func(ctx context.Context, dir string) error {
			return npmPackage(ctx, dir, "amqplib@2.0.1", "claire@0.4.1")
		},
		run: func(ctx context.Context, dir string, to broker) (results, error) {
			// Its own limit of a second a test is too short for a machine that does other things too.
			out, _, err := output(ctx, 10*time.Minute, filepath.Join(dir, "package"), []string{"URL=" + to.url},
				"node", "--test", "--test-timeout=20000", "--test-concurrency=1", "--test-reporter=junit")
			if err != nil {
				return nil, err
			}
			return junitResults(out)
		},
	}
}

// nodeAMQP is a client of 2010 to 2018; each of its tests is a program of its own.
func nodeAMQP() suite {
	return suite{
		name:     "node-amqp",
		about:    "Node's older client amqp 0.2.7",
		packages: []string{"nodejs"},
		prepare: func(ctx context.Context, dir string) error {
			return npmPackage(ctx, dir, "amqp@0.2.7", "longjohn@0.2", "optimist@0.6", "lodash@4")
		},
		run: func(ctx context.Context, dir string, _ broker) (results, error) {
			root := filepath.Join(dir, "package")
			tests, err := filepath.Glob(filepath.Join(root, "test", "test-*.js"))
			if err != nil || len(tests) == 0 {
				return nil, fmt.Errorf("no tests in %s", root)
			}
			res := results{}
			for _, test := range tests {
				// It does not try the next address when localhost is ::1 first.
				_, ok, err := output(ctx, 30*time.Second, root, nil, "node", "--dns-result-order=ipv4first", test)
				if err != nil {
					return nil, err
				}
				res.add(filepath.Base(test), ended(ok))
			}
			return res, nil
		},
	}
}

func ended(ok bool) outcome {
	if ok {
		return passed
	}
	return failed
}

type junitCase struct {
	Name    string    `xml:"name,attr"`
	Failure *struct{} `xml:"failure"`
	Skipped *struct{} `xml:"skipped"`
}

type junitSuite struct {
	Name   string       `xml:"name,attr"`
	Suites []junitSuite `xml:"testsuite"`
	Cases  []junitCase  `xml:"testcase"`
}

// junitResults reads JUnit's XML as Node writes it; a test's name is the names of its suites and its own.
func junitResults(out []byte) (results, error) {
	var root junitSuite
	if err := xml.Unmarshal(out, &root); err != nil {
		return nil, fmt.Errorf("not JUnit's XML: %w\n%s", err, last(out))
	}
	res := results{}
	var walk func(s junitSuite, path []string)
	walk = func(s junitSuite, path []string) {
		for _, c := range s.Cases {
			o := passed
			switch {
			case c.Failure != nil:
				o = failed
			case c.Skipped != nil:
				o = skipped
			}
			res.add(strings.Join(append(slices.Clip(path), c.Name), " › "), o)
		}
		for _, inner := range s.Suites {
			walk(inner, append(slices.Clip(path), inner.Name))
		}
	}
	walk(root, nil)
	return res, nil
}
