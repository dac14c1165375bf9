package store

import (
	"context"

	squad "agentsquad"
)

var templates = newTable("template", "templates", func(t *squad.Template) []field {
	return []field{
		{name: "id", at: &t.ID},
		{name: "name", at: &t.Name},
		{name: "squad_id", at: ref{&t.SquadID}, fixed: true},
		{name: "provider", at: &t.Provider},
		{name: "source", at: &t.Source},
		{name: "image", at: &t.Image},
		{name: "digest", at: &t.Digest},
		{name: "status", at: &t.Status},
		{name: "error", at: &t.Error},
		{name: "cpu", at: &t.CPU},
		{name: "memory_mb", at: &t.MemoryMB},
		{name: "disk_mb", at: &t.DiskMB},
		{name: "size_bytes", at: &t.SizeBytes},
		{name: "created_at", at: moment{&t.CreatedAt}, fixed: true},
		{name: "updated_at", at: moment{&t.UpdatedAt}},
	}
})

// TemplateFilter narrows a list of templates.
type TemplateFilter struct {
	Name     string
	SquadID  string
	Provider string
	Status   string

	Limit  int
	After  string
	Newest bool
}

// Template reads one template.
func (q *Query) Template(ctx context.Context, id string) (squad.Template, error) {
	return templates.get(ctx, q, "id", id)
}

// TemplateByName reads the template with this name.
func (q *Query) TemplateByName(ctx context.Context, name string) (squad.Template, error) {
	return templates.get(ctx, q, "name", name)
}

// Templates lists templates.
func (q *Query) Templates(ctx context.Context, f TemplateFilter) ([]squad.Template, error) {
	w := &where{}
	w.eq("name", f.Name)
	w.eq("squad_id", f.SquadID)
	w.eq("provider", f.Provider)
	w.eq("status", f.Status)
	w.page("id", f.After, f.Limit, f.Newest)
	return templates.list(ctx, q, w)
}

// CreateTemplate writes a new template, building unless it says otherwise.
func (tx *Tx) CreateTemplate(ctx context.Context, t *squad.Template) error {
	tx.stamp(&t.ID, &t.CreatedAt, &t.UpdatedAt)
	if t.Status == "" {
		t.Status = "building"
	}
	return templates.create(ctx, tx, t)
}

// UpdateTemplate writes a changed template.
func (tx *Tx) UpdateTemplate(ctx context.Context, t *squad.Template) error {
	t.UpdatedAt = tx.Now
	return templates.change(ctx, tx, t)
}

// DeleteTemplate removes the row of a template.
func (tx *Tx) DeleteTemplate(ctx context.Context, id string) error {
	return templates.remove(ctx, tx, id)
}
