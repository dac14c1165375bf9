package api_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"agentsquad"
	"agentsquad/internal/api"
)

// shelf is a room of templates that remembers what was asked of it.
type shelf struct{ rows []squad.Template }

func (s *shelf) Templates(context.Context) ([]squad.Template, error) { return s.rows, nil }

func (s *shelf) BuildTemplate(_ context.Context, req squad.NewTemplate) (squad.Template, error) {
	row := squad.Template{ID: "t-" + req.Name, Name: req.Name, Status: "building", Provider: "local"}
	s.rows = append(s.rows, row)
	return row, nil
}

func (s *shelf) AddFolder(_ context.Context, name string, archive io.Reader) (squad.Template, error) {
	data, err := io.ReadAll(archive)
	return squad.Template{ID: "t-" + name, Name: name, Status: "ready", Provider: "local", SizeBytes: int64(len(data))}, err
}

func (s *shelf) DeleteTemplate(_ context.Context, id string) error {
	for i, row := range s.rows {
		if row.ID == id {
			s.rows = append(s.rows[:i], s.rows[i+1:]...)
			return nil
		}
	}
	return squad.NotFound("template", id)
}

func TestTemplates_AreBuiltAndDeletedByAdministratorsOnly(t *testing.T) {
	t.Parallel()
	room := &shelf{}
	h := newHouse(t, func(c *api.Config) { c.Ports.Templates = room })
	guest := h.person("guest", false)
	if _, err := guest.BuildTemplate(t.Context(), squad.NewTemplate{Name: "mine"}); squad.CodeOf(err) != squad.CodeForbidden {
		t.Errorf("a guest built a template: %v", err)
	}
	if _, err := h.admin.BuildTemplate(t.Context(), squad.NewTemplate{Name: "No Such Name"}); squad.CodeOf(err) != squad.CodeInvalid {
		t.Errorf("a bad name was taken: %v", err)
	}
	if _, err := h.admin.BuildTemplate(t.Context(), squad.NewTemplate{Name: "both", Image: "a", Template: "b"}); squad.CodeOf(err) != squad.CodeInvalid {
		t.Errorf("two origins were taken: %v", err)
	}
	if _, err := guest.PutTemplate(t.Context(), "mine", strings.NewReader("x")); squad.CodeOf(err) != squad.CodeForbidden {
		t.Errorf("a guest added a folder: %v", err)
	}
	if put, err := h.admin.PutTemplate(t.Context(), "folder", strings.NewReader("archive")); err != nil || put.Name != "folder" || put.SizeBytes != 7 {
		t.Errorf("put %+v: %v", put, err)
	}
	made, err := h.admin.BuildTemplate(t.Context(), squad.NewTemplate{Name: "tools", Run: []string{"true"}})
	if err != nil || made.Status != "building" {
		t.Fatalf("made %+v: %v", made, err)
	}
	if err := guest.DeleteTemplate(t.Context(), made.ID); squad.CodeOf(err) != squad.CodeForbidden {
		t.Errorf("a guest deleted a template: %v", err)
	}
	if err := h.admin.DeleteTemplate(t.Context(), made.ID); err != nil || len(room.rows) != 0 {
		t.Errorf("left %v: %v", room.rows, err)
	}
}
