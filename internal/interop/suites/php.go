package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"time"
)

func phpExtension() suite {
	return suite{
		name:     "php-amqp",
		about:    "PHP's extension amqp 1.11.0",
		packages: []string{"php8.2-cli", "php8.2-amqp", "php8.2-dev", "dpkg-dev"},
		prepare: func(ctx context.Context, dir string) error {
			return debianSource(ctx, dir, "php-amqp")
		},
		run: func(ctx context.Context, dir string, _ broker) (results, error) {
			runner, err := filepath.Glob("/usr/lib/php/*/build/run-tests.php")
			if err != nil || len(runner) == 0 {
				return nil, fmt.Errorf("no run-tests.php of PHP")
			}
			roots, err := filepath.Glob(filepath.Join(dir, "src", "amqp-*"))
			if err != nil || len(roots) == 0 {
				roots = []string{filepath.Join(dir, "src")}
			}
			out, _, err := output(ctx, 15*time.Minute, roots[0], nil,
				"php8.2", runner[0], "-q", "--no-color", "--no-progress", "--set-timeout", "60", "-p", "/usr/bin/php8.2", "tests")
			if err != nil {
				return nil, err
			}
			res := phpResults(out)
			if len(res) == 0 {
				return nil, fmt.Errorf("no test has run:\n%s", last(out))
			}
			return res, nil
		},
	}
}

// phpResult is a line of run-tests.php.
var phpResult = regexp.MustCompile(`(?m)^(PASS|FAIL|SKIP|BORK|XFAIL) .*?\[tests/([^\]]+)\.phpt\]`)

func phpResults(out []byte) results {
	res := results{}
	for _, found := range phpResult.FindAllSubmatch(out, -1) {
		o := failed
		switch string(found[1]) {
		case "PASS":
			o = passed
		case "SKIP", "XFAIL":
			o = skipped
		}
		res.add(string(found[2]), o)
	}
	return res
}
