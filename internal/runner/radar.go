package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// lookForConflicts asks the radar to look at a repository soon.
func (r *Runner) lookForConflicts(repositoryID string) {
	select {
	case r.radarBell <- repositoryID:
	default: // it looks at everything from time to time anyway
	}
}

// watchConflicts looks at a repository shortly after a branch in it moved.
func (r *Runner) watchConflicts(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		var ids []string
		select {
		case <-ctx.Done():
			return
		case id := <-r.radarBell:
			ids = append(ids, id)
			for more := true; more; { // many pushes at once are one look
				select {
				case id := <-r.radarBell:
					ids = append(ids, id)
				default:
					more = false
				}
			}
		case <-tick.C:
			ids = r.activeRepositories(ctx)
		}
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if _, err := r.scan(ctx, id); err != nil && ctx.Err() == nil {
				r.cfg.Log.WarnContext(ctx, "look for conflicts", "repository_id", id, "error", err)
			}
		}
	}
}

func (r *Runner) activeRepositories(ctx context.Context) []string {
	tasks, err := r.activeTasks(ctx, "")
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "list active tasks", "error", err)
	}
	var ids []string
	for _, t := range tasks {
		if t.RepositoryID != "" {
			ids = append(ids, t.RepositoryID)
		}
	}
	return ids
}

func (r *Runner) activeTasks(ctx context.Context, repositoryID string) ([]squad.Task, error) {
	return r.cfg.Store.Tasks(ctx, store.TaskFilter{RepositoryID: repositoryID, Statuses: []squad.TaskStatus{squad.TaskInProgress, squad.TaskInReview}})
}

// Conflicts are the overlaps between the active tasks of a repository and with the
// branch they go into.
func (r *Runner) Conflicts(ctx context.Context, repositoryID string) ([]squad.Conflict, error) {
	return r.scan(ctx, repositoryID)
}

// scan merges the heads of active tasks in memory, and tells what changed since the
// last look.
func (r *Runner) scan(ctx context.Context, repositoryID string) ([]squad.Conflict, error) {
	repo, err := r.cfg.Store.Repository(ctx, repositoryID)
	if err != nil {
		return nil, err
	}
	heads, err := r.heads(ctx, repo)
	if err != nil {
		return nil, err
	}
	var found []squad.Conflict
	for base, list := range heads {
		dir, err := r.cfg.Gateway.Dir(ctx, repo)
		if err != nil {
			return nil, err
		}
		overlaps, err := r.radar.Scan(ctx, dir, base, list)
		if err != nil {
			return nil, fmt.Errorf("merge heads of %s: %w", repo.Name, err)
		}
		for _, o := range overlaps {
			found = append(found, squad.Conflict{RepositoryID: repositoryID, TaskID: o.A, OtherTaskID: o.B, Files: paths(o.Files)})
		}
	}
	slices.SortFunc(found, func(a, b squad.Conflict) int { return strings.Compare(conflictKey(a), conflictKey(b)) })
	return found, r.announce(ctx, repo, found)
}

// heads are the newest commits outside of sandboxes of the active tasks, by the
// branch they go into.
func (r *Runner) heads(ctx context.Context, repo squad.Repository) (map[string][]git.Head, error) {
	tasks, err := r.activeTasks(ctx, repo.ID)
	if err != nil {
		return nil, err
	}
	heads := map[string][]git.Head{}
	for _, t := range tasks {
		if t.ExecutionID == "" {
			continue
		}
		e, err := r.cfg.Store.Execution(ctx, t.ExecutionID)
		if err != nil {
			return nil, err
		}
		if e.HeadSHA == "" {
			continue
		}
		base := "refs/heads/" + orElse(t.BaseBranch, repo.DefaultBranch)
		heads[base] = append(heads[base], git.Head{ID: t.ID, SHA: e.HeadSHA})
	}
	return heads, nil
}

func paths(files []git.FileConflict) []string {
	out := make([]string, 0, len(files))
	for _, f := range files {
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func conflictKey(c squad.Conflict) string { return c.TaskID + "\x00" + c.OtherTaskID }

// announce tells what is new and what is over since the last look, which is kept in
// the database so that a restart does not tell it again.
func (r *Runner) announce(ctx context.Context, repo squad.Repository, found []squad.Conflict) error {
	key := "radar:" + repo.ID
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, key); err != nil {
			return err
		}
		text, err := tx.Setting(ctx, key)
		if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
			return err
		}
		var known []squad.Conflict
		if text != "" {
			if err := json.Unmarshal([]byte(text), &known); err != nil {
				return fmt.Errorf("read known conflicts: %w", err)
			}
		}
		var events []squad.Event
		for _, c := range missing(found, known) {
			events = append(events, conflictEvent(squad.EventConflictDetected, repo, c))
		}
		for _, c := range missing(known, found) {
			events = append(events, conflictEvent(squad.EventConflictCleared, repo, c))
		}
		if len(events) == 0 {
			return nil
		}
		now, err := json.Marshal(found)
		if err != nil {
			return fmt.Errorf("encode conflicts: %w", err)
		}
		if err := tx.SetSetting(ctx, key, string(now)); err != nil {
			return err
		}
		return tx.Append(ctx, events...)
	})
}

// missing are the conflicts of a that b does not have in the same files.
func missing(a, b []squad.Conflict) []squad.Conflict {
	var out []squad.Conflict
	for _, c := range a {
		if !slices.ContainsFunc(b, func(o squad.Conflict) bool { return conflictKey(o) == conflictKey(c) && slices.Equal(o.Files, c.Files) }) {
			out = append(out, c)
		}
	}
	return out
}

func conflictEvent(t squad.EventType, repo squad.Repository, c squad.Conflict) squad.Event {
	return squad.Event{Type: t, SquadID: repo.SquadID, TaskID: c.TaskID, RepositoryID: repo.ID, Payload: event.Payload(c)}
}
