package forge_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/forge/githubtest"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// A GitHub App signs a claim, gets a token for an hour, keeps it, and gets another
// before the first ends.
func TestGitHub_AppTokenIsKeptAndRenewed(t *testing.T) {
	t.Parallel()
	s := gitHubStand(t)
	ctx := t.Context()
	vault, err := forge.OpenVault(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	credentials := forge.NewCredentials(s.store, vault, nil)
	service := forge.NewService(forge.Config{Store: s.store, Credentials: credentials, Git: git.New(git.Config{}), Dir: t.TempDir()})
	use := func(secret forge.AppSecret) squad.Repository {
		text, _ := json.Marshal(secret)
		cred := squad.Credential{SquadID: s.repo.SquadID, Name: "app", Kind: squad.CredentialGitHubApp, Provider: "github"}
		repo := s.repo
		err := s.store.Tx(ctx, func(tx *store.Tx) error {
			if err := tx.CreateCredential(ctx, &cred); err != nil {
				return err
			}
			sealed, err := vault.Seal(cred.ID, text)
			if err != nil {
				return err
			}
			return tx.SetSealedCredential(ctx, cred.ID, sealed)
		})
		if err != nil {
			t.Fatal(err)
		}
		repo.CredentialID, repo.APIURL = cred.ID, s.github.URL+"/api/v3/"
		return repo
	}
	calls := func(repo squad.Repository) {
		t.Helper()
		for range 3 {
			f, err := service.For(ctx, repo)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := f.Info(ctx); err != nil || len(info.Missing) > 0 {
				t.Fatalf("info %+v, %v", info, err)
			}
		}
	}
	key := s.github.AddApp(7, 70, "squad-bot", time.Hour)
	calls(use(forge.AppSecret{AppID: 7, InstallationID: 70, PrivateKey: key}))
	if n := s.github.Minted(70); n != 1 {
		t.Errorf("%d tokens for an hour's work", n)
	}
	key = s.github.AddApp(8, 80, "squad-bot", 50*time.Second) // less than a minute is as good as over
	calls(use(forge.AppSecret{AppID: 8, InstallationID: 80, PrivateKey: key}))
	if n := s.github.Minted(80); n != 3 {
		t.Errorf("%d tokens where each is about to end", n)
	}
	_, err = service.For(ctx, use(forge.AppSecret{AppID: 7, InstallationID: 70, PrivateKey: key}))
	wants(t, "key of another app", err, squad.CodeUnauthorized)
	if err != nil && strings.Contains(err.Error(), "PRIVATE KEY") {
		t.Error("the error shows the key")
	}
	_, err = service.For(ctx, use(forge.AppSecret{AppID: 7, InstallationID: 99, PrivateKey: key}))
	wants(t, "installation that is not there", err, squad.CodeNotFound)
}

func TestCredentials_AKeyOfAnotherKindIsNotSentToAForge(t *testing.T) {
	t.Parallel()
	s := gitHubStand(t)
	cred := squad.Credential{SquadID: s.repo.SquadID, Name: "model", Kind: squad.CredentialModelKey, Provider: "openai"}
	if err := s.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), &cred) }); err != nil {
		t.Fatal(err)
	}
	repo := s.repo
	repo.CredentialID = cred.ID
	_, err := s.service.For(t.Context(), repo)
	wants(t, "model key for a forge", err, squad.CodeInvalid, "model")
}

// A secret of the whole installation goes to its own server and nowhere else,
// whatever address a repository is given.
func TestCredentials_TheInstallationsSecretStaysAtHome(t *testing.T) {
	t.Parallel()
	c := forge.NewCredentials(emptyStore(t), nil, map[string]string{"github": "hub", "gitea:git.example.com": "tea", "openai": "model"})
	for _, try := range []struct {
		forge          squad.ForgeKind
		url, api, want string
	}{
		{squad.ForgeGitHub, "", "", "hub"},
		{squad.ForgeGitHub, "https://github.com/acme/hello.git", "https://api.github.com", "hub"},
		{squad.ForgeGitHub, "https://evil.example.com/acme/hello.git", "", ""},
		{squad.ForgeGitHub, "https://github.com/acme/hello.git", "https://evil.example.com/api/v3", ""},
		{squad.ForgeGitHub, "https://github.com.evil.example.com/acme/hello.git", "", ""},
		{squad.ForgeGitea, "https://git.example.com/acme/hello.git", "", "tea"},
		{squad.ForgeGitea, "https://git.example.com:8443/acme/hello.git", "", ""},
		{squad.ForgeGitea, "https://github.com/acme/hello.git", "", ""},
	} {
		got, err := c.Token(t.Context(), squad.Repository{Name: "acme/hello", Forge: try.forge, URL: try.url, APIURL: try.api})
		if err != nil || got != try.want {
			t.Errorf("%+v: %q, %v", try, got, err)
		}
	}
}

// What did not change costs nothing of the rate limit, and what is left is shown.
func TestGitHub_PollingIsFreeWhileNothingChanges(t *testing.T) {
	t.Parallel()
	s := gitHubStand(t)
	s.push("hi.txt", "hi\n")
	pull := s.ensure(t.Context())
	s.refresh(pull)
	left := s.github.Remaining()
	s.github.Calls()
	for range 3 {
		if err := s.service.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range s.github.Calls() {
		if !strings.HasSuffix(call, " 304") {
			t.Errorf("counted: %s", call)
		}
	}
	if now := s.github.Remaining(); now != left {
		t.Errorf("%d calls were counted", left-now)
	}
	checks := s.service.Check(t.Context(), s.repo.ID)
	if len(checks) != 1 || !strings.Contains(checks[0].Detail, strconv.Itoa(left)) {
		t.Errorf("%d left, doctor says %+v", left, checks)
	}
	if _, err := s.forge(s.reviewer).Comment(t.Context(), pull.Number, squad.ReviewComment{Verdict: "comment", Body: "hello"}); err != nil {
		t.Fatal(err)
	}
	if err := s.service.Poll(t.Context()); err != nil || len(s.comments(pull)) != 1 {
		t.Errorf("a new remark was not read: %v, %v", s.comments(pull), err)
	}
}

// When GitHub says when to come back, nothing is sent before then, by any client.
func TestGitHub_LimitsAreKept(t *testing.T) {
	t.Parallel()
	for name, wall := range map[string]githubtest.Refusal{
		"secondary": {Status: http.StatusForbidden, Header: map[string]string{"Retry-After": "90"}, Text: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."},
		"too many":  {Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "90"}, Text: "Too many requests"},
		"used up": {
			Status: http.StatusForbidden, Text: "API rate limit exceeded for user ID 1.",
			Header: map[string]string{"X-RateLimit-Remaining": "0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gitHubStand(t)
			s.push("hi.txt", "hi\n")
			s.ensure(t.Context())
			if name == "used up" {
				wall.Header["X-RateLimit-Reset"] = strconv.FormatInt(time.Now().Add(90*time.Second).Unix(), 10)
			}
			s.github.Wall(func(*http.Request) *githubtest.Refusal { return &wall })
			s.github.Calls()
			for range 3 {
				_, err := s.forge(s.author).Info(t.Context())
				wants(t, "call at the limit", err, squad.CodeQuota)
				var e *squad.Error
				if !errors.As(err, &e) || e.RetryAfter < 60*time.Second || e.RetryAfter > 91*time.Second {
					t.Errorf("try again when? %+v", e)
				}
			}
			if err := s.service.Poll(t.Context()); squad.CodeOf(err) != squad.CodeQuota {
				t.Errorf("poll: %v", err)
			}
			if calls := s.github.Calls(); len(calls) != 1 {
				t.Errorf("sent in spite of the limit: %v", calls)
			}
			s.github.Wall(nil)
			if _, err := s.forge(s.reviewer).Info(t.Context()); err != nil {
				t.Errorf("another credential: %v", err)
			}
		})
	}
}

func TestGitHub_RulesOfABranchCountToo(t *testing.T) {
	t.Parallel()
	s := gitHubStand(t)
	s.github.Protect(s.repo.Name, 2, "ci/build", true)
	s.push("hi.txt", "hi\n")
	pull := s.ensure(t.Context())
	_, err := s.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{})
	wants(t, "merge", err, squad.CodeRule, "2 more approving review", `"ci/build"`)
}

func TestGitHub_CheckRunsAndStatusesAreSummedTogether(t *testing.T) {
	t.Parallel()
	s := gitHubStand(t)
	sha := s.push("hi.txt", "hi\n")
	pull := s.ensure(t.Context())
	for i := range 12 {
		s.github.AddRun(s.repo.Name, sha, "unit-"+strconv.Itoa(i), "completed", "success")
	}
	if pull = s.refresh(pull); pull.Checks != "success" {
		t.Errorf("checks %q", pull.Checks)
	}
	s.github.AddRun(s.repo.Name, sha, "slow", "in_progress", nil)
	if pull = s.refresh(pull); pull.Checks != "pending" {
		t.Errorf("checks %q", pull.Checks)
	}
	s.github.AddRun(s.repo.Name, sha, "lint", "completed", "timed_out")
	if pull = s.refresh(pull); pull.Checks != "failure" {
		t.Errorf("checks %q", pull.Checks)
	}
	if checks, err := s.forge(s.author).Checks(t.Context(), sha); err != nil || len(checks) != 14 {
		t.Errorf("%d checks, %v", len(checks), err)
	}
}

// The API's address follows from what is given, as GitHub and GitHub Enterprise have it.
func TestGitHub_AddressOfTheAPI(t *testing.T) {
	t.Parallel()
	token := map[string]string{"github": "x", "github:git.example.com": "x", "github:acme.ghe.com": "x"}
	for _, c := range []struct{ url, api, want string }{
		{"", "", "https://api.github.com/repos/acme/hello"},
		{"https://github.com/acme/hello.git", "", "https://api.github.com/repos/acme/hello"},
		{"", "https://api.github.com/", "https://api.github.com/repos/acme/hello"},
		{"https://git.example.com/acme/hello.git", "", "https://git.example.com/api/v3/repos/acme/hello"},
		{"https://acme.ghe.com/acme/hello.git", "", "https://api.acme.ghe.com/repos/acme/hello"},
		{"", "https://git.example.com", "https://git.example.com/api/v3/repos/acme/hello"},
		{"", "https://git.example.com/api/v3/", "https://git.example.com/api/v3/repos/acme/hello"},
	} {
		var asked string
		service := forge.NewService(forge.Config{
			Credentials: forge.NewCredentials(emptyStore(t), nil, token),
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				asked = r.URL.String()
				return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r, Header: http.Header{}}, nil
			}),
		})
		f, err := service.For(t.Context(), squad.Repository{Name: "acme/hello", Forge: squad.ForgeGitHub, URL: c.url, APIURL: c.api})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Info(t.Context())
		if wants(t, "info", err, squad.CodeNotFound); asked != c.want {
			t.Errorf("%+v: asked %s", c, asked)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func emptyStore(t *testing.T) *store.Store {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "squad.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
