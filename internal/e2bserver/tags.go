package e2bserver

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	squad "agentsquad"
)

// assignTags handles POST /templates/tags.
func (s *Server) assignTags(w http.ResponseWriter, r *http.Request, owner string) error {
	var body struct {
		Target string   `json:"target"`
		Tags   []string `json:"tags"`
	}
	if err := decode(w, r, &body, false); err != nil {
		return err
	}
	ref, err := parseReference(body.Target)
	if err != nil {
		return err
	}
	tags, err := cleanTags(body.Tags)
	if err != nil {
		return err
	}
	if len(tags) == 0 {
		return squad.Invalid("tags", "tags must name at least one tag")
	}
	var buildID string
	err = s.library.change(owner, body.Target, func(t *template) error {
		g, ok := t.Tags[ref.tag]
		if !ok {
			return squad.Errorf(squad.CodeNotFound, "template '%s' has no tag '%s'", ref.name, ref.tag)
		}
		buildID = g.Build
		for _, name := range tags {
			t.Tags[name] = tag{Build: buildID, CreatedAt: s.cfg.Now().UTC()}
		}
		return nil
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, map[string]any{"tags": tags, "buildID": buildID})
	return nil
}

// removeTags handles DELETE /templates/tags.
func (s *Server) removeTags(w http.ResponseWriter, r *http.Request, owner string) error {
	var body struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	if err := decode(w, r, &body, false); err != nil {
		return err
	}
	tags, err := cleanTags(body.Tags)
	if err != nil {
		return err
	}
	err = s.library.change(owner, body.Name, func(t *template) error {
		for _, name := range tags {
			if _, ok := t.Tags[name]; !ok {
				return squad.Errorf(squad.CodeNotFound, "template '%s' has no tag '%s'", body.Name, name)
			}
		}
		for _, name := range tags {
			delete(t.Tags, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return noContent(w)
}

// listTags answers GET /templates/{id}/tags.
func (s *Server) listTags(w http.ResponseWriter, id, owner string) error {
	type tagInfo struct {
		Tag       string    `json:"tag"`
		BuildID   string    `json:"buildID"`
		CreatedAt time.Time `json:"createdAt"`
	}
	return s.library.read(owner, id, func(t *template) error {
		out := []tagInfo{}
		for name, g := range t.Tags {
			out = append(out, tagInfo{name, g.Build, g.CreatedAt})
		}
		slices.SortFunc(out, func(a, b tagInfo) int { return cmp.Compare(a.Tag, b.Tag) })
		writeJSON(w, http.StatusOK, out)
		return nil
	})
}
