package githubtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

type app struct {
	id     int64
	key    *rsa.PublicKey
	login  string
	life   time.Duration
	minted int
}

// AddApp registers a GitHub App with one installation, whose tokens live as long as
// given, and returns its private key.
func (s *Server) AddApp(appID, installationID int64, login string, life time.Duration) string {
	s.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps[installationID] = &app{id: appID, key: &key.PublicKey, login: login, life: life}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// Minted is how many tokens an installation was given.
func (s *Server) Minted(installationID int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apps[installationID].minted
}

// accessToken gives an installation a token for a signed claim of its app.
func (s *Server) accessToken(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	a := s.apps[id]
	if a == nil {
		fail(w, http.StatusNotFound, "Integration not found")
		return
	}
	if err := a.verify(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); err != nil {
		fail(w, http.StatusUnauthorized, "A JSON web token could not be decoded: "+err.Error())
		return
	}
	a.minted++
	secret := fmt.Sprintf("ghs_installation%d_%d", id, a.minted)
	expires := time.Now().Add(a.life)
	s.tokens[secret] = &Token{Login: a.login, Permissions: map[string]string{"*": "write"}, expires: expires}
	out := s.spec.example("installation-token")
	out["token"], out["expires_at"] = secret, expires.UTC().Format(time.RFC3339)
	delete(out, "repositories")
	reply(w, http.StatusCreated, out)
}

// verify wants a claim that the app signed, for ten minutes at most.
func (a *app) verify(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("not a web token")
	}
	var claims struct {
		IAT, EXP int64
		ISS      any
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return err
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(a.key, crypto.SHA256, sum[:], signature); err != nil {
		return err
	}
	now := time.Now().Unix()
	if fmt.Sprint(claims.ISS) != strconv.FormatInt(a.id, 10) || claims.EXP < now || claims.IAT > now+60 || claims.EXP-claims.IAT > 660 {
		return fmt.Errorf("claims %+v", claims)
	}
	return nil
}

// graphQL answers the two mutations that REST has no words for.
func (s *Server) graphQL(w http.ResponseWriter, r *http.Request) {
	t := s.who(w, r)
	if t == nil || !t.may(w, "pull_requests", "write") {
		return
	}
	var in struct {
		Query     string
		Variables struct{ ID string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		fail(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	draft := strings.Contains(in.Query, "{ convertPullRequestToDraft(input: {pullRequestId: $id})")
	if !draft && !strings.Contains(in.Query, "{ markPullRequestReadyForReview(input: {pullRequestId: $id})") {
		s.t.Errorf("GitHub would not understand the query %q", in.Query)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, repo := range s.repos {
		for _, p := range repo.pulls {
			if in.Variables.ID == fmt.Sprintf("PR_%d", p.number) {
				p.draft = draft
				reply(w, http.StatusOK, map[string]any{"data": map[string]any{"x": map[string]any{"pullRequest": map[string]any{"isDraft": draft}}}})
				return
			}
		}
	}
	reply(w, http.StatusOK, map[string]any{"data": nil, "errors": []any{map[string]any{"message": "Could not resolve to a node with the global id of '" + in.Variables.ID + "'"}}})
}

// smartHTTP serves git itself. GitHub wants Basic there, with the token as password.
func (s *Server) smartHTTP(w http.ResponseWriter, r *http.Request) {
	_, secret, _ := r.BasicAuth()
	s.mu.Lock()
	t := s.tokens[secret]
	s.mu.Unlock()
	if t == nil {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "invalid credentials", http.StatusUnauthorized)
		return
	}
	backend, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// cgi refuses a body of unknown length, which git sends for a large pack.
	spool, err := os.CreateTemp(s.dir, "push-")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	if r.ContentLength, err = io.Copy(spool, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.Body, r.TransferEncoding = spool, nil
	(&cgi.Handler{
		Path: strings.TrimSpace(string(backend)) + "/git-http-backend",
		Env:  []string{"GIT_PROJECT_ROOT=" + s.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + t.Login, "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol")},
	}).ServeHTTP(w, r)
}
