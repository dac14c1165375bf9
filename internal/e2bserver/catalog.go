package e2bserver

import (
	"cmp"
	"context"
	"slices"

	squad "agentsquad"
)

// Templates lists what sandboxes of squads may start from: base, which is always
// there, and then those that were made for them, the newest first.
func (s *Server) Templates(context.Context) ([]squad.Template, error) {
	rows := []squad.Template{{
		ID: baseTemplate, Name: baseTemplate, Provider: "local", Source: "host", Status: buildReady,
		CPU: float64(s.cfg.CPU), MemoryMB: s.cfg.MemoryMB, DiskMB: s.cfg.DiskMB,
	}}
	s.library.mu.Lock()
	defer s.library.mu.Unlock()
	for _, t := range s.library.templates {
		if t.Owner == OwnerSquad && !t.Snapshot && len(t.Names) > 0 {
			rows = append(rows, s.templateRow(t))
		}
	}
	slices.SortFunc(rows[1:], func(a, b squad.Template) int {
		return -cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return rows, nil
}

// templateRow is a template with the state of its newest build. The library is locked.
func (s *Server) templateRow(t *template) squad.Template {
	info := s.templateInfo(t)
	row := squad.Template{
		ID: t.ID, Name: t.Names[0], Provider: "local", Status: buildBuilding,
		CPU: float64(info.CPUCount), MemoryMB: info.MemoryMB, DiskMB: info.DiskSizeMB, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
	}
	if n := len(t.Builds); n > 0 {
		b := t.Builds[n-1]
		row.Source, row.Image, row.UpdatedAt = "build:"+b.ID, b.Image, cmp.Or(b.FinishedAt, b.CreatedAt)
		row.Error, row.SizeBytes = b.Reason, b.SizeBytes
		if b.SizeBytes > 0 {
			row.Source = "folder"
		}
		if b.Status == buildReady || b.Status == buildError {
			row.Status = b.Status
		}
		if l := len(b.Logs); l > 0 && row.Status == buildBuilding {
			row.Detail = b.Logs[l-1].Message
		}
	}
	return row
}

// BuildTemplate begins to make a template for the squads, or to make it anew, and
// returns without waiting for it: [Server.Templates] tells how the build goes.
func (s *Server) BuildTemplate(_ context.Context, req squad.NewTemplate) (squad.Template, error) {
	plan := buildPlan{FromImage: req.Image, FromTemplate: req.Template}
	if plan.FromImage == "" && plan.FromTemplate == "" {
		plan.FromTemplate = baseTemplate
	}
	for _, command := range req.Run {
		plan.Steps = append(plan.Steps, step{Type: "RUN", Args: []string{command, "root"}})
	}
	// A plan that cannot be carried out must leave no template behind.
	if err := s.checkPlan(OwnerSquad, &plan); err != nil {
		return squad.Template{}, err
	}
	id, _, b, err := s.openBuild(OwnerSquad, buildRequest{Name: req.Name, CPUCount: req.CPU, MemoryMB: req.MemoryMB})
	if err != nil {
		return squad.Template{}, err
	}
	if err := s.beginBuild(OwnerSquad, id, b.ID, plan); err != nil {
		return squad.Template{}, err
	}
	var row squad.Template
	err = s.library.read(OwnerSquad, id, func(t *template) error {
		row = s.templateRow(t)
		return nil
	})
	return row, err
}

// DeleteTemplate removes a template of the squads. Sandboxes that stand on it go on.
func (s *Server) DeleteTemplate(_ context.Context, id string) error {
	if id == baseTemplate {
		return squad.Errorf(squad.CodeConflict, "base is always there and cannot be deleted")
	}
	if err := s.library.delete(OwnerSquad, id); err != nil {
		return err
	}
	s.background(s.sweep)
	return nil
}
