package conformance

import (
	"errors"
	"net"
	"testing"

	"github.com/dormousemq/dormouse/broker"
)

// The embedded broker is expected to be RabbitMQ 4.3, but for what 4.3 denies by default and programs still need.
func TestEmbedded(t *testing.T) {
	runAll(t, startEmbedded(t))
}

// startEmbedded runs a broker on a free loopback port.
func startEmbedded(t *testing.T) target {
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
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-served; !errors.Is(err, broker.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return target{
		url: "amqp://guest:guest@" + l.Addr().String() + "/", version: v43, embedded: true, manager: b.Management(),
	}
}
