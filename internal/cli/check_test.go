package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/dormousemq/dormouse/broker"
	"github.com/dormousemq/dormouse/internal/check"
)

func runCheckCommand(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), Environment{Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" }}, append([]string{"check"}, args...))
	return code, stdout.String(), stderr.String()
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	b, err := broker.New(broker.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(l) }()
	conn, err := amqp.Dial("amqp://guest:guest@" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("orders", true, false, false, false, amqp.Table{"x-max-priority": 5}); err != nil {
		t.Fatal(err)
	}
	if err := ch.ExchangeDeclare("later", "x-delayed-message", true, false, false, false, amqp.Table{"x-delayed-type": "fanout"}); err != nil {
		t.Fatal(err)
	}
	for i, exchange := range []string{"", "", "", "later", "later"} {
		c, err := ch.PublishWithDeferredConfirm(exchange, "orders", false, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Priority: uint8(i), Headers: amqp.Table{"x-delay": 3_600_000}, Body: []byte(strings.Repeat("0123456789", 100)),
		})
		if err != nil || !c.Wait() {
			t.Fatalf("publish: %v", err)
		}
	}
	if code, _, said := runCheckCommand(t, "--data", dir); code != ExitFailure || !strings.Contains(said, "in use") {
		t.Errorf("while the broker runs: %d, %s", code, said)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; !errors.Is(err, broker.ErrClosed) {
		t.Fatal(err)
	}

	before := listing(t, dir)
	code, out, said := runCheckCommand(t, "--data", dir, "--json")
	var got check.Report
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != ExitOK || !got.Sound || got.Messages != 5 || len(got.Queues) != 2 {
		t.Errorf("%d, %+v, %s", code, got, said)
	}
	for i, want := range []check.Queue{{VHost: "/", Name: "later", Type: "x-delayed-message", Messages: 2}, {VHost: "/", Name: "orders", Type: "classic", Messages: 3}} {
		if q := got.Queues[i]; q.Bytes < 1000 || q.VHost != want.VHost || q.Name != want.Name || q.Type != want.Type || q.Messages != want.Messages {
			t.Errorf("%+v, want %+v", q, want)
		}
	}
	if after := listing(t, dir); after != before {
		t.Errorf("the folder was\n%s\nis\n%s", before, after)
	}
	if code, out, _ := runCheckCommand(t, "--data", dir); code != ExitOK || !strings.Contains(out, "orders in vhost /") || !strings.Contains(out, "\nsound\n") {
		t.Errorf("%d: %s", code, out)
	}

	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	content, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	content[100] ^= 1
	if err := os.WriteFile(tables[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, said := runCheckCommand(t, "--data", dir); code != ExitFailure || !strings.Contains(out, "is damaged") || !strings.Contains(said, "not sound") {
		t.Errorf("%d: %s%s", code, out, said)
	}
	for _, args := range [][]string{{}, {"--data", filepath.Join(dir, "nothing")}} {
		if code, _, said := runCheckCommand(t, args...); code == ExitOK || said == "" {
			t.Errorf("%v: %d, %s", args, code, said)
		}
	}
}

// listing is the names, sizes and times of the files of a folder.
func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		if e.Name() == "LOCK" {
			continue // is taken
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(info.Name() + " " + info.ModTime().String() + " " + info.Mode().String() + "\n")
	}
	return b.String()
}
