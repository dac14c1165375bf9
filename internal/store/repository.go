package store

import (
	"context"

	squad "agentsquad"
)

var repositories = newTable("repository", "repositories", func(r *squad.Repository) []field {
	return []field{
		{name: "id", at: &r.ID},
		{name: "squad_id", at: &r.SquadID, fixed: true},
		{name: "name", at: &r.Name},
		{name: "forge", at: wordOf(&r.Forge)},
		{name: "url", at: &r.URL},
		{name: "api_url", at: &r.APIURL},
		{name: "default_branch", at: &r.DefaultBranch},
		{name: "credential_id", at: ref{&r.CredentialID}},
		{name: "pr_template", at: &r.PRTemplate},
		{name: "reviewers", at: object{&r.Reviewers}},
		{name: "policy", at: object{&r.Policy}},
		{name: "created_at", at: moment{&r.CreatedAt}, fixed: true},
		{name: "updated_at", at: moment{&r.UpdatedAt}},
	}
})

// RepositoryFilter narrows a list of repositories.
type RepositoryFilter struct {
	SquadID      string
	Name         string
	URL          string
	CredentialID string
	Forges       []squad.ForgeKind

	Limit  int
	After  string
	Newest bool
}

// Repository reads one repository.
func (q *Query) Repository(ctx context.Context, id string) (squad.Repository, error) {
	return repositories.get(ctx, q, "id", id)
}

// Repositories lists repositories.
func (q *Query) Repositories(ctx context.Context, f RepositoryFilter) ([]squad.Repository, error) {
	w := &where{}
	w.eq("squad_id", f.SquadID)
	w.eq("name", f.Name)
	w.eq("url", f.URL)
	w.eq("credential_id", f.CredentialID)
	in(w, "forge", f.Forges)
	w.page("id", f.After, f.Limit, f.Newest)
	return repositories.list(ctx, q, w)
}

// CreateRepository writes a new repository.
func (tx *Tx) CreateRepository(ctx context.Context, r *squad.Repository) error {
	tx.stamp(&r.ID, &r.CreatedAt, &r.UpdatedAt)
	if r.DefaultBranch == "" {
		r.DefaultBranch = "main"
	}
	return repositories.create(ctx, tx, r)
}

// UpdateRepository writes a changed repository; it stays in its squad.
func (tx *Tx) UpdateRepository(ctx context.Context, r *squad.Repository) error {
	r.UpdatedAt = tx.Now
	return repositories.change(ctx, tx, r)
}

// DeleteRepository removes a repository with its pull requests; tasks stay.
func (tx *Tx) DeleteRepository(ctx context.Context, id string) error {
	if err := tx.releaseTasks(ctx, "repository_id", id); err != nil {
		return err
	}
	return repositories.remove(ctx, tx, id)
}
