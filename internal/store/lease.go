package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	squad "agentsquad"
)

var leases = newTable("lease", "leases", func(l *squad.Lease) []field {
	return []field{
		{name: "name", at: &l.Name},
		{name: "owner", at: &l.Owner},
		{name: "fence", at: &l.Fence},
		{name: "expires_at", at: moment{&l.ExpiresAt}},
	}
})

// LeaseFilter narrows a list of leases.
type LeaseFilter struct {
	Owner         string
	ExpiresBefore time.Time

	Limit int
	After string
}

// Lease reads one lease by its name, expired or not.
func (q *Query) Lease(ctx context.Context, name string) (squad.Lease, error) {
	return leases.get(ctx, q, "name", name)
}

// Leases lists leases by name.
func (q *Query) Leases(ctx context.Context, f LeaseFilter) ([]squad.Lease, error) {
	w := &where{}
	w.eq("owner", f.Owner)
	w.before("expires_at", f.ExpiresBefore)
	w.page("name", f.After, f.Limit, false)
	return leases.list(ctx, q, w)
}

// AcquireLease takes the lease if it is free, expired, or the owner's already.
// The fence grows whenever the lease is taken anew, not when its holder asks
// again. When somebody else holds it, that lease and false are returned. Time is
// the database's, so that nodes need not agree.
func (tx *Tx) AcquireLease(ctx context.Context, name, owner string, ttl time.Duration) (squad.Lease, bool, error) {
	at, err := tx.Query.Now(ctx)
	if err != nil {
		return squad.Lease{}, false, err
	}
	const take = `INSERT INTO leases (name, owner, fence, expires_at) VALUES ($1, $2, 1, $3)
		ON CONFLICT (name) DO UPDATE SET
			fence = CASE WHEN leases.owner = excluded.owner AND leases.expires_at > $4 THEN leases.fence ELSE leases.fence + 1 END,
			owner = excluded.owner, expires_at = excluded.expires_at
		WHERE leases.owner = excluded.owner OR leases.expires_at <= $5
		RETURNING name, owner, fence, expires_at`
	var l squad.Lease
	err = tx.db.QueryRowContext(ctx, take, clean(name), clean(owner), at.Add(ttl).UnixMicro(), at.UnixMicro(), at.UnixMicro()).
		Scan(places(leases.fields(&l))...)
	if errors.Is(err, sql.ErrNoRows) {
		l, err = tx.Lease(ctx, name)
		return l, false, err
	}
	if err != nil {
		return l, false, fmt.Errorf("acquire lease %s: %w", name, translate(err, "lease"))
	}
	return l, true, nil
}

// RenewLease gives the holder more time. It returns CodeStale when the lease
// was lost: taken by another, or released.
func (tx *Tx) RenewLease(ctx context.Context, l *squad.Lease, ttl time.Duration) error {
	at, err := tx.Query.Now(ctx)
	if err != nil {
		return err
	}
	until := at.Add(ttl)
	n, err := tx.exec(ctx, `UPDATE leases SET expires_at = $1 WHERE name = $2 AND owner = $3 AND fence = $4`,
		until.UnixMicro(), clean(l.Name), clean(l.Owner), l.Fence)
	if err != nil {
		return fmt.Errorf("renew lease %s: %w", l.Name, err)
	}
	if n == 0 {
		return squad.Errorf(squad.CodeStale, "lease %s is no longer held by %s (fence %d)", l.Name, l.Owner, l.Fence)
	}
	l.ExpiresAt = until
	return nil
}

// ReleaseLease gives the lease back. A lease that was lost already is no error.
// The row stays, expired, so that the fence never goes back.
func (tx *Tx) ReleaseLease(ctx context.Context, l squad.Lease) error {
	_, err := tx.exec(ctx, `UPDATE leases SET expires_at = 0 WHERE name = $1 AND owner = $2 AND fence = $3`,
		clean(l.Name), clean(l.Owner), l.Fence)
	if err != nil {
		return fmt.Errorf("release lease %s: %w", l.Name, err)
	}
	return nil
}

// CheckLease returns CodeStale unless this very lease is still held. Called in
// the transaction of a write, it keeps the writes of a former holder out.
func (tx *Tx) CheckLease(ctx context.Context, l squad.Lease) error {
	found, err := tx.Lease(ctx, l.Name)
	if err != nil {
		return err
	}
	at, err := tx.Query.Now(ctx)
	if err != nil {
		return err
	}
	if found.Owner != l.Owner || found.Fence != l.Fence || !found.ExpiresAt.After(at) {
		return squad.Errorf(squad.CodeStale, "lease %s is no longer held by %s (fence %d)", l.Name, l.Owner, l.Fence)
	}
	return nil
}
