package store

import (
	"context"
	"time"

	squad "agentsquad"
)

var apiTokens = newTable("token", "api_tokens", func(t *squad.APIToken) []field {
	return []field{
		{name: "id", at: &t.ID},
		{name: "user_id", at: ref{&t.UserID}},
		{name: "kind", at: wordOf(&t.Kind)},
		{name: "name", at: &t.Name},
		{name: "scopes", at: object{&t.Scopes}},
		{name: "member_id", at: ref{&t.MemberID}},
		{name: "task_id", at: ref{&t.TaskID}},
		{name: "sandbox_id", at: ref{&t.SandboxID}},
		{name: "prefix", at: &t.Prefix, fixed: true},
		{name: "hash", at: &t.Hash, fixed: true},
		{name: "expires_at", at: moment{&t.ExpiresAt}},
		{name: "last_used_at", at: moment{&t.LastUsedAt}},
		{name: "created_at", at: moment{&t.CreatedAt}, fixed: true},
	}
})

// APITokenFilter narrows a list of tokens.
type APITokenFilter struct {
	UserID    string
	MemberID  string
	TaskID    string
	SandboxID string
	Kinds     []squad.TokenKind
	// ExpiredBefore asks for tokens whose end lies before this time.
	ExpiredBefore time.Time

	Limit  int
	After  string
	Newest bool
}

// APIToken reads one token.
func (q *Query) APIToken(ctx context.Context, id string) (squad.APIToken, error) {
	return apiTokens.get(ctx, q, "id", id)
}

// TokenByHash reads the token whose secret has this SHA-256, in hex. It does
// not look at the time of expiry.
func (q *Query) TokenByHash(ctx context.Context, hash string) (squad.APIToken, error) {
	w := &where{}
	w.text("hash", hash)
	return apiTokens.one(ctx, q, w, "") // a hash does not belong in a message
}

// APITokens lists tokens.
func (q *Query) APITokens(ctx context.Context, f APITokenFilter) ([]squad.APIToken, error) {
	w := &where{}
	w.eq("user_id", f.UserID)
	w.eq("member_id", f.MemberID)
	w.eq("task_id", f.TaskID)
	w.eq("sandbox_id", f.SandboxID)
	in(w, "kind", f.Kinds)
	w.before("expires_at", f.ExpiredBefore)
	w.page("id", f.After, f.Limit, f.Newest)
	return apiTokens.list(ctx, q, w)
}

// CreateAPIToken writes a new token; t.Hash must be set.
func (tx *Tx) CreateAPIToken(ctx context.Context, t *squad.APIToken) error {
	tx.stamp(&t.ID, &t.CreatedAt)
	return apiTokens.create(ctx, tx, t)
}

// UpdateAPIToken writes a changed token; secret, hash and prefix stay.
func (tx *Tx) UpdateAPIToken(ctx context.Context, t *squad.APIToken) error {
	return apiTokens.change(ctx, tx, t)
}

// TouchAPIToken notes that the token was used at the given time.
func (tx *Tx) TouchAPIToken(ctx context.Context, id string, at time.Time) error {
	n, err := tx.exec(ctx, `UPDATE api_tokens SET last_used_at = $1 WHERE id = $2`, at.UnixMicro(), clean(id))
	return touched(n, err, "touch", "token", id)
}

// DeleteAPIToken removes a token.
func (tx *Tx) DeleteAPIToken(ctx context.Context, id string) error {
	return apiTokens.remove(ctx, tx, id)
}
