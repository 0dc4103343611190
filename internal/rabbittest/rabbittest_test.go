package rabbittest_test

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/internal/rabbittest"
)

func TestURLsSkipsWithoutBrokers(t *testing.T) {
	for _, value := range []string{"", " ", ","} {
		t.Setenv(rabbittest.Variable, value)
		skipped := false
		t.Run("unset", func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			rabbittest.URLs(t)
		})
		if !skipped {
			t.Errorf("%s=%q does not skip the test", rabbittest.Variable, value)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Setenv(rabbittest.Variable, "amqp://one/, amqp://two/,")
	if got := strings.Join(rabbittest.URLs(t), " "); got != "amqp://one/ amqp://two/" {
		t.Errorf("URLs = %s", got)
	}
}

func TestAtLeast(t *testing.T) {
	for _, c := range []struct {
		version      string
		major, minor int
		want         bool
	}{
		{"3.10.8", 3, 10, true},
		{"3.10.8", 3, 9, true},
		{"3.10.8", 3, 12, false},
		{"3.10.8", 4, 0, false},
		{"4.0.5", 3, 13, true},
		{"4.3.6", 4, 0, true},
		{"", 3, 0, false},
	} {
		if got := (rabbittest.Broker{Version: c.version}).AtLeast(c.major, c.minor); got != c.want {
			t.Errorf("%q at least %d.%d: %t", c.version, c.major, c.minor, got)
		}
	}
}

func TestVhostIsOnesOwn(t *testing.T) {
	rabbittest.Each(t, func(t *testing.T, b rabbittest.Broker) {
		if !b.AtLeast(3, 8) {
			t.Errorf("version %q", b.Version)
		}
		var gone string
		t.Run("used", func(t *testing.T) {
			first, second := b.Vhost(t), b.Vhost(t)
			declare(t, first, "only-in-the-first")
			if _, err := open(t, second).QueueDeclarePassive("only-in-the-first", false, false, false, false, nil); err == nil {
				t.Error("a queue of one virtual host is in the other")
			}
			gone = first
		})
		if conn, err := amqp.Dial(gone); err == nil {
			_ = conn.Close()
			t.Error("the virtual host outlives its test")
		}
	})
}

func open(t *testing.T, url string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func declare(t *testing.T, url, name string) {
	t.Helper()
	if _, err := open(t, url).QueueDeclare(name, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}
