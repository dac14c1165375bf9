package gateway

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// Transport lets the server's own code ask the gateway as a sandbox does, without a
// socket: the built-in agent loop, whose model calls are metered and bounded like
// those of any agent, and pushes that the server carries, whose row is the server's.
// The host in the address does not matter.
func (g *Gateway) Transport(sandboxID string) http.RoundTripper {
	return inProcess{handler: g.For(sandboxID)}
}

type serverKey struct{}

// fromServer says whether a request came through [Gateway.Transport].
func fromServer(ctx context.Context) bool { return ctx.Value(serverKey{}) != nil }

// inProcess is a round trip to a handler of this process, with a streaming answer.
type inProcess struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper]. The handler's goroutine ends with the
// answer, or when the answer's body is closed.
func (t inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithValue(req.Context(), serverKey{}, true))
	in := req.Clone(ctx)
	in.RequestURI = req.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	pr, pw := io.Pipe()
	w := &pipedAnswer{header: http.Header{}, pipe: pw, begun: make(chan struct{})}
	go func() {
		defer cancel()
		defer in.Body.Close()
		t.handler.ServeHTTP(w, in)
		w.WriteHeader(http.StatusOK)
		pw.Close()
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		pr.CloseWithError(context.Cause(ctx))
		return nil, context.Cause(ctx)
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &closer{PipeReader: pr, cancel: cancel}, ContentLength: -1, Request: req,
	}, nil
}

// pipedAnswer is the handler's side of the round trip.
type pipedAnswer struct {
	header http.Header
	pipe   *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closed once status and sent are set
	status int
	sent   http.Header
}

func (w *pipedAnswer) Header() http.Header { return w.header }

func (w *pipedAnswer) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *pipedAnswer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(b)
}

// Flush implements [http.Flusher]; the pipe holds nothing back.
func (w *pipedAnswer) Flush() { w.WriteHeader(http.StatusOK) }

type closer struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (c *closer) Close() error {
	c.cancel()
	return c.PipeReader.Close()
}
