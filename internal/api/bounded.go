package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// How long a request may take. What speaks to a sandbox or moves files ends by bounds
// of its own, the longest of which is a command's; streams have no end.
const (
	requestTimeout = 2 * time.Minute
	workTimeout    = 25 * time.Hour
)

var errTooLong = errors.Join(errors.New("the request took too long"), context.DeadlineExceeded)

// bounded ends requests that take longer than any of their kind should.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := timeLimit(r.URL.Path)
		if limit == 0 {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeoutCause(r.Context(), limit, errTooLong)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// timeLimit is the bound of a path, 0 for none.
func timeLimit(path string) time.Duration {
	switch {
	case isStream(path), !strings.HasPrefix(path, Prefix+"/"), strings.HasPrefix(path, Prefix+"/webhooks/"):
		return 0
	case strings.HasPrefix(path, Prefix+"/sandboxes"), strings.HasPrefix(path, Prefix+"/templates"), strings.HasPrefix(path, Prefix+"/repositories"):
		return workTimeout
	}
	return requestTimeout
}
