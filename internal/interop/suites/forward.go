package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// forward passes connections to the address from on to the address to. Closing what it returns ends that for new
// connections, the end of the context for all.
func forward(ctx context.Context, from, to string) (io.Closer, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", from)
	if err != nil {
		return nil, fmt.Errorf("suites expect the broker there: %w", err)
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					continue
				}
				return
			}
			go pass(ctx, client, to)
		}
	}()
	return listener, nil
}

func pass(ctx context.Context, client net.Conn, to string) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { pipe(client, server) })
	both.Go(func() { pipe(server, client) })
	both.Wait()
}

// pipe copies one direction and then tells the receiver that there is no more.
func pipe(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
