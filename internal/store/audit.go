package store

import (
	"context"
	"time"

	squad "agentsquad"
)

var auditEntries = newTable("audit entry", "audit_log", func(a *squad.AuditEntry) []field {
	return []field{
		{name: "id", at: &a.ID},
		{name: "at", at: moment{&a.At}},
		{name: "actor", at: &a.Actor},
		{name: "action", at: &a.Action},
		{name: "subject", at: &a.Subject},
		{name: "detail", at: raw{&a.Detail}},
		{name: "remote", at: &a.Remote},
	}
})

// AuditEntryFilter narrows the audit log.
type AuditEntryFilter struct {
	Actor   string
	Action  string
	Subject string
	Since   time.Time

	Limit  int
	After  string
	Newest bool
}

// AuditEntry reads one entry of the audit log.
func (q *Query) AuditEntry(ctx context.Context, id string) (squad.AuditEntry, error) {
	return auditEntries.get(ctx, q, "id", id)
}

// AuditEntries lists the audit log.
func (q *Query) AuditEntries(ctx context.Context, f AuditEntryFilter) ([]squad.AuditEntry, error) {
	w := &where{}
	w.eq("actor", f.Actor)
	w.eq("action", f.Action)
	w.eq("subject", f.Subject)
	w.since("at", f.Since)
	w.page("id", f.After, f.Limit, f.Newest)
	return auditEntries.list(ctx, q, w)
}

// CreateAuditEntry writes who changed what. Entries are never changed.
func (tx *Tx) CreateAuditEntry(ctx context.Context, a *squad.AuditEntry) error {
	tx.stamp(&a.ID, &a.At)
	return auditEntries.create(ctx, tx, a)
}
