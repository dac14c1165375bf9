package e2bserver

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	squad "agentsquad"
)

// templateInfo is a template in a list.
type templateInfo struct {
	TemplateID  string    `json:"templateID"`
	BuildID     string    `json:"buildID"`
	CPUCount    int       `json:"cpuCount"`
	MemoryMB    int64     `json:"memoryMB"`
	DiskSizeMB  int64     `json:"diskSizeMB"`
	Public      bool      `json:"public"`
	Aliases     []string  `json:"aliases"`
	Names       []string  `json:"names"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
	BuildStatus string    `json:"buildStatus"`
	BuildCount  int       `json:"buildCount"`
	EnvdVersion string    `json:"envdVersion"`
}

func (s *Server) templateInfo(t *template) templateInfo {
	info := templateInfo{
		TemplateID: t.ID, CPUCount: t.CPU, MemoryMB: t.MemoryMB, DiskSizeMB: s.cfg.DiskMB, Public: t.Public,
		Aliases: append([]string{}, t.Names...), Names: []string{}, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
		BuildCount: len(t.Builds), EnvdVersion: envdVersion,
	}
	for _, n := range t.Names {
		info.Names = append(info.Names, namespaceOf(t.Owner)+"/"+n)
	}
	if n := len(t.Builds); n > 0 {
		info.BuildID, info.BuildStatus = t.Builds[n-1].ID, t.Builds[n-1].Status
	}
	if info.CPUCount == 0 {
		info.CPUCount = s.cfg.CPU
	}
	if info.MemoryMB == 0 {
		info.MemoryMB = s.cfg.MemoryMB
	}
	return info
}

// listTemplates handles GET /templates and /v2/templates.
func (s *Server) listTemplates(w http.ResponseWriter, r *http.Request, owner string) error {
	limit, err := pageLimit(r.URL.Query().Get("limit"))
	if err != nil {
		return err
	}
	after, err := parseCursor(r.URL.Query().Get("nextToken"))
	if err != nil {
		return err
	}
	s.library.mu.Lock()
	all := []templateInfo{}
	for _, t := range s.library.templates {
		if t.Owner == owner && !t.Snapshot {
			all = append(all, s.templateInfo(t))
		}
	}
	s.library.mu.Unlock()
	slices.SortFunc(all, func(a, b templateInfo) int {
		return -cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.TemplateID, b.TemplateID))
	})
	all = slices.DeleteFunc(all, func(t templateInfo) bool {
		return after.id != "" && cmp.Or(t.CreatedAt.Compare(after.at), cmp.Compare(t.TemplateID, after.id)) >= 0
	})
	if strings.HasPrefix(r.URL.Path, "/v2/") && len(all) > limit {
		all = all[:limit]
		w.Header().Set("X-Next-Token", cursor{all[limit-1].CreatedAt, all[limit-1].TemplateID}.String())
	}
	writeJSON(w, http.StatusOK, all)
	return nil
}

// getTemplate handles GET /templates/{id}.
func (s *Server) getTemplate(w http.ResponseWriter, r *http.Request, owner string) error {
	type buildInfo struct {
		BuildID    string    `json:"buildID"`
		Status     string    `json:"status"`
		CreatedAt  time.Time `json:"createdAt"`
		UpdatedAt  time.Time `json:"updatedAt"`
		FinishedAt time.Time `json:"finishedAt,omitzero"`
		CPUCount   int       `json:"cpuCount"`
		MemoryMB   int64     `json:"memoryMB"`
	}
	return s.library.read(owner, r.PathValue("id"), func(t *template) error {
		builds := []buildInfo{}
		for _, b := range t.Builds {
			builds = append(builds, buildInfo{
				BuildID: b.ID, Status: b.Status, CreatedAt: b.CreatedAt, UpdatedAt: cmp.Or(b.FinishedAt, b.CreatedAt),
				FinishedAt: b.FinishedAt, CPUCount: b.CPU, MemoryMB: b.MemoryMB,
			})
		}
		writeJSON(w, http.StatusOK, struct {
			templateInfo
			Builds []buildInfo `json:"builds"`
		}{s.templateInfo(t), builds})
		return nil
	})
}

// read runs do on an owner's own template.
func (l *library) read(owner, text string, do func(*template) error) error {
	ref, err := parseReference(text)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.find(owner, ref)
	if t == nil || t.Owner != owner {
		return squad.Errorf(squad.CodeNotFound, "template '%s' not found", text)
	}
	return do(t)
}

// patchTemplate handles PATCH /templates/{id}.
func (s *Server) patchTemplate(w http.ResponseWriter, r *http.Request, owner string) error {
	var body struct {
		Public *bool `json:"public"`
	}
	if err := decode(w, r, &body, false); err != nil {
		return err
	}
	names := []string{}
	err := s.library.change(owner, r.PathValue("id"), func(t *template) error {
		if body.Public != nil {
			t.Public = *body.Public
		}
		names = s.templateInfo(t).Names
		return nil
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"names": names})
	return nil
}

// deleteTemplate handles DELETE /templates/{id}, for templates and snapshots.
func (s *Server) deleteTemplate(w http.ResponseWriter, r *http.Request, owner string) error {
	if err := s.library.delete(owner, r.PathValue("id")); err != nil {
		return err
	}
	s.background(s.sweep)
	return noContent(w)
}

// sweep removes images that no template refers to any more. Those that a
// sandbox still stands on stay until a later sweep.
func (s *Server) sweep(ctx context.Context) {
	s.sweepLayers()
	names, err := s.host.Templates()
	if err != nil {
		s.log.ErrorContext(ctx, "templates not listed", "error", err)
		return
	}
	used := s.library.images()
	for _, b := range s.all(func(*record) bool { return true }) {
		rec := b.view()
		used[rec.Image], used[rec.Base] = true, true
	}
	for _, name := range names {
		if !strings.HasPrefix(name, imagePrefix) || used[name] {
			continue
		}
		err := s.host.RemoveTemplate(ctx, name)
		if code := squad.CodeOf(err); err != nil && code != squad.CodeConflict && code != squad.CodeNotFound {
			s.log.ErrorContext(ctx, "template not removed", "template", name, "error", err)
		}
	}
}

// templatePart handles GET /templates/aliases/{alias} and /templates/{id}/tags,
// whose patterns overlap.
func (s *Server) templatePart(w http.ResponseWriter, r *http.Request, owner string) error {
	id, part := r.PathValue("id"), r.PathValue("part")
	if id == "aliases" {
		return s.aliasInfo(w, part, owner)
	}
	if part == "tags" {
		return s.listTags(w, id, owner)
	}
	return unknownPath(w, r, owner)
}

// aliasInfo says which template a name means. A name of another owner is 403:
// SDKs read that as taken.
func (s *Server) aliasInfo(w http.ResponseWriter, alias, owner string) error {
	ref, err := parseReference(alias)
	if err != nil {
		return err
	}
	if ref.name == baseTemplate || ref.name == interpreterTemplate {
		writeJSON(w, http.StatusOK, map[string]any{"templateID": ref.name, "public": true})
		return nil
	}
	return s.library.read(owner, alias, func(t *template) error {
		writeJSON(w, http.StatusOK, map[string]any{"templateID": t.ID, "public": t.Public})
		return nil
	})
}
