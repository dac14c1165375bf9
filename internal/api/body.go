package api

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// bodyTimeout is how long a request's JSON may take to arrive; a file may take
// as long as it moves at all.
const bodyTimeout = 30 * time.Second

// patient bounds the wait for a request's body, and only that. The router's own
// bound is switched off: it stays on the connection after the body was read and
// would end every verb that takes longer.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && (r.Body == nil || r.Body == http.NoBody) && timeLimit(r.URL.Path) > 0 {
			// A verb whose options all have defaults needs no body, and one without
			// it lacks the same fields as an empty one.
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
			r.Header.Set("Content-Type", "application/json")
		}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &patientBody{ReadCloser: r.Body, ctrl: http.NewResponseController(w), rolling: isFile(r.URL.Path)}
		}
		next.ServeHTTP(w, r)
	})
}

// isFile says whether the body of a request to this path is a file.
func isFile(path string) bool {
	return strings.HasSuffix(path, "/files/content") || strings.HasPrefix(path, "/api/v1/templates/")
}

// patientBody sets the deadline while it is read and clears it at the end.
type patientBody struct {
	io.ReadCloser
	ctrl    *http.ResponseController
	rolling bool
	begun   bool
}

func (b *patientBody) Read(p []byte) (int, error) {
	if !b.begun || b.rolling {
		b.begun = true
		_ = b.ctrl.SetReadDeadline(time.Now().Add(bodyTimeout)) // a writer without deadlines has no slow network either
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.ctrl.SetReadDeadline(time.Time{})
	}
	return n, err
}
