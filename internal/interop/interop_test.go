package interop

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/dormousemq/dormouse"
	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/rabbittest"
)

// client is a client library of another language with its programs.
type client struct {
	name   string
	folder string
	// command is what runs the programs in folder; it skips the test where the library is not installed.
	command func(t *testing.T) []string
}

var clients = []client{
	{name: "amqplib", folder: "node", command: node},
	{name: "pika", folder: "python", command: python("pika", "python3-pika")},
	{name: "celery", folder: "celeryapp", command: python("celery", "python3-celery")},
}

func node(t *testing.T) []string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node.js")
	}
	if _, err := os.Stat(filepath.Join("node", "node_modules", "amqplib")); err != nil {
		t.Skip("needs amqplib: npm ci --prefix internal/interop/node")
	}
	return []string{path, "--test", "--test-reporter=spec"}
}

// python is unittest with the first Python that has the module.
func python(module, debian string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		for _, path := range []string{"python3", "/usr/bin/python3"} {
			if exec.CommandContext(t.Context(), path, "-c", "import "+module).Run() == nil {
				return []string{path, "-B", "-m", "unittest", "-v"}
			}
		}
		t.Skipf("needs Python with %s: apt install %s, or pip install %s", module, debian, module)
		return nil
	}
}

// ran is how the runners say how many tests there were.
var ran = regexp.MustCompile(`(?m)^(ℹ tests|Ran) [1-9][0-9]*`)

// run runs the programs of every client, each against a broker of its own with a delay ladder in place.
func run(t *testing.T, start func(t *testing.T) (url string), env ...string) {
	t.Helper()
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			command := c.command(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Dir = c.folder
			url := start(t)
			declareLadder(ctx, t, url)
			cmd.Env = append(os.Environ(), "AMQP_URL="+url)
			cmd.Env = append(cmd.Env, env...)
			cmd.WaitDelay = 10 * time.Second // for workers that a failed program has left
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !ran.Match(out) {
				t.Fatalf("no test has run:\n%s", out)
			}
		})
	}
}

// declareLadder makes the delay ladder that the programs then publish to by its names.
func declareLadder(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	client, err := dormouse.Connect(ctx, url, dormouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Declare(ctx, dormouse.Topology{LadderType: dormouse.Classic}); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func TestEmbedded(t *testing.T) {
	env := []string{"EMBEDDED=1"}
	if !testing.Short() {
		env = append(env, "SLOW=1") // the delay of ten seconds
	}
	run(t, embedded, env...)
}

func embedded(t *testing.T) string {
	t.Helper()
	b, err := broker.New(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(listener) }()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, broker.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return "amqp://guest:guest@" + listener.Addr().String() + "/"
}

func TestRabbitMQ(t *testing.T) {
	rabbittest.Each(t, func(t *testing.T, b rabbittest.Broker) {
		t.Parallel()
		run(t, func(t *testing.T) string { return b.Vhost(t) })
	})
}
