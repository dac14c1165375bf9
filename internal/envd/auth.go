package envd

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
)

const tokenHeader = "X-Access-Token"

type trustedKey struct{}

// trusted marks requests that come from the host itself; see tunnel.KindControl.
func trusted(ctx context.Context) context.Context { return context.WithValue(ctx, trustedKey{}, true) }

func isTrusted(ctx context.Context) bool { return ctx.Value(trustedKey{}) != nil }

// fail writes the error form of the data plane.
func fail(w http.ResponseWriter, status int, message string) {
	body, _ := json.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{status, message})
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Del("Content-Disposition")
	h.Del("Content-Encoding")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// authorize asks for the access token, if one is set, everywhere but on the
// endpoints that do it in their own way.
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := s.state.accessToken()
		if token != "" && !isTrusted(r.Context()) && !selfAuthorized(r) && !same(r.Header.Get(tokenHeader), token) {
			fail(w, http.StatusUnauthorized, "unauthorized access, please provide a valid access token or method signing if supported")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func selfAuthorized(r *http.Request) bool {
	switch r.Method + " " + r.URL.Path {
	case "GET /health", "GET /files", "HEAD /files", "POST /files", "POST /init":
		return true
	}
	return false
}

// Signature is the signature of a file URL: op is "read" or "write", expires is
// zero for a URL without end.
func Signature(path, op, username, token string, expires int64) string {
	parts := []string{path, op, username, token}
	if expires != 0 {
		parts = append(parts, strconv.FormatInt(expires, 10))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, ":")))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// checkSignature verifies the query of a /files request against a token.
func checkSignature(q url.Values, op, token string, now time.Time) error {
	given := q.Get("signature")
	if given == "" {
		return errors.New("missing signature query parameter")
	}
	var expires int64
	if text := q.Get("signature_expiration"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return errors.New("invalid signature expiration")
		}
		expires = n
	}
	if !same(given, Signature(q.Get("path"), op, q.Get("username"), token, expires)) {
		return errors.New("invalid signature")
	}
	if expires != 0 && now.Unix() > expires {
		return errors.New("signature is already expired")
	}
	return nil
}

// allowFile checks a /files request: the header token if there is one, else the signature.
func (s *Server) allowFile(r *http.Request, op string) error {
	token := s.state.accessToken()
	if token == "" || isTrusted(r.Context()) {
		return nil
	}
	if given := r.Header.Get(tokenHeader); given != "" {
		if !same(given, token) {
			return errors.New("access token present in header but does not match")
		}
		return nil
	}
	return checkSignature(r.URL.Query(), op, token, time.Now())
}

// namedUser looks up a user a caller named, or the default one.
func (s *Server) namedUser(name string) (*account, error) {
	if name == "" {
		name, _ = s.state.defaults()
	}
	return s.accounts.lookup(name)
}

// rpcUser is the user of an RPC: the name of Basic auth, or the default one.
func (s *Server) rpcUser(h http.Header) (*account, error) {
	name, _, ok := (&http.Request{Header: h}).BasicAuth()
	if !ok && h.Get("Authorization") != "" {
		return nil, connect.NewError(connect.CodeUnauthenticated, errors.New("the Authorization header is not Basic auth"))
	}
	who, err := s.namedUser(name)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnauthenticated, err)
	}
	return who, nil
}

// allowOrigins lets browsers call the data plane from anywhere: what guards it
// is the token, which no browser sends by itself.
func (s *Server) allowOrigins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", "*")
			h.Set("Access-Control-Expose-Headers", "Location, Cache-Control, X-Content-Type-Options, Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
				h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
				h.Set("Access-Control-Max-Age", "7200")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
