package envd

import (
	"bufio"
	"context"
	"net/http"
	"sync/atomic"
)

// batchBytes is how much of a stream is gathered before it is sent although
// more is known to come.
const batchBytes = 128 << 10

// batch is a response whose flushes can be held back: each costs several writes
// to the tunnel, and a busy command has the next event ready before one is sent.
type batch struct {
	http.ResponseWriter
	buffer *bufio.Writer
	held   atomic.Bool
}

type batchKey struct{}

// batched lets handlers hold flushes back; see [hold].
func batched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := &batch{ResponseWriter: w, buffer: bufio.NewWriterSize(w, batchBytes)}
		next.ServeHTTP(b, r.WithContext(context.WithValue(r.Context(), batchKey{}, b)))
		b.buffer.Flush()
	})
}

// hold says whether more will be sent at once, so that a flush can wait.
func hold(ctx context.Context, more bool) {
	if b, ok := ctx.Value(batchKey{}).(*batch); ok {
		b.held.Store(more)
	}
}

// Write gathers.
func (b *batch) Write(p []byte) (int, error) { return b.buffer.Write(p) }

// FlushError sends what was gathered, unless more is about to come.
func (b *batch) FlushError() error {
	if b.held.Load() {
		return nil
	}
	if err := b.buffer.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Flush is FlushError for those who know no better.
func (b *batch) Flush() { _ = b.FlushError() }

// Unwrap gives access to the other abilities of the response.
func (b *batch) Unwrap() http.ResponseWriter { return b.ResponseWriter }
