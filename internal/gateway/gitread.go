package gateway

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/git"
)

// target is a repository as one caller sees it.
type target struct {
	repo   squad.Repository
	mirror *git.Mirror
	caller *caller
}

// own says whether it is the repository of the caller's task.
func (t *target) own() bool { return t.repo.ID == t.caller.task.RepositoryID }

// serveGit answers smart HTTP for one repository.
func (g *Gateway) serveGit(w http.ResponseWriter, r *http.Request, c *caller, rest string) error {
	name, action, ok := splitGitPath(rest)
	if !ok {
		return squad.NotFound("page", r.URL.Path)
	}
	repo, err := g.repository(r.Context(), c, name)
	if err != nil {
		return err
	}
	mirror, err := g.Mirror(repo)
	if err != nil {
		return err
	}
	t := &target{repo: repo, mirror: mirror, caller: c}
	if r.Method == http.MethodPost {
		select {
		case g.slots <- struct{}{}:
			defer func() { <-g.slots }()
		case <-r.Context().Done():
			return context.Cause(r.Context())
		}
	}
	service := r.URL.Query().Get("service")
	switch {
	case action == "info/refs" && r.Method == http.MethodGet && service == "git-upload-pack":
		return g.advertiseRead(w, r, t)
	case action == "git-upload-pack" && r.Method == http.MethodPost:
		return g.uploadPack(w, r, t)
	case action == "info/refs" && r.Method == http.MethodGet && service == "git-receive-pack":
		return g.advertisePush(w, r, t)
	case action == "git-receive-pack" && r.Method == http.MethodPost:
		return g.receivePack(w, r, t)
	case action == "info/refs":
		return squad.Errorf(squad.CodeForbidden, "only git's smart protocol is spoken here")
	}
	return squad.NotFound("page", r.URL.Path)
}

// splitGitPath takes "<name>[.git]/<action>" apart; the name may have slashes.
func splitGitPath(rest string) (name, action string, ok bool) {
	for _, action := range []string{"info/refs", "git-upload-pack", "git-receive-pack"} {
		if name, found := strings.CutSuffix(rest, "/"+action); found && name != "" {
			return strings.TrimSuffix(name, ".git"), action, true
		}
	}
	return "", "", false
}

// repository finds a repository of the caller's squad by identifier or name.
// Others do not exist for it.
func (g *Gateway) repository(ctx context.Context, c *caller, name string) (squad.Repository, error) {
	repo, err := g.cfg.Store.Repository(ctx, name)
	if squad.CodeOf(err) == squad.CodeNotFound {
		var list []squad.Repository
		if list, err = g.cfg.Store.Repositories(ctx, storeRepositories(c.squad.ID, name)); err == nil && len(list) == 1 {
			repo = list[0]
		}
	}
	if err != nil {
		return repo, err
	}
	if repo.ID == "" || repo.SquadID != c.squad.ID {
		return repo, squad.NotFound("repository", name)
	}
	return repo, nil
}

// Mirror returns the host's copy of a repository: of the local forge the original.
func (g *Gateway) Mirror(repo squad.Repository) (*git.Mirror, error) {
	src := git.Source{ID: repo.ID, URL: repo.URL}
	if repo.Forge == squad.ForgeLocal {
		src = git.Source{ID: repo.ID, Dir: filepath.Join(g.cfg.ReposDir, repo.ID+".git")}
	}
	return g.cfg.Mirrors.Open(src)
}

// fresh brings the mirror up to date. Where upstream cannot be reached an older
// copy serves: work goes on, and a push will tell.
func (g *Gateway) fresh(ctx context.Context, t *target) error {
	err := t.mirror.Fetch(ctx, nil)
	if err == nil {
		return nil
	}
	if t.mirror.Exists() && ctx.Err() == nil && git.KindOf(err) == git.KindNetwork {
		g.cfg.Log.WarnContext(ctx, "mirror is served stale", "repository_id", t.repo.ID, "error", err)
		return nil
	}
	return git.Explain(err, "fetch "+t.repo.Name)
}

var protocolForm = regexp.MustCompile(`^version=[0-2]$`)

func protocolEnv(r *http.Request) []string {
	if v := r.Header.Get("Git-Protocol"); protocolForm.MatchString(v) {
		return []string{"GIT_PROTOCOL=" + v}
	}
	return nil
}

// readConfig hides what is not the caller's: checkpoints and pushes of other tasks.
func readConfig(t *target) []string {
	list := []string{"uploadpack.allowFilter=true", "uploadpack.hideRefs=refs/squad"}
	if t.own() {
		for _, id := range t.caller.attempts {
			list = append(list, "uploadpack.hideRefs=!refs/squad/checkpoints/"+id)
		}
	}
	return list
}

func noCache(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
}

func (g *Gateway) advertiseRead(w http.ResponseWriter, r *http.Request, t *target) error {
	if err := g.fresh(r.Context(), t); err != nil {
		return err
	}
	res, err := g.runner.Run(r.Context(), git.Call{
		Dir: t.mirror.Dir(), Env: protocolEnv(r), Config: readConfig(t), MaxOutput: 64 << 20,
		Args: []string{"upload-pack", "--strict", "--stateless-rpc", "--advertise-refs", t.mirror.Dir()},
	})
	if err != nil {
		return git.Explain(err, "read "+t.repo.Name)
	}
	noCache(w, "application/x-git-upload-pack-advertisement")
	if len(protocolEnv(r)) == 0 || strings.HasSuffix(r.Header.Get("Git-Protocol"), "=0") {
		io.WriteString(w, git.Packet("# service=git-upload-pack\n")+git.Flush) //nolint:errcheck // the client is gone
	}
	w.Write(res.Stdout) //nolint:errcheck // the client is gone
	return nil
}

// maxNegotiation bounds what a client may say before it gets its pack.
const maxNegotiation = 64 << 20

func (g *Gateway) uploadPack(w http.ResponseWriter, r *http.Request, t *target) error {
	if !t.mirror.Exists() {
		return squad.Errorf(squad.CodeConflict, "ask for the refs first")
	}
	body, err := requestBody(r, maxNegotiation)
	if err != nil {
		return err
	}
	noCache(w, "application/x-git-upload-pack-result")
	_, err = g.runner.Run(r.Context(), git.Call{
		Dir: t.mirror.Dir(), Env: protocolEnv(r), Config: readConfig(t), Stdin: body, Stdout: &flusher{w: w}, Timeout: time.Hour,
		Args: []string{"upload-pack", "--strict", "--stateless-rpc", t.mirror.Dir()},
	})
	if err != nil && r.Context().Err() == nil {
		// The answer has begun; git's own error packet is in it.
		g.cfg.Log.WarnContext(r.Context(), "reading from mirror failed", "repository_id", t.repo.ID, "error", err, "doubted", t.mirror.Doubt(err))
	}
	return nil
}

// flusher sends each piece on at once: a pack is long in the making and git shows
// its progress.
type flusher struct{ w http.ResponseWriter }

func (f *flusher) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if flush, ok := f.w.(http.Flusher); ok {
		flush.Flush()
	}
	return n, err
}

// requestBody is the body, unpacked where the client packed it, cut off at limit.
func requestBody(r *http.Request, limit int64) (io.Reader, error) {
	var body io.Reader = r.Body
	switch r.Header.Get("Content-Encoding") {
	case "":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, squad.Wrap(squad.CodeInvalid, err, "the request is not gzip as it says")
		}
		body = unpacked
	default:
		return nil, squad.Errorf(squad.CodeInvalid, "the request's encoding is not known here")
	}
	return &limited{r: body, left: limit}, nil
}

// limited fails, rather than ends, when there is more than allowed.
type limited struct {
	r    io.Reader
	left int64
	over bool
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		var one [1]byte
		if n, err := l.r.Read(one[:]); n == 0 {
			return 0, err
		}
		l.over = true
		return 0, squad.Errorf(squad.CodeTooLarge, "the request is larger than allowed")
	}
	if int64(len(b)) > l.left {
		b = b[:l.left]
	}
	n, err := l.r.Read(b)
	l.left -= int64(n)
	return n, err
}
