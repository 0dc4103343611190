package conformance

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Cases mostly wait for a broker, so many of them run at once.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "24"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A target is one broker under test.
type target struct {
	url      string
	version  version
	embedded bool
}

// A Case is one program and what it must observe.
type Case struct {
	Name string
	Run  func(c *C)
}

func allCases() []Case {
	return slices.Concat(
		declareCases(),
		argumentCases(),
		exchangeCases(),
		bindCases(),
		routeCases(),
		publishCases(),
		deliverCases(),
		requeueCases(),
		ttlCases(),
		deathCases(),
		limitCases(),
		priorityCases(),
		protocolCases(),
	)
}

func TestRabbitMQ(t *testing.T) {
	urls := os.Getenv("DORMOUSE_TEST_AMQP")
	if urls == "" {
		t.Skip("DORMOUSE_TEST_AMQP is not set: the cases are not compared with a real RabbitMQ")
	}
	for url := range strings.SplitSeq(urls, ",") {
		to := target{url: strings.TrimSpace(url)}
		var err error
		if to.version, err = detect(to.url); err != nil {
			t.Errorf("%s: %v", to.url, err)
			continue
		}
		t.Run(to.version.String(), func(t *testing.T) { runAll(t, to) })
	}
}

func detect(url string) (version, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return version{}, err
	}
	defer conn.Close()
	v, _ := conn.Properties["version"].(string)
	return parseVersion(v)
}

func runAll(t *testing.T, to target) {
	for _, cs := range allCases() {
		t.Run(cs.Name, func(t *testing.T) {
			t.Parallel()
			cs.Run(newC(t, to))
		})
	}
}

func TestCaseNames(t *testing.T) {
	seen := map[string]bool{}
	for _, cs := range allCases() {
		if seen[cs.Name] {
			t.Errorf("two cases are named %q", cs.Name)
		}
		seen[cs.Name] = true
	}
	t.Logf("%d cases", len(seen))
}

// both makes a case for classic and one for quorum queues.
func both(name string, run func(c *C, kind string)) []Case {
	return []Case{
		{name + "/classic", func(c *C) { run(c, classic) }},
		{name + "/quorum", func(c *C) { run(c, quorum) }},
	}
}
