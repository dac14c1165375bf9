package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	squad "agentsquad"
)

// PoolKey names one warm pool.
type PoolKey struct {
	Provider string
	Template string
	// RepoURL is what the sandboxes are prepared for, "" for nothing.
	RepoURL string
	// Node is the machine whose sandboxes are meant; "" for a provider that all
	// nodes share.
	Node string
}

// ClaimPooledSandbox takes the oldest waiting sandbox of a pool for an owner, in
// one statement, so that two who ask at once never get the same. False says
// that the pool is empty.
func (tx *Tx) ClaimPooledSandbox(ctx context.Context, key PoolKey, owner squad.Sandbox) (squad.Sandbox, bool, error) {
	lock := ""
	if tx.dialect == Postgres {
		lock = " FOR UPDATE SKIP LOCKED"
	}
	claim := `UPDATE sandboxes SET pooled = $1, squad_id = $2, agent_id = $3, task_id = $4, execution_id = $5,
			repo_url = $6, epoch = $7, last_used_at = $8
		WHERE id = (SELECT id FROM sandboxes WHERE pooled = $9 AND status = 'running' AND e2b_id IS NOT NULL
			AND provider = $10 AND template = $11 AND repo_url = $12 AND node = $13 ORDER BY id LIMIT 1` + lock + `)
		RETURNING ` + sandboxes.columns
	var row squad.Sandbox
	err := tx.db.QueryRowContext(ctx, claim,
		false, valueOf(ref{&owner.SquadID}), valueOf(ref{&owner.AgentID}), valueOf(ref{&owner.TaskID}), valueOf(ref{&owner.ExecutionID}),
		clean(owner.RepoURL), owner.Epoch, tx.Now.UnixMicro(),
		true, clean(key.Provider), clean(key.Template), clean(key.RepoURL), clean(key.Node),
	).Scan(places(sandboxes.fields(&row))...)
	if errors.Is(err, sql.ErrNoRows) {
		return row, false, nil
	}
	if err != nil {
		return row, false, fmt.Errorf("claim pooled sandbox: %w", translate(err, "sandbox"))
	}
	return row, true, nil
}

// UseSandbox notes that a sandbox was used, and for how many commands, without
// an event: it happens too often to tell about.
func (tx *Tx) UseSandbox(ctx context.Context, id string, commands int64) error {
	const use = `UPDATE sandboxes SET last_used_at = $1, command_count = command_count + $2 WHERE id = $3`
	if _, err := tx.exec(ctx, use, tx.Now.UnixMicro(), commands, id); err != nil {
		return fmt.Errorf("note use of sandbox: %w", translate(err, "sandbox"))
	}
	return nil
}

// SampleSandbox notes what a sandbox uses, without an event: it is looked at
// twice a minute.
func (tx *Tx) SampleSandbox(ctx context.Context, id string, use squad.SandboxSample) error {
	const note = `UPDATE sandboxes SET used_cpu_pct = $1, used_memory_mb = $2, used_disk_mb = $3, used_at = $4 WHERE id = $5`
	if _, err := tx.exec(ctx, note, use.CPUPct, use.MemoryMB, use.DiskMB, valueOf(moment{&use.At}), id); err != nil {
		return fmt.Errorf("note use of sandbox: %w", translate(err, "sandbox"))
	}
	return nil
}

// SetMemberSandbox says in which sandbox a member works.
func (tx *Tx) SetMemberSandbox(ctx context.Context, memberID, sandboxID string) error {
	const set = `UPDATE squad_members SET sandbox_id = $1 WHERE id = $2`
	if _, err := tx.exec(ctx, set, valueOf(ref{&sandboxID}), memberID); err != nil {
		return fmt.Errorf("set sandbox of member: %w", translate(err, "member"))
	}
	return nil
}

// ClearMemberSandbox takes a sandbox that ended from the members that name it.
func (tx *Tx) ClearMemberSandbox(ctx context.Context, sandboxID string) error {
	if _, err := tx.exec(ctx, `UPDATE squad_members SET sandbox_id = NULL WHERE sandbox_id = $1`, sandboxID); err != nil {
		return fmt.Errorf("clear sandbox of member: %w", translate(err, "member"))
	}
	return nil
}

// PruneSandboxes deletes rows of sandboxes that ended before a time, and says
// how many.
func (tx *Tx) PruneSandboxes(ctx context.Context, before time.Time) (int64, error) {
	const prune = `DELETE FROM sandboxes WHERE status IN ('terminated', 'error') AND terminated_at < $1`
	n, err := tx.exec(ctx, prune, before.UnixMicro())
	if err != nil {
		return 0, fmt.Errorf("prune sandboxes: %w", translate(err, "sandbox"))
	}
	return n, nil
}
