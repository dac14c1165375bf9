package forge

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// Config describes a [Service].
type Config struct {
	Store       *store.Store
	Credentials *Credentials
	Git         *git.Runner
	// Dir holds the bare repositories of the local forge; "" turns it off.
	Dir string
	// PublicURL is our own address as people reach it, for links; may be empty.
	PublicURL string
	// Transport reaches remote forges; default is [http.DefaultTransport].
	Transport http.RoundTripper
	Log       *slog.Logger
}

// Service is the door to all forges. It is safe for concurrent use and starts no
// goroutines.
type Service struct {
	cfg       Config
	transport http.RoundTripper // shared, so that what was read once costs nothing
}

// NewService makes the door.
func NewService(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	return &Service{cfg: cfg, transport: newBudget(conditional(cfg.Transport))}
}

var errNoLocal = squad.Errorf(squad.CodeRule, "the local forge is off on this installation (repos: none); use a repository on GitHub or Gitea")

// For returns the forge of a repository, with its credential.
func (s *Service) For(ctx context.Context, repo squad.Repository) (Forge, error) {
	if repo.Forge == squad.ForgeLocal {
		if s.cfg.Dir == "" {
			return nil, errNoLocal
		}
		return &local{repo: repo, dir: LocalDir(s.cfg.Dir, repo.ID), git: s.cfg.Git, store: s.cfg.Store}, nil
	}
	token, err := s.cfg.Credentials.Token(ctx, repo)
	if err != nil {
		return nil, err
	}
	switch repo.Forge {
	case squad.ForgeGitHub:
		return newGitHub(repo, token, s.transport)
	case squad.ForgeGitea:
		return newGitea(repo, token, s.transport)
	}
	return nil, squad.Invalid("forge", "%q is not a forge: use local, github or gitea", repo.Forge)
}

// EnsureRequest asks for the pull request of a task's branch.
type EnsureRequest struct {
	Repository  squad.Repository
	Task        squad.Task
	ExecutionID string
	MemberID    string
	Head, Base  string
	Title, Body string // made from the task where empty
	Draft       bool
	Evidence    Evidence
}

// Ensure finds the open pull request of the branch and brings its text up to
// date, or opens one. Called twice it makes one.
func (s *Service) Ensure(ctx context.Context, r EnsureRequest) (squad.PullRequest, error) {
	f, err := s.For(ctx, r.Repository)
	if err != nil {
		return squad.PullRequest{}, err
	}
	title := orElse(r.Title, Title(r.Task))
	body := orElse(r.Body, Body(r.Repository.PRTemplate, s.taskURL(r.Task), r.Task, r.Evidence))
	pull, found, err := s.open(ctx, f, r.Head, r.Base)
	if err != nil {
		return squad.PullRequest{}, err
	}
	if !found {
		pull, err = f.CreatePull(ctx, NewPull{
			Title: title, Body: body, Head: r.Head, Base: r.Base, Draft: r.Draft || r.Repository.Policy.Draft,
			Reviewers: r.Repository.Reviewers, Labels: r.Repository.Policy.Labels,
		})
		if squad.CodeOf(err) == squad.CodeConflict { // another node was faster, or an answer was lost
			if pull, found, err = s.open(ctx, f, r.Head, r.Base); err == nil && !found {
				err = squad.Errorf(squad.CodeProvider, "the forge says that a pull request for %s exists and does not list it", r.Head)
			}
		}
	} else if pull.Body != body {
		pull, err = f.UpdatePull(ctx, pull.Number, PullUpdate{Body: &body})
	}
	if err != nil {
		return squad.PullRequest{}, err
	}
	pull.TaskID = r.Task.ID
	return s.save(ctx, r.Repository, pull, squad.Event{TaskID: r.Task.ID, ExecutionID: r.ExecutionID, MemberID: r.MemberID})
}

func (s *Service) open(ctx context.Context, f Forge, head, base string) (squad.PullRequest, bool, error) {
	list, err := f.Pulls(ctx, PullFilter{Head: head})
	if err != nil {
		return squad.PullRequest{}, false, err
	}
	for _, p := range list {
		if p.Base == base {
			p, err = f.Pull(ctx, p.Number) // lists leave out mergeability
			return p, err == nil, err
		}
	}
	return squad.PullRequest{}, false, nil
}

func (s *Service) taskURL(t squad.Task) string {
	if s.cfg.PublicURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/tasks/%d", s.cfg.PublicURL, t.Number)
}

// save writes what a forge says of a pull request, and the event that tells what
// is new. keys are those of the event, as far as known.
func (s *Service) save(ctx context.Context, repo squad.Repository, fresh squad.PullRequest, keys squad.Event) (squad.PullRequest, error) {
	fresh.RepositoryID = repo.ID
	err := s.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, "pulls:"+repo.ID); err != nil {
			return err
		}
		old, found, err := s.stored(ctx, tx, fresh)
		if err != nil {
			return err
		}
		kind := squad.EventPRCreated
		if found {
			merge(&fresh, old)
			if kind = change(old, fresh); kind == "" {
				fresh = old
				return nil
			}
			err = tx.UpdatePullRequest(ctx, &fresh)
		} else {
			if err := s.number(ctx, tx, &fresh); err != nil {
				return err
			}
			err = tx.CreatePullRequest(ctx, &fresh)
		}
		if err != nil {
			return err
		}
		e := keys
		e.Type, e.SquadID, e.RepositoryID, e.TaskID = kind, repo.SquadID, repo.ID, fresh.TaskID
		e.Payload = event.Payload(fresh)
		return tx.Append(ctx, e)
	})
	return fresh, err
}

func (s *Service) stored(ctx context.Context, tx *store.Tx, p squad.PullRequest) (squad.PullRequest, bool, error) {
	var old squad.PullRequest
	var err error
	if p.Number == 0 { // new on the local forge, unless another node was faster
		old, err = tx.PullRequestByBranch(ctx, p.RepositoryID, p.Head)
		if err == nil && old.State != squad.PullOpen {
			return old, false, nil
		}
	} else {
		old, err = tx.PullRequestByNumber(ctx, p.RepositoryID, p.Number)
	}
	if squad.CodeOf(err) == squad.CodeNotFound {
		return old, false, nil
	}
	return old, err == nil, err
}

// number gives a pull request of the local forge its number and address.
func (s *Service) number(ctx context.Context, tx *store.Tx, p *squad.PullRequest) error {
	if p.Number != 0 {
		return nil
	}
	last, err := tx.PullRequests(ctx, store.PullRequestFilter{RepositoryID: p.RepositoryID, Newest: true, Limit: 1})
	if err != nil {
		return err
	}
	p.Number = 1
	if len(last) > 0 {
		p.Number = last[0].Number + 1
	}
	p.ID = squad.NewID()
	p.URL = s.cfg.PublicURL + "/pulls/" + p.ID
	return nil
}

// merge keeps of the stored row what the forge does not know.
func merge(fresh *squad.PullRequest, old squad.PullRequest) {
	fresh.ID, fresh.Number, fresh.CreatedAt = old.ID, old.Number, old.CreatedAt
	fresh.TaskID = orElse(fresh.TaskID, old.TaskID)
	fresh.URL = orElse(fresh.URL, old.URL)
	fresh.MergeSHA = orElse(fresh.MergeSHA, old.MergeSHA)
	if fresh.MergedAt.IsZero() {
		fresh.MergedAt = old.MergedAt
	}
}

// change names the event for a changed pull request, "" where nothing changed.
func change(old, fresh squad.PullRequest) squad.EventType {
	switch {
	case old.State != fresh.State && fresh.State == squad.PullMerged:
		return squad.EventPRMerged
	case old.State != fresh.State && fresh.State == squad.PullClosed:
		return squad.EventPRClosed
	case old.Checks != fresh.Checks && fresh.Checks != "":
		return squad.EventChecksChanged
	}
	old.UpdatedAt, fresh.UpdatedAt = time.Time{}, time.Time{}
	old.CreatedAt, fresh.CreatedAt = time.Time{}, time.Time{}
	if reflect.DeepEqual(old, fresh) {
		return ""
	}
	return squad.EventPRUpdated
}

// Prepare completes a new repository before its row is written. See the port of
// package api for the contract.
func (s *Service) Prepare(ctx context.Context, repo *squad.Repository, importPath string) error {
	if repo.ID == "" {
		repo.ID = squad.NewID()
	}
	if repo.Forge == squad.ForgeLocal {
		return s.prepareLocal(ctx, repo, importPath)
	}
	if importPath != "" {
		return squad.Invalid("import_path", "only the local forge imports a repository from disk")
	}
	f, err := s.For(ctx, *repo)
	if err != nil {
		return err
	}
	info, err := f.Info(ctx)
	if err != nil {
		return err
	}
	if len(info.Missing) > 0 {
		return squad.Errorf(squad.CodeForbidden, "the credential lacks permissions on %s: %s", repo.Name, strings.Join(info.Missing, ", "))
	}
	if info.Empty {
		return squad.Errorf(squad.CodeRule, "%s has no branch to merge into: push a first commit to it", repo.Name)
	}
	repo.URL = orElse(repo.URL, info.CloneURL)
	repo.DefaultBranch = orElse(repo.DefaultBranch, info.DefaultBranch)
	return nil
}

func (s *Service) prepareLocal(ctx context.Context, repo *squad.Repository, importPath string) error {
	if s.cfg.Dir == "" {
		return errNoLocal
	}
	dir := LocalDir(s.cfg.Dir, repo.ID)
	if importPath != "" {
		if err := s.importFrom(ctx, importPath, dir); err != nil {
			return err
		}
		if head, err := s.cfg.Git.Line(ctx, dir, "symbolic-ref", "--short", "HEAD"); err == nil && repo.DefaultBranch == "" {
			repo.DefaultBranch = head
		}
	}
	repo.DefaultBranch = orElse(repo.DefaultBranch, "main")
	if err := git.CreateBare(ctx, s.cfg.Git, dir, repo.DefaultBranch); err != nil {
		return err
	}
	if err := s.begin(ctx, dir, repo.DefaultBranch); err != nil {
		return err
	}
	repo.URL = s.cfg.PublicURL + "/git/" + repo.ID + ".git"
	return nil
}

// begin gives an empty repository its first commit: a pull request needs a branch to
// go into.
func (s *Service) begin(ctx context.Context, dir, branch string) error {
	branches, err := listBranches(ctx, s.cfg.Git, dir)
	if err != nil || len(branches) > 0 {
		return err
	}
	tree, err := s.cfg.Git.Run(ctx, git.Call{Dir: dir, Args: []string{"mktree"}, Stdin: strings.NewReader("")})
	if err != nil {
		return fmt.Errorf("write empty tree: %w", err)
	}
	commit, err := s.cfg.Git.Run(ctx, git.Call{
		Dir: dir, Args: []string{"commit-tree", strings.TrimSpace(string(tree.Stdout)), "-m", "chore: begin"},
		Env: []string{"GIT_AUTHOR_NAME=Agent Squad", "GIT_AUTHOR_EMAIL=squad@localhost", "GIT_COMMITTER_NAME=Agent Squad", "GIT_COMMITTER_EMAIL=squad@localhost"},
	})
	if err != nil {
		return fmt.Errorf("write first commit: %w", err)
	}
	return git.UpdateRef(ctx, s.cfg.Git, dir, "refs/heads/"+branch, strings.TrimSpace(string(commit.Stdout)), git.ZeroSHA)
}

// importFrom copies the branches and tags of a repository on disk.
func (s *Service) importFrom(ctx context.Context, from, dir string) error {
	if !filepath.IsAbs(from) {
		return squad.Invalid("import_path", "%q is not an absolute path on the server", from)
	}
	if _, err := os.Stat(from); err != nil {
		return squad.Invalid("import_path", "%q is not there", from)
	}
	if _, err := os.Stat(dir); err == nil {
		return nil // done by an earlier try
	}
	_, err := s.cfg.Git.Run(ctx, git.Call{
		Args: []string{"clone", "--bare", "--no-hardlinks", "--", from, dir}, Timeout: 30 * time.Minute,
		Config: []string{"safe.directory=*", "protocol.file.allow=always"}, Env: []string{"GIT_ALLOW_PROTOCOL=file"},
	})
	if err != nil {
		os.RemoveAll(dir)
		return squad.Wrap(squad.CodeInvalid, err, "%q cannot be read as a git repository", from)
	}
	return nil
}

// Discard removes what Prepare made, after the row is gone.
func (s *Service) Discard(_ context.Context, repo squad.Repository) error {
	if repo.Forge != squad.ForgeLocal {
		return nil
	}
	if err := os.RemoveAll(LocalDir(s.cfg.Dir, repo.ID)); err != nil {
		return fmt.Errorf("remove repository: %w", err)
	}
	return nil
}
