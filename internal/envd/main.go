package envd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"agentsquad/internal/tunnel"
)

const (
	listenAddress   = "127.0.0.1:49983"
	proxyAddress    = "127.0.0.1:3128"
	internalAddress = "127.0.0.2:80"
)

// Main runs the daemon until it is told to stop, and returns its exit code.
// Normally it is process 1 of a sandbox and never returns. Standard input is a
// datagram socket through which the host hands tunnels in.
func Main(args []string) int {
	flags := flag.NewFlagSet("envd", flag.ContinueOnError)
	user := flags.String("user", "", "default user of commands and files")
	workdir := flags.String("workdir", "", "default working directory (the user's home if empty)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	syscall.Umask(0o022)
	debug.SetGCPercent(50) // a hundred idle ones count more than throughput
	first := os.Getpid() == 1
	if first {
		if err := raiseLoopback(); err != nil {
			log.Warn("cannot bring up loopback", "error", err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	door, err := openDoor(os.Stdin)
	if err != nil {
		log.Error("cannot start", "error", err)
		return 1
	}
	d := newDaemon(Config{DefaultUser: *user, DefaultWorkdir: *workdir, Reap: first, Env: proxyEnv(), Log: log}, door)
	if err := d.run(ctx); err != nil {
		log.Error("cannot serve", "error", err)
		return 1
	}
	return 0
}

// daemon is a server with its tunnel and its listeners on loopback.
type daemon struct {
	server *Server
	link   *tunnel.Link
	http   *http.Server
	inbox  *inbox // streams of the data plane
	code   *inbox // streams of the code interpreter
	way    *wayOut
	log    *slog.Logger
}

func newDaemon(c Config, way *door) *daemon {
	d := &daemon{server: NewServer(c), inbox: newInbox(), code: newInbox(), log: c.Log}
	d.link = tunnel.NewLink(way.next, d.accept)
	d.way = newWayOut(d.link, c.Log)
	d.http = &http.Server{
		Handler:     d.server,
		IdleTimeout: 640 * time.Second,
		ErrorLog:    slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if s, ok := c.(*stream); ok && s.control {
				return trusted(ctx)
			}
			return ctx
		},
	}
	return d
}

// run serves until ctx ends. It listens before it takes a tunnel up, so that a
// host that sees the tunnel finds everything in place. A loopback port that cannot be had
// is logged and done without.
func (d *daemon) run(ctx context.Context) error {
	go serveUntilClosed(d.http.Serve, d.inbox, d.log)
	interpreter := &http.Server{Handler: http.HandlerFunc(d.server.serveCode), ErrorLog: d.http.ErrorLog, IdleTimeout: d.http.IdleTimeout}
	go serveUntilClosed(interpreter.Serve, d.code, d.log)
	defer interpreter.Close()
	var config net.ListenConfig
	for address, serve := range map[string]func(net.Listener) error{
		listenAddress:   d.http.Serve,
		proxyAddress:    d.way.serveProxy,
		internalAddress: d.way.serveInternal,
	} {
		l, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			d.log.Warn("cannot listen", "address", address, "error", err)
			continue
		}
		defer l.Close()
		go serveUntilClosed(serve, l, d.log)
	}
	go d.link.Run(ctx)
	<-ctx.Done()
	d.server.Close()
	return d.http.Close()
}

// serveUntilClosed serves l and tells the log if that ends by itself.
func serveUntilClosed(serve func(net.Listener) error, l net.Listener, log *slog.Logger) {
	if err := serve(l); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
		log.Error("stopped serving", "address", l.Addr().String(), "error", err)
	}
}

// accept takes a stream that the host opened.
func (d *daemon) accept(h tunnel.Header, c net.Conn) {
	switch h.Kind {
	case tunnel.KindEnvd, tunnel.KindControl:
		d.inbox.put(&stream{Conn: c, control: h.Kind == tunnel.KindControl})
	case tunnel.KindPort:
		d.servePort(h.Port, c)
	default:
		d.log.Warn("host opened a stream of unknown kind", "kind", h.Kind)
		c.Close()
	}
}

// servePort joins a stream with a server of the sandbox. Where no code
// interpreter listens on its port, ours answers.
func (d *daemon) servePort(port int, c net.Conn) {
	target, err := dialLoopback(port)
	if err != nil && port == CodePort {
		if tunnel.Accept(c) == nil {
			d.code.put(c)
		}
		return
	}
	if err != nil {
		_ = tunnel.Refuse(c, err.Error())
		return
	}
	if err := tunnel.Accept(c); err != nil {
		target.Close()
		c.Close()
		return
	}
	tunnel.Join(c, target)
}

func dialLoopback(port int) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	target, err := dialer.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		return target, nil
	}
	if six, err := dialer.Dial("tcp", fmt.Sprintf("[::1]:%d", port)); err == nil {
		return six, nil
	}
	return nil, fmt.Errorf("port %d is not open: %w", port, err)
}
