package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

type pull struct {
	number             int
	title, body, state string
	author             string
	head, base         string
	draft              bool
	reviewers, labels  []string
	mergeSHA           string
	mergedAt           string
	headSHA            string // at the end
	tried              string // heads whose merge was tried: before, GitHub does not know
	reviews            []map[string]any
	lines              []map[string]any
}

func (s *Server) pullRoutes(on func(pattern, permission, level string, h handler)) {
	on("GET /pulls", "pull_requests", "read", s.listPulls)
	on("POST /pulls", "pull_requests", "write", s.createPull)
	one := func(h func(w http.ResponseWriter, r *http.Request, t *Token, repo *repository, p *pull)) handler {
		return func(w http.ResponseWriter, r *http.Request, t *Token, repo *repository) {
			n, _ := strconv.Atoi(r.PathValue("number"))
			if p := repo.pulls[n]; p != nil {
				h(w, r, t, repo, p)
				return
			}
			fail(w, http.StatusNotFound, "Not Found")
		}
	}
	on("GET /pulls/{number}", "pull_requests", "read", one(s.getPull))
	on("PATCH /pulls/{number}", "pull_requests", "write", one(s.editPull))
	on("PUT /pulls/{number}/merge", "contents", "write", one(s.mergePull))
	on("POST /pulls/{number}/requested_reviewers", "pull_requests", "write", one(s.askReviewers))
	on("GET /pulls/{number}/reviews", "pull_requests", "read", one(s.listReviews))
	on("POST /pulls/{number}/reviews", "pull_requests", "write", one(s.createReview))
	on("GET /pulls/{number}/comments", "pull_requests", "read", one(s.listLines))
	on("POST /pulls/{number}/comments", "pull_requests", "write", one(s.createLine))
}

func (s *Server) tip(repo *repository, branch string) string {
	sha, err := tryGit(repo.dir, "rev-parse", "--verify", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return sha
}

// write is a pull request as GitHub writes it, in full or as in a list.
func (s *Server) write(repo *repository, p *pull, example string) map[string]any {
	out := s.spec.example(example)
	sha := p.headSHA
	if sha == "" {
		sha = s.tip(repo, p.head)
	}
	out["number"], out["title"], out["body"], out["state"], out["draft"] = p.number, p.title, p.body, p.state, p.draft
	out["node_id"], out["user"], out["html_url"] = fmt.Sprintf("PR_%d", p.number), s.user(p.author), fmt.Sprintf("%s/%s/pull/%d", s.URL, repo.name, p.number)
	owner, _, _ := strings.Cut(repo.name, "/")
	for side, ref := range map[string]string{"head": p.head, "base": p.base} {
		end := out[side].(map[string]any)
		end["ref"], end["label"] = ref, owner+":"+ref
	}
	out["head"].(map[string]any)["sha"], out["base"].(map[string]any)["sha"] = sha, s.tip(repo, p.base)
	people, labels := []any{}, []any{}
	for _, r := range p.reviewers {
		people = append(people, s.user(r))
	}
	for _, l := range p.labels {
		label := s.spec.example("label-items")
		label["name"] = l
		labels = append(labels, label)
	}
	out["requested_reviewers"], out["requested_teams"], out["labels"] = people, []any{}, labels
	out["merged_at"], out["closed_at"], out["merge_commit_sha"] = nil, nil, nil
	if p.mergedAt != "" {
		out["merged_at"], out["closed_at"], out["merge_commit_sha"] = p.mergedAt, p.mergedAt, p.mergeSHA
	}
	return out
}

// full adds what only a single pull request has.
func (s *Server) full(repo *repository, p *pull) map[string]any {
	out := s.write(repo, p, "pull-request")
	out["merged"], out["mergeable"], out["mergeable_state"], out["rebaseable"] = p.mergedAt != "", nil, "unknown", nil
	if p.mergedAt == "" {
		out["merged_by"] = nil
	}
	if p.state != "open" {
		return out
	}
	base, head := s.tip(repo, p.base), s.tip(repo, p.head)
	if p.tried != base+head { // the first to ask makes GitHub try
		p.tried = base + head
		return out
	}
	_, err := tryGit(repo.dir, "merge-tree", "--write-tree", base, head)
	out["mergeable"] = err == nil
	out["mergeable_state"] = "clean"
	switch {
	case err != nil:
		out["mergeable_state"] = "dirty"
	case p.draft:
		out["mergeable_state"] = "draft"
	}
	return out
}

func (s *Server) listPulls(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository) {
	q := r.URL.Query()
	state := q.Get("state")
	var list []any
	for n := repo.last; n > 0; n-- {
		p := repo.pulls[n]
		if p == nil || state != "all" && p.state != state && (state != "" || p.state != "open") {
			continue
		}
		if _, branch, _ := strings.Cut(q.Get("head"), ":"); branch != "" && branch != p.head {
			continue
		}
		list = append(list, s.write(repo, p, "pull-request-simple-items"))
	}
	page(w, r, list, nil)
}

func (s *Server) createPull(w http.ResponseWriter, r *http.Request, t *Token, repo *repository) {
	var in struct {
		Title, Body, Head, Base string
		Draft                   bool
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	owner, _, _ := strings.Cut(repo.name, "/")
	switch {
	case s.tip(repo, in.Head) == "" || s.tip(repo, in.Base) == "":
		fail(w, http.StatusUnprocessableEntity, "Validation Failed", "head is invalid")
		return
	case s.git(repo.dir, "rev-list", "--count", in.Base+".."+in.Head) == "0":
		fail(w, http.StatusUnprocessableEntity, "Validation Failed", "No commits between "+in.Base+" and "+in.Head)
		return
	}
	for _, p := range repo.pulls {
		if p.state == "open" && p.head == in.Head && p.base == in.Base {
			fail(w, http.StatusUnprocessableEntity, "Validation Failed", "A pull request already exists for "+owner+":"+in.Head+".")
			return
		}
	}
	repo.last++
	p := &pull{number: repo.last, title: in.Title, body: in.Body, state: "open", author: t.Login, head: in.Head, base: in.Base, draft: in.Draft}
	repo.pulls[p.number], repo.issues[p.number] = p, &issue{number: p.number}
	reply(w, http.StatusCreated, s.full(repo, p))
}

func (s *Server) getPull(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository, p *pull) {
	if strings.Contains(r.Header.Get("Accept"), "diff") {
		w.Header().Set("Content-Type", "application/vnd.github.v3.diff; charset=utf-8")
		fmt.Fprintln(w, s.git(repo.dir, "diff", "--no-color", p.base+"..."+p.head))
		return
	}
	reply(w, http.StatusOK, s.full(repo, p))
}

func (s *Server) editPull(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository, p *pull) {
	var in struct{ Title, Body, State *string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	for from, to := range map[*string]*string{in.Title: &p.title, in.Body: &p.body, in.State: &p.state} {
		if from != nil {
			*to = *from
		}
	}
	reply(w, http.StatusOK, s.full(repo, p))
}

func (s *Server) askReviewers(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository, p *pull) {
	var in struct{ Reviewers []string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	for _, name := range in.Reviewers {
		if !slices.Contains(repo.writers, name) || name == p.author {
			fail(w, http.StatusUnprocessableEntity, "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the repository.")
			return
		}
	}
	p.reviewers = append(p.reviewers, in.Reviewers...)
	reply(w, http.StatusCreated, s.write(repo, p, "pull-request-simple-items"))
}

func (s *Server) mergePull(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository, p *pull) {
	var in struct {
		Title   string `json:"commit_title"`
		Message string `json:"commit_message"`
		SHA     string `json:"sha"`
		Method  string `json:"merge_method"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	switch head := s.tip(repo, p.head); {
	case p.state != "open" || p.draft:
		fail(w, http.StatusMethodNotAllowed, "Pull Request is not mergeable")
		return
	case in.SHA != "" && in.SHA != head:
		fail(w, http.StatusConflict, "Head branch was modified. Review and try the merge again.")
		return
	}
	if in.Title == "" {
		in.Title = fmt.Sprintf("Merge pull request #%d", p.number)
	}
	p.headSHA = s.tip(repo, p.head)
	sha, err := s.merge(repo, p, in.Method, in.Title+"\n\n"+in.Message)
	if err != nil {
		p.headSHA = ""
		fail(w, http.StatusMethodNotAllowed, "Pull Request is not mergeable")
		return
	}
	p.state, p.mergeSHA, p.mergedAt = "closed", sha, time.Now().UTC().Format(time.RFC3339)
	reply(w, http.StatusOK, map[string]any{"sha": sha, "merged": true, "message": "Pull Request successfully merged"})
}

// merge does it in a clone, with git itself.
func (s *Server) merge(repo *repository, p *pull, method, message string) (string, error) {
	dir, err := os.MkdirTemp(s.dir, "merge-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	steps := [][]string{{"clone", "-q", "--shared", repo.dir, "."}, {"checkout", "-q", p.base}}
	switch method {
	case "squash":
		steps = append(steps, []string{"merge", "-q", "--squash", "origin/" + p.head}, []string{"commit", "-qm", message})
	case "rebase":
		steps = append(steps, []string{"checkout", "-q", "-B", "work", "origin/" + p.head}, []string{"rebase", "-q", p.base}, []string{"checkout", "-q", "-B", p.base})
	default:
		steps = append(steps, []string{"merge", "-q", "--no-ff", "-m", message, "origin/" + p.head})
	}
	for _, args := range append(steps, []string{"push", "-q", "origin", p.base}) {
		if out, err := tryGit(dir, args...); err != nil {
			return "", fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	return s.tip(repo, p.base), nil
}
