package e2bserver

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// bodyPatience is how long an answer waits for the rest of its request.
const bodyPatience = 2 * time.Second

// watchedBody is the body of a request on its way into a sandbox, and says when
// it has been read to its end.
//
// An answer may begin before that: a command prints while the last bytes of the
// request that started it are still under way. The HTTP/1 server would then throw
// those bytes away under the hands of whoever passes them on, and cut the
// command's stream. So the answer waits for them. Streaming both ways for good
// (full duplex) is left to HTTP/2, which does so safely.
type watchedBody struct {
	io.ReadCloser
	ended chan struct{}

	mu  sync.Mutex
	err error // that ended it; the server may close the body from then on
}

// watchBody prepares a request whose body is to be waited for.
func watchBody(r *http.Request) *watchedBody {
	if r.Body == nil || r.Body == http.NoBody || r.ProtoMajor != 1 {
		return nil
	}
	b := &watchedBody{ReadCloser: r.Body, ended: make(chan struct{})}
	r.Body = b
	return b
}

// Read implements [io.Reader]. Once ended it stays so, whatever the server does
// with the body meanwhile: a transport looks twice for the end.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.err = err
		close(b.ended)
	}
	return n, err
}

// wait returns when the body has ended, or when it is time to answer anyway: to
// a client that goes on sending what nobody wants.
func (b *watchedBody) wait(ctx context.Context) {
	if b == nil {
		return
	}
	timer := time.NewTimer(bodyPatience)
	defer timer.Stop()
	select {
	case <-b.ended:
	case <-ctx.Done():
	case <-timer.C:
	}
}
