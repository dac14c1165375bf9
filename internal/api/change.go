package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"agentsquad"
	"agentsquad/internal/store"
)

// change runs f in one transaction together with the audit entry of the action.
// f returns what was changed.
func (s *Server) change(ctx context.Context, action string, f func(tx *store.Tx) (subject string, err error)) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		subject, err := f(tx)
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, action, subject, nil)
	})
}

// audit writes who did what. Detail must hold no secret.
func (s *Server) audit(ctx context.Context, tx *store.Tx, action, subject string, detail any) error {
	i := infoOf(ctx)
	entry := squad.AuditEntry{Actor: i.actor.String(), Action: action, Subject: subject, Remote: i.remote}
	if detail != nil {
		raw, err := json.Marshal(detail)
		if err != nil {
			return fmt.Errorf("write audit detail: %w", err)
		}
		entry.Detail = raw
	}
	return tx.CreateAuditEntry(ctx, &entry)
}

// etag names a version of a thing: its content, shortened.
func etag(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // wire types always marshal; a changing tag only costs a refetch
		return `"unknown"`
	}
	sum := sha256.Sum256(raw)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// taskETag is the task's version, which counts its changes.
func taskETag(t squad.Task) string { return fmt.Sprintf(`"%d"`, t.Version) }

// unchanged refuses an edit that is based on another version than the current.
func unchanged(ifMatch, current string) error {
	if ifMatch == "" || ifMatch == "*" {
		return nil
	}
	for tag := range strings.SplitSeq(ifMatch, ",") {
		if strings.TrimSpace(tag) == current {
			return nil
		}
	}
	return squad.Errorf(squad.CodeStale, "it was changed since you read it; read it again and repeat the edit")
}

// answer wraps a thing with its tag.
func answer[T any](v T) *One[T] { return &One[T]{ETag: etag(v), Body: v} }

// set copies a given value of a change into its place.
func set[T any](to *T, given *T) {
	if given != nil {
		*to = *given
	}
}

// note writes the audit entry of a verb that another room does, before it is
// done: an attempt that leaves no trace would be worse than a trace too many.
func (s *Server) note(ctx context.Context, action, subject string) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error { return s.audit(ctx, tx, action, subject, nil) })
}
