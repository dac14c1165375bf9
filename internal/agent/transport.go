package agent

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// HandlerTransport answers requests by a handler of this process: the built-in agent
// reaches models through the gateway, as every sandbox does, without a network.
type HandlerTransport struct{ Handler http.Handler }

// RoundTrip implements [http.RoundTripper]. The body streams as the handler writes.
func (h HandlerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	answer := &pipeAnswer{header: http.Header{}, body: w, ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(req.Context())
	inner := req.Clone(ctx)
	inner.RequestURI = inner.URL.RequestURI()
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	go func() {
		defer cancel()
		h.Handler.ServeHTTP(answer, inner)
		answer.WriteHeader(http.StatusOK)
		w.Close()
	}()
	select {
	case <-answer.ready:
	case <-req.Context().Done():
		r.CloseWithError(req.Context().Err()) // the handler's next write fails
		return nil, context.Cause(req.Context())
	}
	return &http.Response{
		StatusCode: answer.status, Status: http.StatusText(answer.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.sent, Body: &closing{r, cancel}, ContentLength: -1, Request: req,
	}, nil
}

// closing ends the handler's context when the reader is done.
type closing struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (c *closing) Close() error {
	c.cancel()
	return c.PipeReader.Close()
}

// pipeAnswer is a response writer whose body is a pipe.
type pipeAnswer struct {
	header http.Header
	body   *io.PipeWriter
	ready  chan struct{}
	once   sync.Once
	status int
	sent   http.Header
}

func (a *pipeAnswer) Header() http.Header { return a.header }

func (a *pipeAnswer) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.ready)
	})
}

func (a *pipeAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// Flush implements [http.Flusher]: a pipe holds nothing back.
func (a *pipeAnswer) Flush() { a.WriteHeader(http.StatusOK) }
