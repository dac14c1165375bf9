package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// change reads a row under its lock, changes it, and writes it with its event.
func (s *Service) change(ctx context.Context, id string, event squad.EventType, f func(*store.Tx, *squad.Sandbox) error) (squad.Sandbox, error) {
	var row squad.Sandbox
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if row, err = tx.Sandbox(ctx, id); err != nil {
			return err
		}
		if err := f(tx, &row); err != nil {
			return err
		}
		if err := tx.UpdateSandbox(ctx, &row); err != nil {
			return err
		}
		return s.announce(ctx, tx, event, row)
	})
	return row, err
}

func (s *Service) announce(ctx context.Context, tx *store.Tx, event squad.EventType, row squad.Sandbox) error {
	payload, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return tx.Append(ctx, squad.Event{
		Type: event, SquadID: row.SquadID, TaskID: row.TaskID, ExecutionID: row.ExecutionID,
		MemberID: row.AgentID, SandboxID: row.ID, Payload: payload,
	})
}

// end writes down that a sandbox is over; one that is over already stays as it
// was. cause is empty for an end that was wished.
func (s *Service) end(ctx context.Context, tx *store.Tx, id, cause string) (squad.Sandbox, bool, error) {
	row, err := tx.Sandbox(ctx, id)
	if err != nil || row.Status.Final() {
		return row, false, err
	}
	if err := s.charge(ctx, tx, &row); err != nil {
		return row, false, err
	}
	row.Status, row.TerminatedAt, row.Pooled = squad.SandboxTerminated, tx.Now, false
	if cause != "" {
		row.Status, row.Error = squad.SandboxError, cause
	}
	if err := tx.UpdateSandbox(ctx, &row); err != nil {
		return row, false, err
	}
	if err := tx.ClearMemberSandbox(ctx, id); err != nil {
		return row, false, err
	}
	tx.AfterCommit(func() { s.forget(id) })
	return row, true, s.announce(ctx, tx, squad.EventSandboxTerminated, row)
}

// fail marks a sandbox as lost.
func (s *Service) fail(ctx context.Context, id, cause string) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		_, _, err := s.end(ctx, tx, id, cause)
		return err
	})
}

// audit notes who did what.
func (s *Service) audit(ctx context.Context, tx *store.Tx, actor squad.Actor, action, subject string, detail map[string]any) error {
	entry := squad.AuditEntry{Actor: actor.String(), Action: action, Subject: subject, Remote: actor.Remote}
	if detail != nil {
		raw, err := json.Marshal(detail)
		if err != nil {
			return err
		}
		entry.Detail = raw
	}
	return tx.CreateAuditEntry(ctx, &entry)
}

// RecordGit writes a git operation that was run in a sandbox, new or changed,
// with its event.
func (s *Service) RecordGit(ctx context.Context, row squad.Sandbox, op *squad.GitOperation, progress squad.GitProgress) error {
	op.SandboxID = row.ID
	op.OutputTail = redact(op.OutputTail)
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		write := tx.UpdateGitOperation
		if op.ID == "" {
			write = tx.CreateGitOperation
		}
		if err := write(ctx, op); err != nil {
			return err
		}
		progress.GitOperation = *op
		payload, err := json.Marshal(progress)
		if err != nil {
			return err
		}
		return tx.Append(ctx, squad.Event{
			Type: squad.EventGitOperation, SquadID: row.SquadID, TaskID: row.TaskID, ExecutionID: op.ExecutionID,
			MemberID: row.AgentID, SandboxID: row.ID, Payload: payload,
		})
	})
}

// secretish finds what looks like a credential in text that people will read.
var secretish = regexp.MustCompile(`(?i)(://)[^/\s:@]+:[^/\s@]+@|((?:api[_-]?key|token|secret|password|authorization|bearer)["']?\s*[=: ]\s*["']?)[^\s"']{6,}`)

func redact(text string) string { return secretish.ReplaceAllString(text, "${1}${2}***") }

func userMessage(err error) string {
	var e *squad.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "internal error"
}
