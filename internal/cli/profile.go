package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"
)

// serveProfiles serves the profiles of this process in the form that `go tool pprof` reads, until the function that it
// returns is called. Profiles tell of what is in memory, so they are served to this machine only.
func serveProfiles(ctx context.Context, address string, logger *slog.Logger) (stop func() error, err error) {
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	if beyondLoopback(listener.Addr()) {
		return nil, errors.Join(usagef("--pprof %q is not an address of this machine only, such as 127.0.0.1:6060", address), listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("profiles are not served any more", "error", err)
		}
	}()
	logger.Info("serving profiles", "url", "http://"+listener.Addr().String()+"/debug/pprof/")
	return server.Close, nil
}
