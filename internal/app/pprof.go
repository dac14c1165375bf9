package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// startPprof serves profiles on a loopback address of its own, where asked to.
// The configuration refuses any other address.
func (a *App) startPprof(ctx context.Context) error {
	if a.cfg.Pprof == "" {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", a.cfg.Pprof)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.log.Warn("profiles are no longer served", "error", err)
		}
	}()
	a.onStop("pprof", server.Close)
	return nil
}
