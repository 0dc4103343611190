package cli

import (
	"errors"
	"net"
	"os"

	"github.com/dormousemq/dormouse/broker"
)

// embedded is a broker inside this process, with its data in a temporary folder.
type embedded struct {
	url    brokerURL
	broker *broker.Broker
	dir    string
	served chan error
}

// startEmbedded starts a durable broker on a free loopback port.
func startEmbedded() (*embedded, error) {
	dir, err := os.MkdirTemp("", "dormouse-demo-")
	if err != nil {
		return nil, err
	}
	e := &embedded{dir: dir, served: make(chan error, 1)}
	if e.broker, err = broker.New(broker.Options{Dir: dir}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, e.broker.Close(), os.RemoveAll(dir))
	}
	e.url = brokerURL("amqp://guest:guest@" + listener.Addr().String() + "/")
	go func() { e.served <- e.broker.Serve(listener) }()
	return e, nil
}

// stop ends the broker and deletes its data.
func (e *embedded) stop() error {
	err := e.broker.Close()
	if served := <-e.served; !errors.Is(served, broker.ErrClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}
