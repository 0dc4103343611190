// Package rabbittest gives tests the real RabbitMQ brokers that Dormouse has to behave like.
//
// A test that compares with RabbitMQ, or that only RabbitMQ can answer, asks for the brokers named in the
// environment variable DORMOUSE_TEST_AMQP: AMQP URLs, separated by commas. Where it is not set the test is skipped,
// so that the tests run on a machine without RabbitMQ. A broker that is named but cannot be reached fails the test.
//
// The script rabbitnode beside this file starts such brokers on a Debian machine, single nodes and clusters of three
// versions, and prints the variable:
//
//	sudo internal/rabbittest/rabbitnode start 4.3
//	eval "$(internal/rabbittest/rabbitnode env)"
//
// Elsewhere any RabbitMQ with the management plugin does, as long as its HTTP API listens 10000 ports above AMQP,
// as it does by default.
package rabbittest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Variable is the environment variable that names the brokers.
const Variable = "DORMOUSE_TEST_AMQP"

// Broker is one real RabbitMQ.
type Broker struct {
	URL     string // AMQP URL, with user and password
	Version string // as the broker says it, such as "4.3.6"
}

// URLs returns the AMQP URLs named in the environment, at least one. It skips the test if there are none.
func URLs(t testing.TB) []string {
	t.Helper()
	var urls []string
	for url := range strings.SplitSeq(os.Getenv(Variable), ",") {
		if url = strings.TrimSpace(url); url != "" {
			urls = append(urls, url)
		}
	}
	if len(urls) == 0 {
		t.Skipf("needs a real RabbitMQ: set %s to AMQP URLs, see internal/rabbittest", Variable)
	}
	return urls
}

// Brokers connects to every broker named in the environment and returns them. It skips the test if there are none,
// and fails it if one cannot be reached.
func Brokers(t testing.TB) []Broker {
	t.Helper()
	var brokers []Broker
	for _, url := range URLs(t) {
		conn, err := amqp.Dial(url)
		if err != nil {
			t.Fatalf("%s names a broker that cannot be reached: %v", Variable, err)
		}
		version, _ := conn.Properties["version"].(string)
		if err := conn.Close(); err != nil {
			t.Fatalf("close the connection to RabbitMQ %s: %v", version, err)
		}
		brokers = append(brokers, Broker{URL: url, Version: version})
	}
	return brokers
}

// Each runs f as a subtest for every broker named in the environment. It skips the test if there are none.
func Each(t *testing.T, f func(t *testing.T, b Broker)) {
	t.Helper()
	for _, b := range Brokers(t) {
		t.Run("RabbitMQ-"+b.Version, func(t *testing.T) { f(t, b) })
	}
}

// AtLeast reports whether the broker's version is major.minor or newer.
func (b Broker) AtLeast(major, minor int) bool {
	var have struct{ major, minor int }
	if _, err := fmt.Sscanf(b.Version, "%d.%d", &have.major, &have.minor); err != nil {
		return false
	}
	return have.major > major || have.major == major && have.minor >= minor
}
