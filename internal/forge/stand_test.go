package forge_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/forge/giteatest"
	"agentsquad/internal/forge/githubtest"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// stand is one forge with a repository and people, and our own rooms before it. The
// same suite runs on all of them.
type stand struct {
	*house
	remote   bool
	author   string // token of our server
	reviewer string // token of another person who may write
	person   string // that person's name
	github   *githubtest.Server
	// narrow are tokens that lack something, with what they lack.
	narrow map[string]string
	// protect asks for approvals and a check before a merge into the default branch.
	protect func(approvals int, check string)
}

// stands are the forges that are tested.
var stands = map[string]func(*testing.T) *stand{"local": localStand, "gitea": giteaStand, "github": gitHubStand}

// everywhere runs a test on each forge.
func everywhere(t *testing.T, test func(t *testing.T, s *stand)) {
	for name, open := range stands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func localStand(t *testing.T) *stand {
	return &stand{house: newHouse(t)}
}

func giteaStand(t *testing.T) *stand {
	t.Helper()
	server := giteatest.Start(t)
	squadUser, person, guest := server.User(t), server.User(t), server.User(t)
	name := server.Repository(t, squadUser, person)
	server.Collaborator(t, name, guest, "read")
	s := &stand{
		remote: true, author: squadUser.Token, reviewer: person.Token, person: person.Name,
		narrow: map[string]string{
			guest.Token: "write access to " + name,
			server.Narrow(t, squadUser, "read:repository", "write:issue"): "token scope write:repository",
			server.Narrow(t, squadUser, "write:repository"):               "token scope write:issue",
		},
	}
	s.protect = func(approvals int, check string) {
		server.Call(t, http.MethodPost, "/repos/"+name+"/branch_protections", server.Token, map[string]any{
			"rule_name": "main", "required_approvals": approvals, "enable_status_check": true, "status_check_contexts": []string{check},
		}, nil)
	}
	s.house = remoteHouse(t, squad.Repository{Name: name, Forge: squad.ForgeGitea, URL: server.URL + "/" + name + ".git"}, s.author, server.CloneURL(name, squadUser.Token))
	return s
}

func gitHubStand(t *testing.T) *stand {
	t.Helper()
	const name = "acme/hello"
	server := githubtest.Start(t)
	server.AddRepository(name, []string{"squad-bot", "grace"}, []string{"guest"})
	all := map[string]string{"*": "write"}
	s := &stand{
		remote: true, person: "grace", github: server,
		author:   server.AddToken("github_pat_author", githubtest.Token{Login: "squad-bot", Permissions: all}),
		reviewer: server.AddToken("ghp_reviewer", githubtest.Token{Login: "grace", Scopes: "repo, read:org"}),
		narrow: map[string]string{
			server.AddToken("ghp_guest", githubtest.Token{Login: "guest", Scopes: "repo"}):                                                        "write access to " + name,
			server.AddToken("ghp_gist", githubtest.Token{Login: "squad-bot", Scopes: "gist", Permissions: map[string]string{"metadata": "read"}}): "token scope repo",
		},
	}
	for what, words := range map[string]string{
		"contents": "Contents: read and write", "pull_requests": "Pull requests: read and write", "statuses": "Commit statuses: read and write",
	} {
		s.narrow[server.AddToken("github_pat_no_"+what, githubtest.Token{Login: "squad-bot", Permissions: map[string]string{"*": "write", what: "read"}})] = words
	}
	s.narrow[server.AddToken("github_pat_no_checks", githubtest.Token{Login: "squad-bot", Permissions: map[string]string{"*": "write", "checks": ""}})] = "Checks: read"
	s.protect = func(approvals int, check string) { server.Protect(name, approvals, check, false) }
	s.house = remoteHouse(t, squad.Repository{Name: name, Forge: squad.ForgeGitHub, APIURL: server.URL + "/api/v3"}, s.author,
		strings.Replace(server.URL, "://", "://x-access-token:"+s.author+"@", 1)+"/"+name+".git")
	return s
}

// remoteHouse is our side before a remote forge: an empty database, and a clone
// that pushes past the server, as a sandbox does through the gateway.
func remoteHouse(t *testing.T, repo squad.Repository, token, cloneURL string) *house {
	t.Helper()
	ctx, data := t.Context(), t.TempDir()
	db, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(data, "squad.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h := &house{t: t, store: db, repo: repo, work: filepath.Join(data, "work")}
	h.service = h.as(token)
	if err := h.service.Prepare(ctx, &h.repo, ""); err != nil {
		t.Fatal(err)
	}
	sq := squad.Squad{Name: "Crew", Status: squad.SquadActive}
	err = db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.CreateSquad(ctx, &sq); err != nil {
			return err
		}
		h.repo.SquadID = sq.ID
		if err := tx.CreateRepository(ctx, &h.repo); err != nil {
			return err
		}
		h.task = squad.Task{SquadID: sq.ID, RepositoryID: h.repo.ID, Title: "Add a greeting", Status: squad.TaskTodo}
		return tx.CreateTask(ctx, &h.task)
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, data, "clone", "-q", "-o", "squad", cloneURL, h.work)
	return h
}

// as is a door to the forge with another token, on the same database.
func (h *house) as(token string) *forge.Service {
	h.t.Helper()
	vault, err := forge.OpenVault(filepath.Join(h.t.TempDir(), "key"))
	if err != nil {
		h.t.Fatal(err)
	}
	return forge.NewService(forge.Config{
		Store: h.store, Git: git.New(git.Config{AllowFile: true}), Dir: h.t.TempDir(),
		Credentials: forge.NewCredentials(h.store, vault, map[string]string{h.place(): token, "webhook": hookSecret}),
	})
}

// place names the forge with its address, as a credential does.
func (h *house) place() string {
	address := h.repo.URL
	if address == "" {
		address = h.repo.APIURL
	}
	u, err := url.Parse(address)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(h.repo.Forge) + ":" + u.Host
}

// forge is the contract itself, as our server or as another person.
func (s *stand) forge(token string) forge.Forge {
	s.t.Helper()
	door := s.service
	if token != s.author {
		door = s.as(token)
	}
	f, err := door.For(s.t.Context(), s.repo)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// review says something as another person and lets our side read it.
func (s *stand) review(pull squad.PullRequest, c squad.ReviewComment) squad.PullRequest {
	s.t.Helper()
	if s.remote {
		if _, err := s.forge(s.reviewer).Comment(s.t.Context(), pull.Number, c); err != nil {
			s.t.Fatal(err)
		}
	} else if _, err := s.service.Review(s.t.Context(), squad.System(), pull.ID, squad.NewReview{Path: c.Path, Line: c.Line, Side: c.Side, Verdict: c.Verdict, Body: c.Body}); err != nil {
		s.t.Fatal(err)
	}
	return s.refresh(pull)
}

func (s *stand) refresh(pull squad.PullRequest) squad.PullRequest {
	s.t.Helper()
	fresh, err := s.service.Refresh(s.t.Context(), squad.System(), pull.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return fresh
}

// until reads the pull request until it is as expected: a forge learns of a push to
// the base in its own time.
func (s *stand) until(pull squad.PullRequest, what string, is func(squad.PullRequest) bool) squad.PullRequest {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		if pull = s.refresh(pull); is(pull) {
			return pull
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: not so: %+v", what, pull)
		}
	}
}

// comments are the remarks that our side knows.
func (s *stand) comments(pull squad.PullRequest) []squad.ReviewComment {
	s.t.Helper()
	list, err := s.store.ReviewComments(s.t.Context(), store.ReviewCommentFilter{PullID: pull.ID})
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// tip is the newest commit of the default branch on the forge.
func (s *stand) tip() string {
	s.t.Helper()
	run(s.t, s.work, "fetch", "-q", "squad")
	return run(s.t, s.work, "rev-parse", "squad/"+s.repo.DefaultBranch)
}

// moveBase commits to the default branch on the forge.
func (s *stand) moveBase(name, text string) {
	s.t.Helper()
	base := s.repo.DefaultBranch
	run(s.t, s.work, "checkout", "-q", base)
	write(s.t, s.work, name, text)
	run(s.t, s.work, "add", ".")
	run(s.t, s.work, "commit", "-qm", "docs: say otherwise")
	run(s.t, s.work, "push", "-q", "squad", base)
}

// wants fails unless err has the code, and says the words.
func wants(t *testing.T, what string, err error, code squad.Code, words ...string) {
	t.Helper()
	if squad.CodeOf(err) != code {
		t.Errorf("%s: %v (%s), want %s", what, err, squad.CodeOf(err), code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
