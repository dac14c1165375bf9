package envd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsquad/internal/envd"
	"agentsquad/internal/envdpb/filesystem/filesystemconnect"
	"agentsquad/internal/envdpb/process/processconnect"
	"agentsquad/internal/tunnel"
)

const daemonMode = "ENVD_TEST_DAEMON"

// TestMain turns the test binary into the daemon when a test starts it as process 1.
func TestMain(m *testing.M) {
	if os.Getenv(daemonMode) == "" {
		os.Exit(m.Run())
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		fmt.Fprintln(os.Stderr, "mount proc:", err)
		os.Exit(1)
	}
	os.Exit(envd.Main([]string{"--user", "root"}))
}

// host is the host's side of a daemon that runs as process 1 in namespaces of its own.
type host struct {
	t      *testing.T
	door   int // hands tunnels in
	accept func(tunnel.Header, net.Conn)

	mu      sync.Mutex
	session *tunnel.Session
}

func newHost(t *testing.T, accept func(tunnel.Header, net.Conn)) *host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs namespaces of its own: run the tests as root")
	}
	door, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdin := os.NewFile(uintptr(door[1]), "door")
	defer stdin.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonMode+"=yes")
	cmd.Stdin, cmd.Stderr = stdin, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("cannot make namespaces (%v): run where unshare(2) is allowed", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		syscall.Close(door[0])
	})
	h := &host{t: t, door: door[0], accept: accept}
	h.next()
	return h
}

// next hands a tunnel in and waits for the daemon's answer.
func (h *host) next() {
	h.t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	err = syscall.Sendmsg(h.door, []byte{1}, syscall.UnixRights(pair[1]), nil, 0)
	syscall.Close(pair[1])
	if err != nil {
		h.t.Fatal(err)
	}
	ours := os.NewFile(uintptr(pair[0]), "tunnel")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		h.t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		h.t.Fatal(err)
	}
	conn.SetReadDeadline(time.Time{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = tunnel.Server(conn, h.accept)
	h.t.Cleanup(func() { h.session.Close() })
}

func (h *host) open(ctx context.Context, header tunnel.Header) (net.Conn, error) {
	h.mu.Lock()
	s := h.session
	h.mu.Unlock()
	return s.Open(ctx, header)
}

// box returns clients that speak over streams of the given kind.
func (h *host) box(kind string) *box {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return h.open(ctx, tunnel.Header{Kind: kind})
	}, DisableCompression: true}}
	h.t.Cleanup(client.CloseIdleConnections)
	return &box{
		t: h.t, url: "http://sandbox",
		procs: processconnect.NewProcessClient(client, "http://sandbox"),
		files: filesystemconnect.NewFilesystemClient(client, "http://sandbox"),
	}
}

func (h *host) get(kind, path string, header ...string) int {
	h.t.Helper()
	c, err := h.open(h.t.Context(), tunnel.Header{Kind: kind})
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	return request(h.t, c, path, header...)
}

func request(t *testing.T, c net.Conn, path string, header ...string) int {
	t.Helper()
	req, _ := http.NewRequest("GET", "http://sandbox"+path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Close = true
	if err := req.Write(c); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func TestDaemon_OnlyTheHostItselfNeedsNoToken(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	c, err := h.open(t.Context(), tunnel.Header{Kind: tunnel.KindControl})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"first", "second"} { // the second as after a fork
		body := `{"accessToken":"` + token + `","sandboxID":"i42"}`
		fmt.Fprintf(c, "POST /init HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 204 {
			t.Fatalf("%v %v", res, err)
		}
	}
	for token, want := range map[string]int{"": 401, "first": 401, "second": 200} {
		if got := h.get(tunnel.KindEnvd, "/envs", "X-Access-Token", token); got != want {
			t.Fatalf("token %q: %d, want %d", token, got, want)
		}
	}
	if got := h.get(tunnel.KindControl, "/envs"); got != 200 {
		t.Fatalf("control: %d", got)
	}
}

func TestDaemon_ReapsOrphansAndReportsItsOwn(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	b := h.box(tunnel.KindEnvd)
	for range 20 {
		r := b.run(bounded(t), shell("(setsid sh -c 'exit 9' &); (sh -c 'exit 8' & ) ; exit 7"))
		if r.err != nil || r.end.GetExitCode() != 7 {
			t.Fatalf("%+v", r)
		}
	}
	// The orphans end on their own time: look until none is left as a zombie.
	script := "for i in 1 2 3 4 5 6 7 8 9 10; do n=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '); [ $n = 0 ] && break; sleep 0.2; done; echo $n"
	if r := b.run(bounded(t), shell(script)); r.stdout != "0\n" {
		t.Fatalf("zombies: %+v", r)
	}
	r := b.run(bounded(t), shell("echo $$ $PPID $E2B_SANDBOX $http_proxy; cat /run/e2b/.E2B_SANDBOX 2>/dev/null"))
	if !strings.Contains(r.stdout, " 1 true http://127.0.0.1:3128\n") {
		t.Fatalf("%+v", r)
	}
}

func TestDaemon_PortsInsideAreReachable(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	c, err := h.open(t.Context(), tunnel.Header{Kind: tunnel.KindPort, Port: 49983})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := request(t, c, "/health"); got != 204 {
		t.Fatalf("got %d", got)
	}
	_, err = h.open(t.Context(), tunnel.Header{Kind: tunnel.KindPort, Port: 9})
	var no *tunnel.Refusal
	if !errors.As(err, &no) || !strings.Contains(no.Reason, "port 9 is not open") {
		t.Fatalf("got %v", err)
	}
}

func TestDaemon_RedialsAndKeepsProcesses(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	b := h.box(tunnel.KindEnvd)
	pid, stream := b.begin(bounded(t), shell("sleep 300"))
	h.session.Close()
	for stream.Receive() {
	}
	if stream.Err() == nil {
		t.Fatal("the stream of a dead tunnel ended without an error")
	}
	h.next()
	h.box(tunnel.KindEnvd).kill(pid)
}

func TestDaemon_CallerThatLeavesDoesNotBlockTheCommand(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	b := h.box(tunnel.KindEnvd)
	done := filepath.Join(t.TempDir(), "done")
	_, stream := b.begin(bounded(t), shell("head -c 100000000 /dev/zero; touch "+done))
	stream.Receive()
	stream.Close()
	if r := b.run(bounded(t), shell("until [ -e "+done+" ]; do sleep 0.05; done; echo over")); r.stdout != "over\n" {
		t.Fatalf("%+v", r)
	}
}

// outside plays the host: it knows one name, refuses another, and serves squad.internal.
func outside(h tunnel.Header, c net.Conn) {
	defer c.Close()
	switch {
	case h.Kind == tunnel.KindInternal:
	case h.Host == "good.test":
		tunnel.Accept(c)
	case h.Host == "evil.test":
		tunnel.Deny(c, "rule denyOut 0.0.0.0/0")
		return
	default:
		tunnel.Refuse(c, "no such host")
		return
	}
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	text := fmt.Sprintf("%s %s %s %s via %s:%d", req.Method, req.Host, req.URL, req.Header.Get("Proxy-Connection"), h.Host, h.Port)
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

func TestDaemon_WayOut(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl: install it")
	}
	h := newHost(t, outside)
	b := h.box(tunnel.KindEnvd)
	for _, c := range []struct{ args, want string }{
		{"http://good.test/x?y=1", "GET good.test /x?y=1  via good.test:80"},
		{"http://good.test:8080/", "GET good.test:8080 /  via good.test:8080"},
		{"-p http://good.test:81/p", "GET good.test:81 /p  via good.test:81"}, // -p: by CONNECT
		{"http://evil.test/", "connection to evil.test refused by policy: rule denyOut 0.0.0.0/0"},
		{"-w '%{http_code}' http://evil.test/", "403"},
		{"-w '%{http_connect}' https://evil.test/", "403"},
		{"-w '%{http_code}' http://nowhere.test/", "cannot connect to nowhere.test: no such host\n502"},
		{"http://squad.internal/git/x", "GET squad.internal /git/x  via :0"},
		{"--noproxy '*' --resolve squad.internal:80:127.0.0.2 http://squad.internal/a", "GET squad.internal /a  via :0"},
		{"-w '%{http_code}' http://127.0.0.1:49983/health", "204"},
	} {
		r := b.run(bounded(t), shell("curl -s "+c.args))
		if !strings.Contains(r.stdout, c.want) {
			t.Errorf("%s: got %q %q, want %q", c.args, r.stdout, r.stderr, c.want)
		}
	}
}
