package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/store"
)

// buildWebhooks makes the receiver of what forges tell.
func (a *App) buildWebhooks(context.Context) error {
	hooks := a.rooms.forges.Webhooks()
	hooks.OnIssue = a.taskOfIssue
	hooks.OnPush = func(_ context.Context, repo squad.Repository, _ string) { a.rooms.work.gateway.Moved(repo.ID) }
	a.rooms.ports.Webhooks = hooks
	return nil
}

// taskOfIssue puts an issue that was labelled for the squad on the board, once.
// What the issue says comes from outside: the task waits in the backlog for a
// person to look at it.
func (a *App) taskOfIssue(ctx context.Context, repo squad.Repository, h forge.Hook) error {
	label := fmt.Sprintf("issue-%d", h.Number)
	return a.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, "issues/"+repo.ID); err != nil {
			return err
		}
		tasks, err := tx.Tasks(ctx, store.TaskFilter{RepositoryID: repo.ID})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(tasks, func(t squad.Task) bool { return slices.Contains(t.Labels, label) }) {
			return nil
		}
		title := []rune(cmp.Or(h.Title, fmt.Sprintf("Issue %d", h.Number)))
		t := squad.Task{
			SquadID: repo.SquadID, RepositoryID: repo.ID, Title: string(title[:min(len(title), 300)]), Description: h.Body,
			Status: squad.TaskBacklog, Priority: 1, Labels: []string{label}, CreatedBy: "system",
		}
		if err := a.life.Create(ctx, tx, &t); err != nil {
			return err
		}
		return tx.CreateAuditEntry(ctx, &squad.AuditEntry{Actor: "system", Action: "task.create", Subject: t.ID})
	})
}
