// Package githubtest is a small GitHub for tests: a server that keeps state, serves
// real git over HTTP and checks every request and every answer against GitHub's own
// OpenAPI description. Answers are GitHub's examples with what matters changed, so
// that a client meets all the fields there are. It is strict where GitHub is:
// unknown tokens, missing permissions, a second pull request for a branch, unknown
// branches, verdicts on one's own work.
//
// The description is fetched by scripts/counterparts; without it tests are skipped.
// The GraphQL calls it answers are not in the description and checked by hand.
package githubtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running GitHub Enterprise, so to speak.
type Server struct {
	URL string // its API is at URL/api/v3

	t    testing.TB
	spec *spec
	dir  string // of bare repositories

	mu     sync.Mutex
	tokens map[string]*Token
	repos  map[string]*repository
	apps   map[int64]*app
	limits int // calls left
	calls  []string
	wall   func(r *http.Request) *Refusal
	nextID int64
}

// Token is a way in.
type Token struct {
	Login string
	// Scopes of a classic token; "" is a fine-grained one with Permissions, where
	// "*" stands for all that are not named.
	Scopes      string
	Permissions map[string]string // contents, pull_requests, statuses, checks, issues → read, write or ""
	expires     time.Time
}

// Refusal is an answer that a test puts in the place of the right one.
type Refusal struct {
	Status int
	Header map[string]string
	Text   string
}

// Start runs a server for the test.
func Start(t testing.TB) *Server {
	t.Helper()
	description, err := loaded()
	if errors.Is(err, errNoSpec) {
		t.Skip("SKIPPED, not tested against GitHub's description: " + remedy)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		t: t, spec: description, dir: t.TempDir(), tokens: map[string]*Token{}, repos: map[string]*repository{}, apps: map[int64]*app{}, limits: 5000, nextID: 1000,
	}
	mux := http.NewServeMux()
	s.routes(mux)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, prefix+"/") {
			s.checked(mux, w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s.URL = web.URL
	return s
}

// AddToken lets somebody in.
func (s *Server) AddToken(secret string, t Token) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[secret] = &t
	return secret
}

// Wall puts refusals in the place of answers; nil lets a request through.
func (s *Server) Wall(wall func(r *http.Request) *Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall = wall
}

// Calls are the requests that counted, as "METHOD /path status", since the last look.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// Remaining is what is left of the rate limit.
func (s *Server) Remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits
}

// SetRemaining changes what is left of the rate limit.
func (s *Server) SetRemaining(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = n
}

func (s *Server) id() int64 {
	s.nextID++
	return s.nextID
}

// checked answers a call of the API and holds both sides to the description.
func (s *Server) checked(mux http.Handler, w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	call := r.Method + " " + r.URL.Path
	in, err := s.spec.checkRequest(r, body)
	if err != nil {
		s.t.Errorf("GitHub would not understand %s %s: %v", call, body, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	if refusal := s.refusal(r); refusal != nil {
		for k, v := range refusal.Header {
			answer.Header().Set(k, v)
		}
		fail(answer, refusal.Status, refusal.Text)
	} else {
		mux.ServeHTTP(answer, r)
	}
	s.account(answer, r)
	if err := s.spec.checkAnswer(in, answer.Code, answer.Header(), answer.Body.Bytes()); err != nil {
		s.t.Errorf("GitHub would not answer %s like this: %v", call, err)
	}
	s.mu.Lock()
	s.calls = append(s.calls, fmt.Sprintf("%s %d", call, answer.Code))
	s.mu.Unlock()
	for k, v := range answer.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (s *Server) refusal(r *http.Request) *Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wall != nil {
		return s.wall(r)
	}
	return nil
}

// account does what GitHub does around an answer: the tag for conditional requests,
// and the rate limit, which an answer of 304 does not touch.
func (s *Server) account(answer *httptest.ResponseRecorder, r *http.Request) {
	h := answer.Header()
	if r.Method == http.MethodGet && answer.Code == http.StatusOK {
		sum := sha256.Sum256(answer.Body.Bytes())
		tag := `W/"` + hex.EncodeToString(sum[:]) + `"`
		h.Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			answer.Code = http.StatusNotModified
			answer.Body.Reset()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer.Code != http.StatusNotModified && s.limits > 0 {
		s.limits--
	}
	for k, v := range map[string]int64{"Limit": 5000, "Remaining": int64(s.limits), "Reset": time.Now().Add(time.Hour).Unix()} {
		if h.Get("X-RateLimit-"+k) == "" {
			h.Set("X-RateLimit-"+k, strconv.FormatInt(v, 10))
		}
	}
}

// who finds the caller, or answers 401.
func (s *Server) who(w http.ResponseWriter, r *http.Request) *Token {
	secret := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[secret]
	if t == nil || !t.expires.IsZero() && time.Now().After(t.expires) {
		fail(w, http.StatusUnauthorized, "Bad credentials")
		return nil
	}
	if t.Scopes != "" {
		w.Header().Set("X-OAuth-Scopes", t.Scopes)
	}
	return t
}

// may says whether a token has a permission, else answers as GitHub does.
func (t *Token) may(w http.ResponseWriter, what, level string) bool {
	have, named := t.Permissions[what]
	if !named {
		have = t.Permissions["*"]
	}
	if t.Scopes != "" && strings.Contains(t.Scopes, "repo") || have == "write" || have == level {
		return true
	}
	w.Header().Set("X-Accepted-GitHub-Permissions", what+"="+level)
	fail(w, http.StatusForbidden, "Resource not accessible by personal access token")
	return false
}

func fail(w http.ResponseWriter, status int, text string, details ...string) {
	body := map[string]any{"message": text, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)}
	if status == http.StatusUnprocessableEntity {
		list := []map[string]any{}
		for _, d := range details {
			list = append(list, map[string]any{"resource": "PullRequest", "code": "custom", "message": d})
		}
		body["errors"] = list
	}
	reply(w, status, body)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

// page answers one page of a list, with the links to the others.
func page(w http.ResponseWriter, r *http.Request, list []any, wrap func(some []any) any) {
	size, n := 30, 1
	if v, err := strconv.Atoi(r.URL.Query().Get("per_page")); err == nil {
		size = min(v, 10) // GitHub's own limit is 100: a client must not count on it
	}
	if v, err := strconv.Atoi(r.URL.Query().Get("page")); err == nil {
		n = v
	}
	from, to := min((n-1)*size, len(list)), min(n*size, len(list))
	if to < len(list) {
		u := *r.URL
		u.Scheme, u.Host = "http", r.Host
		q := u.Query()
		q.Set("page", strconv.Itoa(n+1))
		u.RawQuery = q.Encode()
		w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, u.String()))
	}
	some := append([]any{}, list[from:to]...)
	if wrap != nil {
		reply(w, http.StatusOK, wrap(some))
		return
	}
	reply(w, http.StatusOK, some)
}
