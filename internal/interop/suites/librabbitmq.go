package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// librabbitmq has tests that need no broker, one that does, examples and command-line tools. What these two print is
// compared with what they should.
func librabbitmq() suite {
	return suite{
		name:     "librabbitmq",
		about:    "rabbitmq-c 0.11.0: its tests, tools and examples",
		packages: []string{"gcc", "libc6-dev", "make", "cmake", "libpopt-dev", "libssl-dev", "dpkg-dev"},
		prepare: func(ctx context.Context, dir string) error {
			if err := debianSource(ctx, dir, "librabbitmq"); err != nil {
				return err
			}
			err := do(ctx, dir, "cmake", "-S", "src", "-B", "build", "-DBUILD_EXAMPLES=ON", "-DBUILD_TOOLS=ON", "-DBUILD_TESTS=ON", "-DBUILD_TOOLS_DOCS=OFF")
			if err != nil {
				return err
			}
			return do(ctx, dir, "make", "-C", "build")
		},
		run: runLibrabbitmq,
	}
}

var ctestResult = regexp.MustCompile(`(?m)Test +#\d+: (\S+) \.+ +(Passed|\*\*\*)`)

func runLibrabbitmq(ctx context.Context, dir string, to broker) (results, error) {
	build := filepath.Join(dir, "build")
	res := results{}
	out, _, err := output(ctx, time.Minute, build, nil, "ctest")
	if err != nil {
		return nil, err
	}
	for _, found := range ctestResult.FindAllSubmatch(out, -1) {
		res.add("ctest "+string(found[1]), ended(string(found[2]) == "Passed"))
	}
	_, ok, err := output(ctx, time.Minute, build, nil, "tests/test_basic")
	if err != nil {
		return nil, err
	}
	res.add("test_basic", ended(ok))
	host, port, err := net.SplitHostPort(to.address)
	if err != nil {
		return nil, err
	}
	// To librabbitmq, a slash at the end names a virtual host without a name.
	c := cPrograms{dir: build, url: strings.TrimSuffix(to.url, "/"), host: host, port: port}
	for _, step := range cSteps {
		res.add(step.name, ended(step.does(ctx, c) == nil))
	}
	return res, nil
}

// cPrograms runs the tools and examples of librabbitmq.
type cPrograms struct{ dir, url, host, port string }

func (c cPrograms) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.dir, program), args...)
	cmd.WaitDelay = time.Second
	return cmd
}

// tool runs a command-line tool and expects it to print something.
func (c cPrograms) tool(ctx context.Context, want, name string, args ...string) error {
	return expect(c.command(ctx, "tools/amqp-"+name, append([]string{"--url=" + c.url}, args...)...), want)
}

// example runs an example program and expects it to print something.
func (c cPrograms) example(ctx context.Context, want, name string, args ...string) error {
	return expect(c.command(ctx, "examples/amqp_"+name, append([]string{c.host, c.port}, args...)...), want)
}

func expect(cmd *exec.Cmd, want string) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	if !bytes.Contains(out, []byte(want)) {
		return fmt.Errorf("%s has printed %q, not %q", cmd, out, want)
	}
	return nil
}

// cSteps are done in order: later ones use the queues of earlier ones.
var cSteps = []struct {
	name string
	does func(ctx context.Context, c cPrograms) error
}{
	{"tools: declare a queue", func(ctx context.Context, c cPrograms) error {
		return c.tool(ctx, "suites-c", "declare-queue", "--queue=suites-c")
	}},
	{"tools: publish", func(ctx context.Context, c cPrograms) error {
		return c.tool(ctx, "", "publish", "--routing-key=suites-c", "--content-type=text/plain", "--header=answer: 42", "--body=first")
	}},
	{"tools: get", func(ctx context.Context, c cPrograms) error {
		return c.tool(ctx, "first", "get", "--queue=suites-c")
	}},
	{"tools: get from an empty queue fails", func(ctx context.Context, c cPrograms) error {
		if c.tool(ctx, "", "get", "--queue=suites-c") == nil {
			return fmt.Errorf("got a message")
		}
		return nil
	}},
	{"tools: publish persistent messages line by line", func(ctx context.Context, c cPrograms) error {
		cmd := c.command(ctx, "tools/amqp-publish", "--url="+c.url, "--routing-key=suites-c", "--persistent", "--line-buffered")
		cmd.Stdin = strings.NewReader("second\nthird\n")
		return expect(cmd, "")
	}},
	{"tools: consume two messages", func(ctx context.Context, c cPrograms) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		return c.tool(ctx, "third", "consume", "--queue=suites-c", "--count=2", "--prefetch-count=1", "cat")
	}},
	{"examples: declare an exchange", func(ctx context.Context, c cPrograms) error {
		return c.example(ctx, "", "exchange_declare", "suites-c", "direct")
	}},
	{"examples: bind", func(ctx context.Context, c cPrograms) error {
		return c.example(ctx, "", "bind", "suites-c", "key", "suites-c")
	}},
	{"examples: publish to the binding", func(ctx context.Context, c cPrograms) error {
		if err := c.example(ctx, "", "sendstring", "suites-c", "key", "fourth"); err != nil {
			return err
		}
		return c.tool(ctx, "fourth", "get", "--queue=suites-c")
	}},
	{"examples: unbind", func(ctx context.Context, c cPrograms) error {
		if err := c.example(ctx, "", "unbind", "suites-c", "key", "suites-c"); err != nil {
			return err
		}
		if err := c.example(ctx, "", "sendstring", "suites-c", "key", "lost"); err != nil {
			return err
		}
		if c.tool(ctx, "", "get", "--queue=suites-c") == nil {
			return fmt.Errorf("a message came after the binding was removed")
		}
		return nil
	}},
	{"examples: produce 2000 messages", func(ctx context.Context, c cPrograms) error {
		return c.example(ctx, "PRODUCER - Message count: 2000", "producer", "100000", "2000")
	}},
	{"examples: connect with a timeout", func(ctx context.Context, c cPrograms) error {
		return c.example(ctx, "", "connect_timeout", "5", "0")
	}},
	{"examples: remote call", remoteCall},
	{"tools: delete the queue", func(ctx context.Context, c cPrograms) error {
		return c.tool(ctx, "0", "delete-queue", "--queue=suites-c")
	}},
}

// remoteCall is the server of the example that calls one.
func remoteCall(ctx context.Context, c cPrograms) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	connection, err := amqp.Dial(c.url)
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	if _, err := channel.QueuePurge("suites-c", false); err != nil {
		return err
	}
	calls, err := channel.ConsumeWithContext(ctx, "suites-c", "", true, false, false, false, nil)
	if err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() {
		call := <-calls
		answered <- channel.PublishWithContext(ctx, "", call.ReplyTo, false, false,
			amqp.Publishing{CorrelationId: call.CorrelationId, ContentType: "text/plain", Body: append([]byte("re: "), call.Body...)})
	}()
	if err := c.example(ctx, "re: question", "rpc_sendstring_client", "", "suites-c", "question"); err != nil {
		return err
	}
	return <-answered
}
