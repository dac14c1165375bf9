package runner

import (
	"context"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// park notes that the execution waits, and for whom. Its place in the queue is free
// for another.
func (r *Runner) park(ctx context.Context, id string, question bool) error {
	state := squad.Liveness{State: "review", Detail: "waiting for a review or a merge"}
	if question {
		state = squad.Liveness{State: "person", Detail: "waiting for an answer"}
	}
	err := r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, id)
		if err != nil || e.Status == squad.ExecutionWaiting {
			return err
		}
		_, err = r.cfg.Life.MoveExecution(ctx, tx, id, squad.ExecutionWaiting, func(e *squad.Execution) {
			e.Step, e.Liveness = squad.StepReview, state
			e.Liveness.Since = tx.Now
		})
		return err
	})
	r.ring()
	return err
}

// requeue asks for a place again.
func (r *Runner) requeue(ctx context.Context, id string) error {
	err := r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, id)
		if err != nil || e.Status != squad.ExecutionWaiting {
			return err // an earlier try of this step was promoted already
		}
		_, err = r.cfg.Life.MoveExecution(ctx, tx, id, squad.ExecutionQueued, func(e *squad.Execution) { e.Liveness = squad.Liveness{} })
		return err
	})
	r.ring()
	return err
}

func reviewedKey(executionID string) string { return "reviewed:" + executionID }

// gather takes everything that was said since the last turn: messages to the
// member, remarks on the pull request, failed checks. What it returns is marked as
// read in the same transaction, so it is told once.
func (r *Runner) gather(ctx context.Context, id string) (string, error) {
	var prompt string
	err := r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, id)
		if err != nil {
			return err
		}
		messages, names, err := r.unread(ctx, tx, e)
		if err != nil {
			return err
		}
		comments, checks, err := r.unseen(ctx, tx, e)
		if err != nil {
			return err
		}
		prompt = talk(messages, comments, names) + checks
		if prompt == "" || e.Status != squad.ExecutionWaiting {
			return nil
		}
		_, err = r.cfg.Life.Move(ctx, tx, e.TaskID, squad.TaskInProgress, squad.FlagNone, "")
		return err
	})
	return prompt, err
}

func (r *Runner) unread(ctx context.Context, tx *store.Tx, e squad.Execution) ([]squad.Message, map[string]string, error) {
	list, err := tx.Messages(ctx, store.MessageFilter{TaskID: e.TaskID, To: "member:" + e.MemberID, Unread: true, Limit: 100})
	if err != nil {
		return nil, nil, err
	}
	names := map[string]string{}
	for i := range list {
		list[i].ReadAt = tx.Now
		if err := tx.UpdateMessage(ctx, &list[i]); err != nil {
			return nil, nil, err
		}
		names[list[i].From] = r.nameOf(ctx, tx.Query, list[i].From)
	}
	return list, names, nil
}

// nameOf is how somebody is shown to an agent.
func (r *Runner) nameOf(ctx context.Context, q *store.Query, who string) string {
	kind, id, _ := strings.Cut(who, ":")
	switch kind {
	case "member":
		if m, err := q.Member(ctx, id); err == nil {
			return m.Name + ", " + m.Role
		}
	case "user":
		if u, err := q.User(ctx, id); err == nil {
			return u.Name
		}
	}
	return who
}

// unseen are the remarks on the pull request since the last look, and the checks
// where they failed on the newest commit.
func (r *Runner) unseen(ctx context.Context, tx *store.Tx, e squad.Execution) ([]squad.ReviewComment, string, error) {
	pulls, err := tx.PullRequests(ctx, store.PullRequestFilter{TaskID: e.TaskID, States: []squad.PullState{squad.PullOpen}, Newest: true, Limit: 1})
	if err != nil || len(pulls) == 0 {
		return nil, "", err
	}
	pull := pulls[0]
	seen, err := tx.Setting(ctx, reviewedKey(e.ID))
	if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
		return nil, "", err
	}
	last, checked, _ := strings.Cut(seen, " ")
	comments, err := tx.ReviewComments(ctx, store.ReviewCommentFilter{PullID: pull.ID, After: last, Limit: 200})
	if err != nil {
		return nil, "", err
	}
	var news []squad.ReviewComment
	for _, c := range comments {
		last = c.ID
		if c.Body != "" && c.Verdict != "approve" {
			news = append(news, c)
		}
	}
	text := ""
	if pull.Checks == "failure" && checked != pull.HeadSHA {
		checked = pull.HeadSHA
		text = "# Checks failed\n\nA check of your last commit failed. Find out why and mend it: " + pull.URL + "\n"
	}
	return news, text, tx.SetSetting(ctx, reviewedKey(e.ID), strings.TrimSpace(last+" "+checked))
}

// send writes a message and its event.
func (r *Runner) send(ctx context.Context, tx *store.Tx, m squad.Message) error {
	if err := tx.CreateMessage(ctx, &m); err != nil {
		return err
	}
	return tx.Append(ctx, squad.Event{
		Type: squad.EventMessageSent, SquadID: m.SquadID, TaskID: m.TaskID, ExecutionID: m.ExecutionID,
		MemberID: memberOf(m), Payload: event.Payload(m),
	})
}

// memberOf is the member whose stream a message belongs to.
func memberOf(m squad.Message) string {
	for _, who := range []string{m.To, m.From} {
		if id, ok := strings.CutPrefix(who, "member:"); ok {
			return id
		}
	}
	return ""
}

func memberEvent(m squad.Member) squad.Event {
	return squad.Event{Type: squad.EventMemberChanged, SquadID: m.SquadID, MemberID: m.ID, TaskID: m.CurrentTaskID, SandboxID: m.SandboxID, Payload: event.Payload(m)}
}
