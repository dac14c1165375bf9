package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// repository is what the server knows of one.
type repository struct {
	name      string // owner/name
	dir       string // bare
	writers   []string
	readers   []string
	archived  bool
	pulls     map[int]*pull
	issues    map[int]*issue
	statuses  map[string]map[string]map[string]any // sha → context → status
	runs      map[string][]map[string]any          // sha → check runs
	protected map[string]any                       // classic protection of main
	rules     []any                                // of main
	last      int                                  // number
}

// AddRepository makes a repository with one commit on main.
func (s *Server) AddRepository(name string, writers, readers []string) {
	s.t.Helper()
	dir := filepath.Join(s.dir, name+".git")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.git(dir, "init", "-q", "--bare", "-b", "main")
	s.git(dir, "config", "http.receivepack", "true")
	work := s.t.TempDir()
	s.git(work, "clone", "-q", dir, ".")
	if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("# hello\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.git(work, "add", ".")
	s.git(work, "commit", "-qm", "docs: begin")
	s.git(work, "push", "-q", "origin", "HEAD:main")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[name] = &repository{
		name: name, dir: dir, writers: writers, readers: readers, pulls: map[int]*pull{}, issues: map[int]*issue{},
		statuses: map[string]map[string]map[string]any{}, runs: map[string][]map[string]any{}, rules: []any{},
	}
}

// git runs git and fails the test where it fails.
func (s *Server) git(dir string, args ...string) string {
	s.t.Helper()
	out, err := tryGit(dir, args...)
	if err != nil {
		s.t.Errorf("git %v: %v: %s", args, err, out)
	}
	return out
}

func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=GitHub", "-c", "user.email=noreply@github.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// handler answers a call on a repository that the caller may see.
type handler func(w http.ResponseWriter, r *http.Request, t *Token, repo *repository)

func (s *Server) routes(mux *http.ServeMux) {
	on := func(pattern, permission, level string, h handler) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+prefix+"/repos/{owner}/{repo}"+path, func(w http.ResponseWriter, r *http.Request) {
			t := s.who(w, r)
			if t == nil {
				return
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			repo := s.repos[r.PathValue("owner")+"/"+r.PathValue("repo")]
			if repo == nil || !slices.Contains(repo.writers, t.Login) && !slices.Contains(repo.readers, t.Login) {
				fail(w, http.StatusNotFound, "Not Found")
				return
			}
			if t.may(w, permission, level) {
				h(w, r, t, repo)
			}
		})
	}
	on("GET ", "metadata", "read", s.getRepository)
	on("GET /branches", "contents", "read", s.listBranches)
	on("GET /branches/{branch}/protection", "administration", "read", s.getProtection)
	on("GET /rules/branches/{branch}", "metadata", "read", s.getRules)
	on("POST /git/refs", "contents", "write", s.createRef)
	on("DELETE /git/refs/{ref...}", "contents", "write", s.deleteRef)
	on("GET /commits/{ref}/check-runs", "checks", "read", s.listRuns)
	on("GET /commits/{ref}/status", "statuses", "read", s.getStatus)
	on("POST /statuses/{sha}", "statuses", "write", s.createStatus)
	s.pullRoutes(on)
	s.talkRoutes(on)
	mux.HandleFunc("POST "+prefix+"/app/installations/{id}/access_tokens", s.accessToken)
	mux.HandleFunc("POST /api/graphql", s.graphQL)
	mux.HandleFunc("/{owner}/{repo}/", s.smartHTTP)
}

// user is a person as GitHub writes one.
func (s *Server) user(login string) map[string]any {
	u := s.spec.example("pull-request")["user"].(map[string]any)
	u["login"], u["html_url"] = login, s.URL+"/"+login
	return u
}

func (s *Server) getRepository(w http.ResponseWriter, _ *http.Request, t *Token, repo *repository) {
	out := s.spec.example("full-repository-default-response")
	for _, other := range []string{"source", "parent", "template_repository"} { // not a fork
		delete(out, other)
	}
	_, out["name"], _ = strings.Cut(repo.name, "/")
	out["language"], out["size"] = "Go", 0 // kilobytes
	out["full_name"], out["clone_url"], out["default_branch"], out["private"], out["archived"] = repo.name, s.URL+"/"+repo.name+".git", "main", true, repo.archived
	out["permissions"] = map[string]any{"admin": false, "push": slices.Contains(repo.writers, t.Login), "pull": true}
	reply(w, http.StatusOK, out)
}

func (s *Server) listBranches(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository) {
	var list []any
	for line := range strings.Lines(s.git(repo.dir, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads")) {
		name, sha, _ := strings.Cut(strings.TrimSpace(line), " ")
		list = append(list, map[string]any{"name": name, "commit": map[string]any{"sha": sha, "url": s.URL}, "protected": false})
	}
	page(w, r, list, nil)
}

// Protect sets what main wants, as the older kind of protection or as a rule.
func (s *Server) Protect(name string, approvals int, check string, asRule bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo := s.repos[name]
	if asRule {
		repo.rules = []any{
			map[string]any{"type": "pull_request", "ruleset_source_type": "Repository", "ruleset_source": name, "ruleset_id": 1, "parameters": map[string]any{
				"dismiss_stale_reviews_on_push": false, "require_code_owner_review": false, "require_last_push_approval": false,
				"required_approving_review_count": approvals, "required_review_thread_resolution": false,
			}},
			map[string]any{"type": "required_status_checks", "ruleset_source_type": "Repository", "ruleset_source": name, "ruleset_id": 1, "parameters": map[string]any{
				"required_status_checks": []any{map[string]any{"context": check}}, "strict_required_status_checks_policy": false,
			}},
		}
		return
	}
	p := s.spec.example("branch-protection")
	reviews := p["required_pull_request_reviews"].(map[string]any)
	reviews["required_approving_review_count"] = approvals
	delete(reviews, "dismissal_restrictions")
	delete(p, "restrictions")
	checks := p["required_status_checks"].(map[string]any)
	checks["contexts"], checks["checks"] = []any{check}, []any{map[string]any{"context": check, "app_id": nil}}
	repo.protected = p
}

func (s *Server) getProtection(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository) {
	if repo.protected == nil || r.PathValue("branch") != "main" {
		fail(w, http.StatusNotFound, "Branch not protected")
		return
	}
	reply(w, http.StatusOK, repo.protected)
}

func (s *Server) getRules(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository) {
	if r.PathValue("branch") != "main" {
		reply(w, http.StatusOK, []any{})
		return
	}
	reply(w, http.StatusOK, repo.rules)
}

func (s *Server) createRef(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository) {
	var in struct{ Ref, SHA string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	if _, err := tryGit(repo.dir, "cat-file", "-e", in.SHA); err != nil {
		fail(w, http.StatusUnprocessableEntity, "Object does not exist")
		return
	}
	fail(w, http.StatusUnprocessableEntity, "Reference already exists")
}

func (s *Server) deleteRef(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository) {
	ref := "refs/" + r.PathValue("ref")
	if _, err := tryGit(repo.dir, "show-ref", "--verify", ref); err != nil {
		fail(w, http.StatusUnprocessableEntity, "Reference does not exist")
		return
	}
	s.git(repo.dir, "update-ref", "-d", ref)
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) createStatus(w http.ResponseWriter, r *http.Request, t *Token, repo *repository) {
	sha := r.PathValue("sha")
	if _, err := tryGit(repo.dir, "cat-file", "-e", sha); err != nil {
		fail(w, http.StatusUnprocessableEntity, "No commit found for SHA: "+sha)
		return
	}
	out := s.spec.example("status")
	_ = json.NewDecoder(r.Body).Decode(&out)
	out["creator"] = s.user(t.Login)
	if repo.statuses[sha] == nil {
		repo.statuses[sha] = map[string]map[string]any{}
	}
	repo.statuses[sha][fmt.Sprint(out["context"])] = out
	reply(w, http.StatusCreated, out)
}

func (s *Server) getStatus(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository) {
	var list []any
	for _, name := range sortedKeys(repo.statuses[r.PathValue("ref")]) {
		one := repo.statuses[r.PathValue("ref")][name]
		item := s.spec.example("combined-commit-status")["statuses"].([]any)[0].(map[string]any)
		for _, k := range []string{"state", "context", "description", "target_url"} {
			item[k] = one[k]
		}
		list = append(list, item)
	}
	page(w, r, list, func(some []any) any {
		out := s.spec.example("combined-commit-status")
		out["statuses"], out["total_count"] = some, len(list)
		return out
	})
}

// AddRun reports a check run, as an app does.
func (s *Server) AddRun(repo, sha, name, status string, conclusion any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.spec.example("check-run-paginated")["check_runs"].([]any)[0].(map[string]any)
	run["id"], run["name"], run["head_sha"], run["status"], run["conclusion"] = s.id(), name, sha, status, conclusion
	s.repos[repo].runs[sha] = append(s.repos[repo].runs[sha], run)
}

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository) {
	list := []any{}
	for _, run := range repo.runs[r.PathValue("ref")] {
		list = append(list, run)
	}
	page(w, r, list, func(some []any) any { return map[string]any{"total_count": len(list), "check_runs": some} })
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
