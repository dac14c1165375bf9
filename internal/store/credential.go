package store

import (
	"context"
	"fmt"

	squad "agentsquad"
)

// The sealed secret is not among the fields: it is read and written only by
// SealedCredential and SetSealedCredential.
var credentials = newTable("credential", "credentials", func(c *squad.Credential) []field {
	return []field{
		{name: "id", at: &c.ID},
		{name: "squad_id", at: ref{&c.SquadID}, fixed: true},
		{name: "name", at: &c.Name},
		{name: "kind", at: wordOf(&c.Kind)},
		{name: "provider", at: &c.Provider},
		{name: "hint", at: &c.Hint},
		{name: "created_at", at: moment{&c.CreatedAt}, fixed: true},
		{name: "rotated_at", at: moment{&c.RotatedAt}},
	}
})

// CredentialFilter narrows a list of credentials.
type CredentialFilter struct {
	SquadID string
	// Installation asks for those that belong to no squad.
	Installation bool
	Name         string
	Provider     string
	Kinds        []squad.CredentialKind

	Limit  int
	After  string
	Newest bool
}

// Credential reads one credential, without its secret.
func (q *Query) Credential(ctx context.Context, id string) (squad.Credential, error) {
	return credentials.get(ctx, q, "id", id)
}

// Credentials lists credentials, without their secrets.
func (q *Query) Credentials(ctx context.Context, f CredentialFilter) ([]squad.Credential, error) {
	w := &where{}
	w.eq("squad_id", f.SquadID)
	if f.Installation {
		w.raw("squad_id IS NULL")
	}
	w.eq("name", f.Name)
	w.eq("provider", f.Provider)
	in(w, "kind", f.Kinds)
	w.page("id", f.After, f.Limit, f.Newest)
	return credentials.list(ctx, q, w)
}

// SealedCredential reads the sealed secret; CodeNotFound where there is none.
func (q *Query) SealedCredential(ctx context.Context, id string) ([]byte, error) {
	var sealed []byte
	err := q.db.QueryRowContext(ctx, `SELECT sealed FROM credentials WHERE id = $1`, clean(id)).Scan(&sealed)
	if err == nil && sealed == nil {
		err = squad.NotFound("secret of credential", id)
	}
	if err != nil {
		return nil, fmt.Errorf("read sealed credential: %w", missing(err, "credential", id))
	}
	return sealed, nil
}

// SetSealedCredential writes the sealed secret. It must be sealed already.
func (tx *Tx) SetSealedCredential(ctx context.Context, id string, sealed []byte) error {
	n, err := tx.exec(ctx, `UPDATE credentials SET sealed = $1 WHERE id = $2`, sealed, clean(id))
	return touched(n, err, "seal", "credential", id)
}

// CreateCredential writes a new credential, still without secret.
func (tx *Tx) CreateCredential(ctx context.Context, c *squad.Credential) error {
	tx.stamp(&c.ID, &c.CreatedAt)
	return credentials.create(ctx, tx, c)
}

// UpdateCredential writes a changed credential; the secret stays.
func (tx *Tx) UpdateCredential(ctx context.Context, c *squad.Credential) error {
	return credentials.change(ctx, tx, c)
}

// DeleteCredential removes a credential and its secret.
func (tx *Tx) DeleteCredential(ctx context.Context, id string) error {
	return credentials.remove(ctx, tx, id)
}
