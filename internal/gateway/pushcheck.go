package gateway

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/git"
)

// checkRefs applies the rules that need no objects: which refs, and no deletes.
func (p *push) checkRefs(ctx context.Context) (map[string]string, error) {
	refusals := map[string]string{}
	own := "refs/heads/" + p.t.caller.branch()
	hidden := "refs/squad/checkpoints/" + p.t.checkpoints()
	seen := map[string]bool{}
	for _, u := range p.req.updates {
		switch {
		case !git.ValidRef(u.ref):
			return nil, squad.Errorf(squad.CodeInvalid, "the push names a ref that cannot be")
		case seen[u.ref]:
			return nil, squad.Errorf(squad.CodeInvalid, "the push names %s twice", u.ref)
		case u.ref != own && (!strings.HasPrefix(u.ref, hidden) || p.t.caller.execution.ID == ""):
			refusals[u.ref] = fmt.Sprintf("this sandbox may push only %s", own)
		case git.IsZero(u.sha):
			refusals[u.ref] = "refs may not be deleted"
		case u.ref == own && p.t.caller.working() != nil:
			refusals[u.ref] = fmt.Sprintf("the execution of this sandbox is over (%s)", p.t.caller.execution.Status)
		default:
			now, err := p.g.refValue(ctx, p.t.mirror.Dir(), u.ref)
			if err != nil {
				return nil, err
			}
			if now != u.old {
				refusals[u.ref] = "the branch has moved; fetch first"
			}
		}
		seen[u.ref] = true
	}
	return refusals, nil
}

// refValue is where a ref is, the zero name where it is not.
func (g *Gateway) refValue(ctx context.Context, dir, ref string) (string, error) {
	res, err := g.runner.Run(ctx, git.Call{Dir: dir, Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", ref}, Accept: []int{1}})
	if err != nil {
		return "", fmt.Errorf("read %s: %w", ref, err)
	}
	if res.ExitCode == 1 {
		return git.ZeroSHA, nil
	}
	return strings.TrimSpace(string(res.Stdout)), nil
}

// quarantined runs git with the quarantine in sight.
func (p *push) quarantined(ctx context.Context, args ...string) (string, error) {
	res, err := p.g.runner.Run(ctx, git.Call{Dir: p.t.mirror.Dir(), Env: p.scratch.Env(), Args: args, MaxOutput: 64 << 20})
	return strings.TrimRight(string(res.Stdout), "\n"), err
}

// checkContent applies the rules about what the commits hold.
func (p *push) checkContent(ctx context.Context) (map[string]string, error) {
	refusals := map[string]string{}
	for _, u := range p.req.updates {
		kind, err := p.quarantined(ctx, "cat-file", "-t", u.sha)
		if err != nil || kind != "commit" {
			refusals[u.ref] = "it is not a commit"
			continue
		}
		if why, err := p.checkSizes(ctx, u); err != nil || why != "" {
			if err != nil {
				return nil, err
			}
			refusals[u.ref] = why
			continue
		}
		if strings.HasPrefix(u.ref, "refs/heads/") {
			why, err := p.checkBranch(ctx, u)
			if err != nil {
				return nil, err
			}
			if why != "" {
				refusals[u.ref] = why
			}
		}
	}
	return refusals, nil
}

// checkSizes walks all new objects of an update: each must be there, and no file
// larger than allowed. A small pack can hold a huge file, so the pack's own size
// says little.
func (p *push) checkSizes(ctx context.Context, u update) (string, error) {
	list, err := p.quarantined(ctx, "rev-list", "--objects", "--no-object-names", u.sha, "--not", "--all", "--")
	if err != nil {
		return "objects are missing", nil //nolint:nilerr // that is what the failure says
	}
	if list == "" {
		return "", nil
	}
	res, err := p.g.runner.Run(ctx, git.Call{
		Dir: p.t.mirror.Dir(), Env: p.scratch.Env(), Stdin: strings.NewReader(list + "\n"), MaxOutput: 128 << 20,
		Args: []string{"cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)"},
	})
	if err != nil {
		return "", fmt.Errorf("read sizes: %w", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(res.Stdout)), "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		size, sha, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return "objects are missing", nil //nolint:nilerr // "<name> missing" stands in place of a size
		}
		if kind == "blob" && n > p.g.cfg.MaxBlobBytes {
			return fmt.Sprintf("%s has %d MiB, more than the %d MiB that a file may have", p.pathOf(ctx, u.sha, sha), n>>20, p.g.cfg.MaxBlobBytes>>20), nil
		}
	}
	return "", nil
}

// pathOf names a blob for people.
func (p *push) pathOf(ctx context.Context, commit, blob string) string {
	list, err := p.quarantined(ctx, "rev-list", "--objects", commit, "--not", "--all", "--")
	if err == nil {
		for _, line := range strings.Split(list, "\n") {
			if name, found := strings.CutPrefix(line, blob+" "); found {
				return name
			}
		}
	}
	return "object " + blob[:10]
}

const maxNewCommits = 2000

// checkBranch applies the rules of the task's branch: it replaces no commit that
// the task did not make, its messages are conventional, it holds no secret. What
// counts as new is what no branch or tag has, checkpoints notwithstanding.
func (p *push) checkBranch(ctx context.Context, u update) (string, error) {
	if why, err := p.checkRewrite(ctx, u); err != nil || why != "" {
		return why, err
	}
	out, err := p.quarantined(ctx, "log", "-z", "--reverse", "--topo-order", fmt.Sprintf("--max-count=%d", maxNewCommits+1),
		"--format=%H%x01%P%x01%an%x01%at%x01%B", u.sha, "--not", "--branches", "--tags", "--")
	if err != nil {
		return "", fmt.Errorf("read new commits: %w", err)
	}
	for _, text := range strings.Split(out, "\x00") {
		parts := strings.SplitN(text, "\x01", 5)
		if len(parts) != 5 {
			continue
		}
		subject, _, _ := strings.Cut(parts[4], "\n")
		seconds, _ := strconv.ParseInt(parts[3], 10, 64)
		p.commits = append(p.commits, squad.Commit{SHA: parts[0], Subject: subject, Author: parts[2], At: time.Unix(seconds, 0).UTC()})
		if len(strings.Fields(parts[1])) > 1 {
			continue // a merge's message is git's
		}
		if _, err := git.ParseConventional(parts[4]); err != nil {
			return fmt.Sprintf("commit %.10s: %s", parts[0], message(err)), nil
		}
	}
	if len(p.commits) > maxNewCommits {
		return fmt.Sprintf("more than %d new commits in one push", maxNewCommits), nil
	}
	return p.checkSecrets(ctx, u)
}

// checkRewrite looks at the commits that the branch would lose.
func (p *push) checkRewrite(ctx context.Context, u update) (string, error) {
	if git.IsZero(u.old) {
		return "", nil
	}
	lost, err := p.quarantined(ctx, "rev-list", u.old, "--not", u.sha, "--exclude="+p.t.caller.branch(), "--branches", "--tags", "--")
	if err != nil {
		return "", fmt.Errorf("read replaced commits: %w", err)
	}
	if lost == "" {
		return "", nil
	}
	m, err := readMade(ctx, p.g.cfg.Store.Query, p.t.caller.task.ID)
	if err != nil {
		return "", err
	}
	for _, sha := range strings.Fields(lost) {
		if !slices.Contains(m.Commits, sha) {
			return fmt.Sprintf("it would remove commit %.10s, which this task did not make; fetch and rebase on it", sha), nil
		}
	}
	return "", nil
}
