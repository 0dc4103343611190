package differ

import (
	"crypto/rand"
	"errors"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
)

var (
	duration = flag.Duration("for", 4*time.Second, "how long programs are compared")
	seed     = flag.Uint64("seed", 1, "the seed of the first program")
	only     = flag.Bool("only", false, "run the program of -seed alone")
	abreast  = flag.Int("abreast", 6, "how many programs run at once")
	again    = flag.Int("again", 2, "how often a difference must come again to count")
)

// shrinking is how long a program with a difference is made smaller.
const shrinking = 45 * time.Second

// managementOffset is how far above its AMQP port a RabbitMQ's HTTP API listens.
const managementOffset = 10000

func TestDiffer(t *testing.T) {
	c := comparison{embedded: embedded(t), rabbit: rabbit(t), patience: 4 * time.Second}
	for _, p := range []*place{&c.embedded, &c.rabbit} {
		p.vhost = "differ." + rand.Text()[:8]
		path := "/api/vhosts/" + p.vhost
		if err := p.request(http.MethodPut, path, map[string]any{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.request(http.MethodDelete, path, nil); err != nil {
				t.Error(err)
			}
		})
		everything := map[string]any{"configure": ".*", "write": ".*", "read": ".*"}
		if err := p.request(http.MethodPut, "/api/permissions/"+p.vhost+"/guest", everything); err != nil {
			t.Fatal(err)
		}
	}
	if *only {
		t.Logf("seed %d:\n%v", *seed, generate(*seed))
		c.try(t, *seed)
		return
	}
	var next, programs, steps atomic.Uint64
	next.Store(*seed)
	end := time.Now().Add(*duration)
	var all sync.WaitGroup
	for range *abreast {
		all.Go(func() {
			for time.Now().Before(end) {
				steps.Add(uint64(c.try(t, next.Add(1)-1)))
				programs.Add(1)
			}
		})
	}
	all.Wait()
	t.Logf("%d programs compared, %d steps", programs.Load(), steps.Load())
}

// try compares one program and reports the difference, made small, if it comes again.
func (c comparison) try(t *testing.T, seed uint64) int {
	p := generate(seed)
	found, steps, err := c.run(p)
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return steps
	}
	if found == nil {
		return steps
	}
	for range *again {
		f, _, err := c.run(p)
		if err != nil || f == nil {
			t.Logf("seed %d: differed once, not again (%v): %v", seed, err, found)
			return steps
		}
		found = f
	}
	less, d := c.shrink(p, *found, time.Now().Add(shrinking))
	t.Errorf("seed %d:\n%v%v", seed, less, d)
	return steps
}

// embedded is the embedded broker on free loopback ports.
func embedded(t *testing.T) place {
	t.Helper()
	b, err := broker.New(broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(l) }()
	api := httptest.NewServer(b.Management())
	t.Cleanup(func() {
		api.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, broker.ErrClosed) {
			t.Error(err)
		}
	})
	return place{name: "the embedded broker", address: l.Addr().String(), api: api.URL}
}

// rabbit is the RabbitMQ 4.3 that DORMOUSE_TEST_AMQP names.
func rabbit(t *testing.T) place {
	t.Helper()
	for address := range strings.SplitSeq(os.Getenv("DORMOUSE_TEST_AMQP"), ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil || u.Host == "" {
			continue
		}
		conn, err := amqp.Dial(u.String())
		if err != nil {
			t.Fatal(err)
		}
		version, _ := conn.Properties["version"].(string)
		conn.Close()
		if !strings.HasPrefix(version, "4.3.") {
			continue
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			t.Fatal(err)
		}
		return place{name: "RabbitMQ " + version, address: u.Host, api: "http://" + net.JoinHostPort(u.Hostname(), strconv.Itoa(port+managementOffset))}
	}
	t.Skip("DORMOUSE_TEST_AMQP names no RabbitMQ 4.3 to compare with")
	return place{}
}
