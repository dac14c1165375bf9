package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"

	"agentsquad"
	"agentsquad/internal/api"
	"agentsquad/internal/config"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
	"agentsquad/internal/task"
	"agentsquad/web"
)

// App is the running house. Make it with [Start], end it with [App.Stop].
type App struct {
	cfg      *config.Config
	log      *slog.Logger
	folder   *folder
	store    *store.Store
	events   *event.Log
	life     *task.Life
	registry *prometheus.Registry
	listener net.Listener
	url      string
	admin    squad.User
	api      *api.Server
	http     *http.Server
	rooms    rooms
	tracer   trace.Tracer // nil where nothing is traced

	// closers undo what Start did, last first.
	closers []closer
	work    sync.WaitGroup
	ctx     context.Context // of the rooms; ends in Stop
	cancel  context.CancelCauseFunc
	failed  chan error

	stopOnce sync.Once
	stopErr  error
}

type closer struct {
	name string
	f    func() error
}

// Start builds and starts every room. ctx bounds the start only.
func Start(ctx context.Context, cfg *config.Config, log *slog.Logger) (*App, error) {
	a := &App{cfg: cfg, log: log, failed: make(chan error, 1), registry: prometheus.NewRegistry()}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	steps := []struct {
		name string
		f    func(context.Context) error
	}{
		{"open data folder", a.openFolder},
		{"open store", a.openStore},
		{"make administrator", a.ensureAdmin},
		{"listen", a.listen},
		{"join nodes", a.joinNodes},
		{"start tracing", a.startTracing},
		{"build rooms", a.buildRooms},
		{"serve", a.serve},
		{"start rooms", a.startRooms},
		{"announce", func(context.Context) error { return a.folder.announce(a.url) }},
		{"fill in", a.fillIn},
	}
	for _, step := range steps {
		began := time.Now()
		if err := step.f(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", step.name, err), a.Stop())
		}
		log.DebugContext(ctx, "started", "step", step.name, "duration_ms", time.Since(began).Milliseconds())
	}
	return a, nil
}

// URL is the address of the server as this machine reaches it.
func (a *App) URL() string { return a.url }

// Failed yields the error of a room that ended by itself, which a healthy one
// never does.
func (a *App) Failed() <-chan error { return a.failed }

func (a *App) onStop(name string, f func() error) { a.closers = append(a.closers, closer{name, f}) }

// run starts the endless work of a room. It ends with a.ctx.
func (a *App) run(name string, f func(context.Context) error) {
	a.work.Go(func() {
		if err := f(a.ctx); err != nil && a.ctx.Err() == nil {
			select {
			case a.failed <- fmt.Errorf("%s: %w", name, err):
			default:
			}
		}
	})
}

// Stop ends everything in reverse order, each part within its share of the
// configured time. What is under way is finished or left in a state from which
// the next start, or another node, goes on. A second call returns the same.
func (a *App) Stop() error {
	a.stopOnce.Do(func() {
		a.cancel(errors.New("the server stops"))
		a.waitForWork()
		a.leaveSandboxes()
		var errs []error
		for i := len(a.closers) - 1; i >= 0; i-- {
			if err := a.closers[i].f(); err != nil {
				errs = append(errs, fmt.Errorf("close %s: %w", a.closers[i].name, err))
			}
		}
		a.stopErr = errors.Join(errs...)
	})
	return a.stopErr
}

// waitForWork gives the rooms half of the time; the HTTP server, which they
// still need meanwhile, gets the other half.
func (a *App) waitForWork() {
	done := make(chan struct{})
	go func() {
		a.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(a.cfg.StopTimeout / 2):
		a.log.Warn("some work did not end in time; the next start takes it up")
	}
}

func (a *App) openFolder(context.Context) error {
	var err error
	if a.folder, err = openFolder(a.cfg.Data); err != nil {
		return err
	}
	a.onStop("data folder", a.folder.close)
	return nil
}

func (a *App) openStore(ctx context.Context) error {
	var err error
	if a.store, err = store.Open(ctx, store.Config{URL: a.cfg.DatabaseOrDefault(), Log: a.log}); err != nil {
		return err
	}
	a.onStop("store", a.store.Close)
	a.events = event.NewLog(a.store, a.log)
	a.events.UseArchive(event.NewArchive(a.cfg.ArchiveDir()))
	a.onStop("events", func() error {
		a.events.Close()
		return nil
	})
	a.life = task.New(a.store)
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newGauges(a.store, a.events))
	return nil
}

func (a *App) listen(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", a.cfg.Listen)
	if err != nil {
		return squad.Wrap(squad.CodeUnavailable, err, "cannot listen on %s; is another server running there?", a.cfg.Listen)
	}
	a.listener = l
	a.onStop("listener", func() error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	a.url = "http://" + reachable(l.Addr())
	return nil
}

// reachable is the address of a listener as this machine can dial it.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.String()
	}
	ip := tcp.IP
	if ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
	}
	return net.JoinHostPort(ip.String(), fmt.Sprint(tcp.Port))
}

func (a *App) serve(context.Context) error {
	var err error
	a.rooms.ports.Page = web.Handler()
	a.rooms.ports.Doctor = a
	a.api, err = api.New(api.Config{
		Store: a.store, Events: a.events, Life: a.life, Ports: a.rooms.ports, Log: a.log, Registry: a.registry, Version: Version,
		PublicURL: a.cfg.PublicURL, BehindProxy: a.cfg.BehindProxy, SessionLifetime: a.cfg.SessionLifetime, Ready: a.ready,
	})
	if err != nil {
		return err
	}
	a.http = &http.Server{
		Handler: a.traced(a.api), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	a.http.Protocols = new(http.Protocols)
	a.http.Protocols.SetHTTP1(true)
	a.http.Protocols.SetUnencryptedHTTP2(true) // envd's streams, multiplexed
	go func() {
		if err := a.http.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			a.failed <- fmt.Errorf("serve: %w", err)
		}
	}()
	a.onStop("http", a.stopHTTP)
	return nil
}

// stopHTTP ends the streams, waits for requests, and cuts what is left.
func (a *App) stopHTTP() error {
	a.api.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.StopTimeout/2)
	defer cancel()
	if err := a.http.Shutdown(ctx); err != nil {
		a.log.Warn("some requests were cut", "error", err)
		return a.http.Close()
	}
	return nil
}
