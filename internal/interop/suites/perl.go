package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"time"
)

func mojo() suite {
	return suite{
		name:     "mojo-rabbitmq",
		about:    "Perl's Mojo::RabbitMQ::Client 0.3.1",
		packages: []string{"libmojo-rabbitmq-client-perl", "dpkg-dev"},
		prepare: func(ctx context.Context, dir string) error {
			return debianSource(ctx, dir, "libmojo-rabbitmq-client-perl")
		},
		run: func(ctx context.Context, dir string, _ broker) (results, error) {
			out, _, err := output(ctx, 2*time.Minute, filepath.Join(dir, "src"), []string{"TEST_RMQ=1"}, "prove", "-l", "-v", "--merge", "t")
			if err != nil {
				return nil, err
			}
			res := tapResults(out)
			if len(res) == 0 {
				return nil, fmt.Errorf("no test has run:\n%s", last(out))
			}
			return res, nil
		},
	}
}

var (
	tapFile  = regexp.MustCompile(`^(?:t/)?(\S+\.t) \.`)
	tapPoint = regexp.MustCompile(`^(ok|not ok) (\d+)(?: - (.*?))?( # skip.*)?$`)
)

// tapResults reads what prove -v prints; a test's name is its file, number and description.
func tapResults(out []byte) results {
	res := results{}
	file := ""
	for _, line := range lines(out) {
		if found := tapFile.FindStringSubmatch(line); found != nil {
			file = found[1]
			continue
		}
		found := tapPoint.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		o := failed
		switch {
		case found[4] != "":
			o = skipped
		case found[1] == "ok":
			o = passed
		}
		res.add(fmt.Sprintf("%s %s %s", file, found[2], found[3]), o)
	}
	return res
}
