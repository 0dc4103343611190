package conformance

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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
	release  string // all of the version
	embedded bool
	manager  http.Handler // the management API of the embedded broker
}

// A Case is one program and what it must observe.
type Case struct {
	Name string
	Run  func(c *C)
}

// allCases are the cases in the order of their names.
func allCases() []Case {
	cases := slices.Concat(
		accessCases(),
		declareCases(),
		argumentCases(),
		fieldTypeCases(),
		exchangeCases(),
		bindCases(),
		routeCases(),
		publishCases(),
		transactionCases(),
		hashCases(),
		deliverCases(),
		requeueCases(),
		ttlCases(),
		deathCases(),
		limitCases(),
		priorityCases(),
		quorumCases(),
		streamCases(),
		policyCases(),
		timeoutCases(),
		retryCases(),
		protocolCases(),
		managementCases(),
		managementTopologyCases(),
	)
	slices.SortFunc(cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	return cases
}

func TestRabbitMQ(t *testing.T) {
	for _, to := range realBrokers(t) {
		t.Run(to.version.String(), func(t *testing.T) { runAll(t, to) })
	}
}

// realBrokers are those that DORMOUSE_TEST_AMQP names.
func realBrokers(t *testing.T) (list []target) {
	t.Helper()
	urls := os.Getenv("DORMOUSE_TEST_AMQP")
	if urls == "" {
		t.Skip("DORMOUSE_TEST_AMQP is not set: the cases are not compared with a real RabbitMQ")
	}
	for url := range strings.SplitSeq(urls, ",") {
		to, err := detect(strings.TrimSpace(url))
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		list = append(list, to)
	}
	return list
}

func detect(url string) (target, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return target{}, err
	}
	defer conn.Close()
	release, _ := conn.Properties["version"].(string)
	v, err := parseVersion(release)
	return target{url: url, version: v, release: release}, err
}

// runAll runs all cases on a broker. The results are whole when the test that t is of has ended.
func runAll(t *testing.T, to target) []result {
	cases := allCases()
	results := make([]result, len(cases))
	for i, cs := range cases {
		results[i].name = cs.Name
		t.Run(cs.Name, func(t *testing.T) {
			t.Parallel()
			cs.Run(newC(t, to, &results[i]))
		})
	}
	return results
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

// What differs from RabbitMQ on purpose has its reason: a case asks Deviates, not which broker it runs on.
func TestDeviationsHaveReasons(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source found: %v", err)
	}
	asks := regexp.MustCompile(`\bc\.(target\.)?embedded\b`)
	for _, file := range files {
		if file == "c_test.go" || file == "report_test.go" {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := asks.FindString(string(source)); found != "" {
			t.Errorf("%s: %s: say why by c.Deviates", file, found)
		}
	}
}

// both makes a case for classic and one for quorum queues.
func both(name string, run func(c *C, kind string)) []Case {
	return []Case{
		{name + "/classic", func(c *C) { run(c, classic) }},
		{name + "/quorum", func(c *C) { run(c, quorum) }},
	}
}
