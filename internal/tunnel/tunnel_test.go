package tunnel_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad/internal/tunnel"
)

// pair returns the host's and the sandbox's end of a tunnel over a real unix socket.
func pair(t *testing.T, host, box func(tunnel.Header, net.Conn)) (*tunnel.Session, *tunnel.Session) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "t.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	h, b := tunnel.Server(accepted, host), tunnel.Client(dialled, box)
	t.Cleanup(func() { h.Close(); b.Close() })
	return h, b
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func echo(h tunnel.Header, c net.Conn) {
	defer c.Close()
	if h.Replied() {
		tunnel.Accept(c)
	}
	io.Copy(c, c)
}

func TestOpen_BothDirectionsHalfCloseKeepsTheOtherHalf(t *testing.T) {
	t.Parallel()
	host, box := pair(t, echo, echo)
	for name, s := range map[string]*tunnel.Session{"host": host, "sandbox": box} {
		for _, h := range []tunnel.Header{{Kind: tunnel.KindEnvd}, {Kind: tunnel.KindPort, Port: 3000}, {Kind: tunnel.KindEgress, Host: "a.b", Port: 443}} {
			c, err := s.Open(within(t, 10*time.Second), h)
			if err != nil {
				t.Fatalf("%s %s: %v", name, h.Kind, err)
			}
			io.WriteString(c, "hello")
			c.(interface{ CloseWrite() error }).CloseWrite()
			got, err := io.ReadAll(c)
			if err != nil || string(got) != "hello" {
				t.Fatalf("%s %s: got %q, %v", name, h.Kind, got, err)
			}
			c.Close()
		}
	}
}

func TestOpen_LargeTransferArrivesWhole(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	sum := make(chan []byte, 1)
	host, _ := pair(t, nil, func(_ tunnel.Header, c net.Conn) {
		defer c.Close()
		hash := sha256.New()
		io.Copy(hash, c)
		sum <- hash.Sum(nil)
	})
	c, err := host.Open(within(t, 10*time.Second), tunnel.Header{Kind: tunnel.KindEnvd})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	block := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	want := sha256.New()
	began := time.Now()
	for range size / len(block) {
		want.Write(block)
		if _, err := c.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	c.(interface{ CloseWrite() error }).CloseWrite()
	if !bytes.Equal(<-sum, want.Sum(nil)) {
		t.Fatal("the bytes differ")
	}
	t.Logf("%d MB/s", int(float64(size>>20)/time.Since(began).Seconds()))
}

func TestOpen_RefusalNamesTheReason(t *testing.T) {
	t.Parallel()
	_, box := pair(t, func(h tunnel.Header, c net.Conn) {
		if h.Port == 1 {
			tunnel.Refuse(c, "connection refused "+strings.Repeat("\x01", 9000))
			return
		}
		tunnel.Deny(c, "rule denyOut 0.0.0.0/0 forbids "+h.Host)
	}, nil)
	_, err := box.Open(within(t, 10*time.Second), tunnel.Header{Kind: tunnel.KindEgress, Host: "example.com", Port: 443})
	var no *tunnel.Refusal
	if !errors.As(err, &no) || !no.Denied || !strings.Contains(no.Reason, "denyOut") {
		t.Fatalf("denied: %v", err)
	}
	_, err = box.Open(within(t, 10*time.Second), tunnel.Header{Kind: tunnel.KindEgress, Host: "example.com", Port: 1})
	if !errors.As(err, &no) || no.Denied || !strings.Contains(no.Reason, "connection refused") {
		t.Fatalf("refused: %v", err)
	}
}

func TestOpen_CancelEndsTheWaitForAReply(t *testing.T) {
	t.Parallel()
	got := make(chan error, 1)
	host, _ := pair(t, nil, func(_ tunnel.Header, c net.Conn) {
		defer c.Close()
		_, err := io.ReadAll(c) // never replies; returns when the opener gives up
		got <- err
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := host.Open(ctx, tunnel.Header{Kind: tunnel.KindPort, Port: 80}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	<-got
}

func TestClose_StopsAWriterOnTheOtherSide(t *testing.T) {
	t.Parallel()
	stopped := make(chan error, 1)
	host, _ := pair(t, nil, func(_ tunnel.Header, c net.Conn) {
		defer c.Close()
		block := make([]byte, 32<<10)
		for {
			if _, err := c.Write(block); err != nil {
				stopped <- err
				return
			}
		}
	})
	c, err := host.Open(within(t, 10*time.Second), tunnel.Header{Kind: tunnel.KindEnvd})
	if err != nil {
		t.Fatal(err)
	}
	io.ReadFull(c, make([]byte, 1<<20))
	c.Close()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("the writer still writes into a closed stream")
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("read after close: %v", err)
	}
}

func TestSession_DeathIsNotACleanEnd(t *testing.T) {
	t.Parallel()
	host, box := pair(t, nil, func(_ tunnel.Header, c net.Conn) { io.WriteString(c, "part") })
	c, err := host.Open(within(t, 10*time.Second), tunnel.Header{Kind: tunnel.KindEnvd})
	if err != nil {
		t.Fatal(err)
	}
	io.ReadFull(c, make([]byte, 4))
	box.Close()
	if _, err := io.ReadAll(c); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
	<-host.Done()
	if _, err := host.Open(within(t, time.Second), tunnel.Header{Kind: tunnel.KindEnvd}); !errors.Is(err, tunnel.ErrClosed) {
		t.Fatalf("open after the end: %v", err)
	}
}

func TestServer_TooManyStreamsAreRefused(t *testing.T) {
	t.Parallel()
	_, box := pair(t, func(_ tunnel.Header, c net.Conn) { tunnel.Accept(c) }, nil) // holds each for ever
	ctx := within(t, 30*time.Second)
	for n := range 600 {
		_, err := box.Open(ctx, tunnel.Header{Kind: tunnel.KindEgress, Host: "a", Port: 1})
		if err != nil {
			if n < 500 || !strings.Contains(err.Error(), "too many connections") {
				t.Fatalf("stream %d: %v", n, err)
			}
			return
		}
	}
	t.Fatal("600 streams were accepted")
}

func TestLink_RedialsAfterTheHostClosed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.sock")
	link := tunnel.NewLink(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}, echo)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { link.Run(ctx); close(ended) }()
	for range 3 { // a listener that comes and goes, as around a checkpoint
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s := tunnel.Server(conn, echo)
		c, err := link.Open(within(t, 10*time.Second), tunnel.Header{Kind: tunnel.KindInternal})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "x")
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		l.Close()
		s.Close()
	}
	cancel()
	<-ended
	if _, err := link.Open(ctx, tunnel.Header{Kind: tunnel.KindInternal}); err == nil {
		t.Fatal("open on a link that has ended")
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add([]byte(`{"kind":"port","port":3000}`))
	f.Add([]byte(`{"kind":"egress","host":"example.com","port":443}`))
	f.Add([]byte(`{"kind":"egress","host":"a\nb","port":70000}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, err := tunnel.ParseHeader(line)
		if err != nil {
			return
		}
		if h.Kind == "" || h.Port < 0 || h.Port > 65535 || strings.ContainsAny(h.Host, " \n/@") || len(h.Host) > 255 {
			t.Fatalf("accepted %+v", h)
		}
	})
}

func TestHangUp_WaitsForTheOtherSideToClose(t *testing.T) {
	t.Parallel()
	host, box := unixPair(t)
	inside := tunnel.Client(box, nil)
	outside := tunnel.Server(host, nil)
	if !outside.HangUp(time.Minute) {
		t.Error("it was not seen to close")
	}
	select {
	case <-inside.Done(): // closed before HangUp returned, or it would have taken a minute
	case <-time.After(10 * time.Second):
		t.Error("the sandbox's side still stands")
	}
	<-outside.Done()
}

func unixPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}
