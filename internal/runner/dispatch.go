package runner

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// heard are the events that may concern an execution.
var heard = []squad.EventType{
	squad.EventPRMerged, squad.EventPRClosed, squad.EventReviewReceived, squad.EventChecksChanged, squad.EventMessageSent,
	squad.EventExecutionCreated, squad.EventConflictDetected, squad.EventTaskUpdated, squad.EventTaskDeleted,
}

const cursorKey = "runner.cursor"

// dispatch reads the event log from a durable cursor and turns what happened into
// signals. Every node reads; a transaction that finds the cursor moved already
// leaves the event to whoever moved it, so each is handled exactly once.
func (r *Runner) dispatch(ctx context.Context) {
	for ctx.Err() == nil {
		after, err := r.cursor(ctx)
		if err == nil {
			err = r.follow(ctx, after)
		}
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.ErrorContext(ctx, "dispatch events", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

func (r *Runner) cursor(ctx context.Context) (int64, error) {
	text, err := r.cfg.Store.Setting(ctx, cursorKey)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

func (r *Runner) follow(ctx context.Context, after int64) error {
	for e, err := range r.cfg.Events.Subscribe(ctx, store.EventFilter{After: after, Types: heard}) {
		if err != nil {
			return err
		}
		switch e.Type {
		case squad.EventExecutionCreated, squad.EventTaskUpdated, squad.EventTaskDeleted: // one waits, or what one waited for is done
			r.ring()
			continue
		}
		if err := r.handle(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// handle acts on one event and moves the cursor, in one transaction.
func (r *Runner) handle(ctx context.Context, e squad.Event) error {
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, cursorKey); err != nil {
			return err
		}
		text, err := tx.Setting(ctx, cursorKey)
		if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
			return err
		}
		if at, err := strconv.ParseInt(text, 10, 64); err == nil && at >= e.Seq {
			return nil // another node was here
		}
		if err := r.act(ctx, tx, e); err != nil {
			return err
		}
		return tx.SetSetting(ctx, cursorKey, strconv.FormatInt(e.Seq, 10))
	})
}

func (r *Runner) act(ctx context.Context, tx *store.Tx, e squad.Event) error {
	switch e.Type {
	case squad.EventPRMerged:
		r.cfg.Gateway.Look() // the base moved under everybody else
		r.move()
		return r.wakeTask(ctx, tx, e.TaskID, wake{Kind: "merged"})
	case squad.EventPRClosed:
		return r.wakeTask(ctx, tx, e.TaskID, wake{Kind: "closed", Reason: "the pull request was closed"})
	case squad.EventReviewReceived:
		var c squad.ReviewComment
		if json.Unmarshal(e.Payload, &c) != nil || !asksForWork(c) {
			return nil
		}
		return r.wakeTask(ctx, tx, e.TaskID, wake{Kind: "turn", Reason: "review"})
	case squad.EventChecksChanged:
		var p squad.PullRequest
		if json.Unmarshal(e.Payload, &p) != nil || p.Checks != "failure" {
			return nil
		}
		return r.wakeTask(ctx, tx, e.TaskID, wake{Kind: "turn", Reason: "checks"})
	case squad.EventConflictDetected:
		var c squad.Conflict
		if json.Unmarshal(e.Payload, &c) != nil || c.OtherTaskID != "" {
			return nil // two tasks clash: whoever is merged second gets it
		}
		return r.wakeTask(ctx, tx, c.TaskID, wake{Kind: "rebase", Reason: "conflict with the base"})
	case squad.EventMessageSent:
		var m squad.Message
		if json.Unmarshal(e.Payload, &m) != nil || !strings.HasPrefix(m.To, "member:") {
			return nil
		}
		r.deliverMessage(m)
		return r.wakeTask(ctx, tx, m.TaskID, wake{Kind: "turn", Reason: "message"})
	}
	return nil
}

// asksForWork says whether a remark is a reason for another turn. On the local
// forge single remarks are collected until a verdict is given or the agent is told
// to go on; remarks from a remote forge come one by one.
func asksForWork(c squad.ReviewComment) bool {
	return c.Verdict == "request_changes" || c.RemoteID != "" && c.Verdict != "approve" && c.Body != ""
}

// wakeTask signals the execution that works on a task. Without one, a merge still
// ends the task.
func (r *Runner) wakeTask(ctx context.Context, tx *store.Tx, taskID string, w wake) error {
	if taskID == "" {
		return nil
	}
	live, err := tx.Executions(ctx, store.ExecutionFilter{TaskID: taskID, Live: true})
	if err != nil {
		return err
	}
	for _, e := range live {
		if e.Status == squad.ExecutionQueued && e.StartedAt.IsZero() {
			continue // has no flow yet; it reads everything when it begins
		}
		if err := r.cfg.Flows.Signal(ctx, tx, e.ID, signalWake, w); err != nil && squad.CodeOf(err) != squad.CodeNotFound {
			return err
		}
	}
	if len(live) > 0 || w.Kind != "merged" {
		return nil
	}
	t, err := tx.Task(ctx, taskID)
	if err != nil || t.Status == squad.TaskDone {
		return ignoreNotFound(err)
	}
	_, err = r.cfg.Life.Move(ctx, tx, taskID, squad.TaskDone, squad.FlagNone, "")
	if squad.CodeOf(err) == squad.CodeConflict {
		return nil // a person put it where a merge does not move it from
	}
	return err
}

// deliverMessage hands a message to a turn that runs on this node. It stays unread
// in the database until a turn takes it.
func (r *Runner) deliverMessage(m squad.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, live := range r.turns {
		if live.turn.Task.ID == m.TaskID && "member:"+live.turn.Member.ID == m.To {
			select {
			case live.inbox <- m:
			default: // full: the next turn reads it
			}
		}
	}
}
