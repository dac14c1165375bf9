package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// Conflicts says which active tasks of a repository clash with its default branch
// or with each other, as their newest stored commits stand now.
func (g *Gateway) Conflicts(ctx context.Context, repositoryID string) ([]squad.Conflict, error) {
	repo, err := g.cfg.Store.Repository(ctx, repositoryID)
	if err != nil {
		return nil, err
	}
	mirror, err := g.Mirror(repo)
	if err != nil || !mirror.Exists() {
		return nil, err
	}
	tasks, err := g.activeTasks(ctx, repo.ID)
	if err != nil {
		return nil, err
	}
	return g.conflicts(ctx, repo, mirror, tasks)
}

func (g *Gateway) activeTasks(ctx context.Context, repositoryID string) ([]squad.Task, error) {
	return g.cfg.Store.Tasks(ctx, store.TaskFilter{
		RepositoryID: repositoryID, Statuses: []squad.TaskStatus{squad.TaskInProgress, squad.TaskInReview}, Limit: 200,
	})
}

func (g *Gateway) conflicts(ctx context.Context, repo squad.Repository, m *git.Mirror, tasks []squad.Task) ([]squad.Conflict, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	heads, err := g.heads(ctx, m.Dir(), tasks)
	if err != nil || len(heads) == 0 {
		return nil, err
	}
	overlaps, err := g.radar.Scan(ctx, m.Dir(), "refs/heads/"+repo.DefaultBranch, heads)
	if git.KindOf(err) == git.KindNotFound {
		return nil, nil // nothing was committed to the default branch yet
	}
	if err != nil {
		return nil, fmt.Errorf("scan %s: %w", repo.Name, err)
	}
	var list []squad.Conflict
	for _, o := range overlaps {
		c := squad.Conflict{RepositoryID: repo.ID, TaskID: o.A, OtherTaskID: o.B}
		for _, f := range o.Files {
			c.Files = append(c.Files, f.Path)
		}
		list = append(list, c)
	}
	return list, nil
}

// heads finds the newest stored commit of each task: its branch or a checkpoint.
func (g *Gateway) heads(ctx context.Context, dir string, tasks []squad.Task) ([]git.Head, error) {
	byRef := map[string]string{}
	for _, t := range tasks {
		byRef["refs/heads/"+git.TaskBranch(t.Number)] = t.ID
		if t.ExecutionID != "" {
			byRef["refs/squad/checkpoints/"+t.ExecutionID] = t.ID
		}
	}
	// Of checkpoints of one second the last number is the newest.
	out, err := g.runner.Line(ctx, dir, "for-each-ref", "--sort=-version:refname", "--sort=-committerdate", "--format=%(objectname) %(refname)", "refs/heads/task-*", "refs/squad/checkpoints/")
	if err != nil {
		return nil, fmt.Errorf("read heads: %w", err)
	}
	found := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		sha, ref, _ := strings.Cut(line, " ")
		if rest, ok := strings.CutPrefix(ref, "refs/squad/checkpoints/"); ok {
			execution, _, _ := strings.Cut(rest, "/")
			ref = "refs/squad/checkpoints/" + execution
		}
		if id := byRef[ref]; id != "" && found[id] == "" {
			found[id] = sha
		}
	}
	var heads []git.Head
	for _, t := range tasks {
		if sha := found[t.ID]; sha != "" {
			heads = append(heads, git.Head{ID: t.ID, SHA: sha})
		}
	}
	return heads, nil
}

// radarState is what was last told about a repository.
type radarState struct {
	Conflicts []squad.Conflict `json:"conflicts"`
}

// ScanConflicts looks over all repositories with active tasks and tells what
// changed since the last scan, on whichever node it ran: conflict_detected and
// conflict_cleared. One node scans at a time.
func (g *Gateway) ScanConflicts(ctx context.Context) error {
	mine := false
	err := g.cfg.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		_, mine, err = tx.AcquireLease(ctx, "radar", g.node, time.Minute)
		return err
	})
	if err != nil || !mine {
		return err
	}
	repos, err := g.cfg.Store.Repositories(ctx, store.RepositoryFilter{})
	if err != nil {
		return err
	}
	for _, repo := range repos {
		if err := g.scanOne(ctx, repo); err != nil {
			return err
		}
	}
	return nil
}

// How often the radar asks upstream whether the base moved, and how long it waits for
// the answer.
const (
	followEvery = time.Minute
	followWait  = 10 * time.Second
)

// follow brings the mirror up to date for the radar: where nobody clones, nobody else
// would notice that the base moved.
func (g *Gateway) follow(ctx context.Context, repo squad.Repository, m *git.Mirror) {
	if last, ok := g.followed.Load(repo.ID); m.Local() || ok && time.Since(last.(time.Time)) < followEvery {
		return
	}
	g.followed.Store(repo.ID, time.Now())
	ctx, cancel := context.WithTimeout(ctx, followWait)
	defer cancel()
	if err := m.Fetch(ctx, nil); err != nil {
		g.cfg.Log.DebugContext(ctx, "the radar looks at an older copy", "repository_id", repo.ID, "error", err)
	}
}

// Moved is told that something was pushed to a repository upstream.
func (g *Gateway) Moved(repositoryID string) {
	g.followed.Delete(repositoryID)
	g.Look()
}

func (g *Gateway) scanOne(ctx context.Context, repo squad.Repository) error {
	mirror, err := g.Mirror(repo)
	if err != nil || !mirror.Exists() {
		return nil //nolint:nilerr // a repository that was never used has nothing to clash
	}
	tasks, err := g.activeTasks(ctx, repo.ID)
	if err != nil {
		return err
	}
	if len(tasks) > 0 {
		g.follow(ctx, repo, mirror)
	}
	now, err := g.conflicts(ctx, repo, mirror, tasks)
	if err != nil {
		return err
	}
	key := "radar." + repo.ID
	return g.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		var before radarState
		text, err := tx.Setting(ctx, key)
		if err == nil {
			err = json.Unmarshal([]byte(text), &before)
		}
		if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
			return fmt.Errorf("read radar: %w", err)
		}
		events := compare(repo, before.Conflicts, now)
		if len(events) == 0 {
			return nil
		}
		state, err := json.Marshal(radarState{Conflicts: now})
		if err != nil {
			return fmt.Errorf("write radar: %w", err)
		}
		if err := tx.SetSetting(ctx, key, string(state)); err != nil {
			return err
		}
		return tx.Append(ctx, events...)
	})
}

// compare makes the events that lead from one picture to the next.
func compare(repo squad.Repository, before, now []squad.Conflict) []squad.Event {
	name := func(c squad.Conflict) string { return c.TaskID + " " + c.OtherTaskID }
	full := func(c squad.Conflict) string {
		files := append([]string(nil), c.Files...)
		sort.Strings(files)
		return name(c) + "\x00" + strings.Join(files, "\x00")
	}
	was, is := map[string]bool{}, map[string]bool{}
	for _, c := range before {
		was[full(c)] = true
	}
	for _, c := range now {
		is[name(c)] = true
	}
	var events []squad.Event
	tell := func(kind squad.EventType, c squad.Conflict) {
		events = append(events, squad.Event{Type: kind, SquadID: repo.SquadID, TaskID: c.TaskID, RepositoryID: repo.ID, Payload: event.Payload(c)})
	}
	for _, c := range now {
		if !was[full(c)] {
			tell(squad.EventConflictDetected, c)
		}
	}
	for _, c := range before {
		if !is[name(c)] {
			tell(squad.EventConflictCleared, c)
		}
	}
	return events
}
