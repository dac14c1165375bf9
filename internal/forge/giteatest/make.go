package giteatest

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

var made atomic.Int64

// Person is a user who may log in.
type Person struct {
	Name  string
	Token string // with all scopes
	login string // name:password
}

// User makes a person with no rights anywhere.
func (s *Server) User(t testing.TB) Person {
	t.Helper()
	name := fmt.Sprintf("user%d", made.Add(1))
	p := Person{Name: name, login: name + ":a-Password-of-" + name}
	s.Call(t, http.MethodPost, "/admin/users", s.Token, map[string]any{
		"username": name, "email": name + "@example.com", "password": "a-Password-of-" + name, "must_change_password": false,
	}, nil)
	p.Token = s.Narrow(t, p, "all")
	return p
}

// Narrow makes another token of a person, with the given scopes only.
func (s *Server) Narrow(t testing.TB, p Person, scopes ...string) string {
	t.Helper()
	var token struct {
		SHA1 string `json:"sha1"`
	}
	s.Call(t, http.MethodPost, "/users/"+p.Name+"/tokens", p.login, map[string]any{
		"name": fmt.Sprintf("token%d", made.Add(1)), "scopes": scopes,
	}, &token)
	return token.SHA1
}

// Repository makes an organisation with one repository that has a first commit on
// main and returns its owner/name. Each of the members may write to it.
func (s *Server) Repository(t testing.TB, members ...Person) string {
	t.Helper()
	org := fmt.Sprintf("org%d", made.Add(1))
	s.Call(t, http.MethodPost, "/orgs", s.Token, map[string]any{"username": org}, nil)
	s.Call(t, http.MethodPost, "/orgs/"+org+"/repos", s.Token, map[string]any{
		"name": "hello", "auto_init": true, "default_branch": "main", "readme": "Default", "private": true,
	}, nil)
	for _, m := range members {
		s.Collaborator(t, org+"/hello", m, "write")
	}
	return org + "/hello"
}

// Collaborator gives a person read, write or admin rights.
func (s *Server) Collaborator(t testing.TB, repo string, p Person, permission string) {
	t.Helper()
	s.Call(t, http.MethodPut, "/repos/"+repo+"/collaborators/"+p.Name, s.Token, map[string]any{"permission": permission}, nil)
}

// CloneURL is the address of a repository with a token in it, for git in tests.
func (s *Server) CloneURL(repo, token string) string {
	return "http://squad:" + token + "@" + s.URL[len("http://"):] + "/" + repo + ".git"
}

// Hook sends all that happens to a repository to an address, signed.
func (s *Server) Hook(t testing.TB, repo, address, secret string) {
	t.Helper()
	s.Call(t, http.MethodPost, "/repos/"+repo+"/hooks", s.Token, map[string]any{
		"type": "gitea", "active": true, "events": []string{
			"push", "issues", "issue_label", "issue_comment", "status", "pull_request", "pull_request_comment", "pull_request_sync",
			"pull_request_review", "pull_request_label",
		},
		"config": map[string]string{"url": address, "content_type": "json", "secret": secret},
	}, nil)
}
