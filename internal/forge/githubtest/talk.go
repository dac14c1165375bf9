package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// issue is an issue, or the talk of the pull request of that number.
type issue struct {
	number      int
	title, body string
	author      string
	labels      []string
	talk        []map[string]any
}

func (s *Server) talkRoutes(on func(pattern, permission, level string, h handler)) {
	on("POST /issues", "issues", "write", s.createIssue)
	one := func(h func(w http.ResponseWriter, r *http.Request, t *Token, repo *repository, i *issue)) handler {
		return func(w http.ResponseWriter, r *http.Request, t *Token, repo *repository) {
			n, _ := strconv.Atoi(r.PathValue("number"))
			if i := repo.issues[n]; i != nil {
				h(w, r, t, repo, i)
				return
			}
			fail(w, http.StatusNotFound, "Not Found")
		}
	}
	on("GET /issues/{number}", "issues", "read", one(s.getIssue))
	on("POST /issues/{number}/labels", "issues", "write", one(s.addLabels))
	on("GET /issues/{number}/comments", "issues", "read", one(s.listTalk))
	on("POST /issues/{number}/comments", "issues", "write", one(s.createTalk))
}

// stamp is the time of a remark. GitHub's are whole seconds; these go up by one, so
// that their order can be told.
func (s *Server) stamp() string {
	return time.Now().Add(time.Duration(s.id()-1000) * time.Second).UTC().Format(time.RFC3339)
}

func (s *Server) listReviews(w http.ResponseWriter, r *http.Request, _ *Token, _ *repository, p *pull) {
	list := []any{}
	for _, one := range p.reviews {
		list = append(list, one)
	}
	page(w, r, list, nil)
}

func (s *Server) createReview(w http.ResponseWriter, r *http.Request, t *Token, repo *repository, p *pull) {
	var in struct {
		Body, Event string
		Comments    []struct {
			Path, Body, Side string
			Line             int
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	state := map[string]string{"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}[in.Event]
	switch {
	case state != "COMMENTED" && t.Login == p.author:
		fail(w, http.StatusUnprocessableEntity, "Review Can not "+strings.ToLower(strings.ReplaceAll(in.Event, "_", " "))+" on your own pull request")
		return
	case state != "APPROVED" && in.Body == "":
		fail(w, http.StatusUnprocessableEntity, "Review body can't be blank")
		return
	}
	out := s.review(repo, p, t.Login, state, in.Body)
	for _, c := range in.Comments {
		if !s.line(w, repo, p, t.Login, out["id"], c.Path, c.Body, c.Side, c.Line) {
			return
		}
	}
	p.reviews = append(p.reviews, out)
	reply(w, http.StatusOK, out)
}

func (s *Server) review(repo *repository, p *pull, login, state, body string) map[string]any {
	out := s.spec.example("pull-request-review")
	out["id"], out["user"], out["body"], out["state"], out["commit_id"], out["submitted_at"] = s.id(), s.user(login), body, state, s.tip(repo, p.head), s.stamp()
	return out
}

// line adds a remark on a line, or answers that there is no such line.
func (s *Server) line(w http.ResponseWriter, repo *repository, p *pull, login string, review any, path, body, side string, line int) bool {
	changed := strings.Split(s.git(repo.dir, "diff", "--name-only", p.base+"..."+p.head), "\n")
	text := s.git(repo.dir, "show", p.head+":"+path)
	if !slices.Contains(changed, path) || line > strings.Count(text+"\n", "\n") {
		fail(w, http.StatusUnprocessableEntity, "Validation Failed", "pull_request_review_thread.line must be part of the diff")
		return false
	}
	out := s.spec.example("pull-request-review-comment-items")
	out["id"], out["pull_request_review_id"], out["user"], out["path"], out["line"], out["side"], out["body"] = s.id(), review, s.user(login), path, line, side, body
	out["created_at"], out["commit_id"] = s.stamp(), s.tip(repo, p.head)
	p.lines = append(p.lines, out)
	return true
}

func (s *Server) listLines(w http.ResponseWriter, r *http.Request, _ *Token, _ *repository, p *pull) {
	list := []any{}
	for _, one := range p.lines {
		list = append(list, one)
	}
	page(w, r, list, nil)
}

func (s *Server) createLine(w http.ResponseWriter, r *http.Request, t *Token, repo *repository, p *pull) {
	var in struct {
		Body, Path, Side string
		CommitID         string `json:"commit_id"`
		Line             int
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	if in.CommitID != s.tip(repo, p.head) {
		fail(w, http.StatusUnprocessableEntity, "Validation Failed", "commit_id is not part of the pull request")
		return
	}
	made := s.review(repo, p, t.Login, "COMMENTED", "") // a remark on a line is a review without words
	if s.line(w, repo, p, t.Login, made["id"], in.Path, in.Body, in.Side, in.Line) {
		p.reviews = append(p.reviews, made)
		reply(w, http.StatusCreated, p.lines[len(p.lines)-1])
	}
}

func (s *Server) writeIssue(repo *repository, i *issue) map[string]any {
	out := s.spec.example("issue")
	labels := []any{}
	for _, l := range i.labels {
		label := s.spec.example("label-items")
		label["name"] = l
		labels = append(labels, label)
	}
	out["number"], out["title"], out["body"], out["user"], out["labels"], out["state"] = i.number, i.title, i.body, s.user(i.author), labels, "open"
	out["html_url"], out["closed_at"], out["closed_by"] = fmt.Sprintf("%s/%s/issues/%d", s.URL, repo.name, i.number), nil, nil
	delete(out, "pull_request")
	return out
}

func (s *Server) createIssue(w http.ResponseWriter, r *http.Request, t *Token, repo *repository) {
	var in struct{ Title, Body string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	repo.last++
	i := &issue{number: repo.last, title: in.Title, body: in.Body, author: t.Login}
	repo.issues[i.number] = i
	reply(w, http.StatusCreated, s.writeIssue(repo, i))
}

func (s *Server) getIssue(w http.ResponseWriter, _ *http.Request, _ *Token, repo *repository, i *issue) {
	reply(w, http.StatusOK, s.writeIssue(repo, i))
}

func (s *Server) addLabels(w http.ResponseWriter, r *http.Request, _ *Token, repo *repository, i *issue) {
	var in []string
	_ = json.NewDecoder(r.Body).Decode(&in)
	i.labels = append(i.labels, in...)
	if p := repo.pulls[i.number]; p != nil {
		p.labels = i.labels
	}
	out := []any{}
	for _, name := range i.labels {
		label := s.spec.example("label-items")
		label["name"] = name
		out = append(out, label)
	}
	reply(w, http.StatusOK, out)
}

func (s *Server) listTalk(w http.ResponseWriter, r *http.Request, _ *Token, _ *repository, i *issue) {
	list := []any{}
	for _, one := range i.talk {
		list = append(list, one)
	}
	page(w, r, list, nil)
}

func (s *Server) createTalk(w http.ResponseWriter, r *http.Request, t *Token, _ *repository, i *issue) {
	var in struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	out := s.spec.example("issue-comment")
	out["id"], out["user"], out["body"], out["created_at"] = s.id(), s.user(t.Login), in.Body, s.stamp()
	i.talk = append(i.talk, out)
	reply(w, http.StatusCreated, out)
}
