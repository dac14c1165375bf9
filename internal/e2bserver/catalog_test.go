package e2bserver_test

import (
	"context"
	"testing"
	"time"

	squad "agentsquad"
)

func TestTemplates_BaseIsAlwaysThereAndOthersAreBuiltAndDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	s := r.server
	if _, err := s.BuildTemplate(t.Context(), squad.NewTemplate{Name: "broken", Template: "nowhere"}); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("built from a template that is not there: %v", err)
	}
	if err := s.DeleteTemplate(t.Context(), "base"); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("base was deleted: %v", err)
	}
	// The double has no images, so this build ends with an error that is told.
	made, err := s.BuildTemplate(t.Context(), squad.NewTemplate{Name: "tools", Image: "example.org/tools:1", MemoryMB: 2048})
	if err != nil || made.Name != "tools" || made.MemoryMB != 2048 {
		t.Fatalf("built %+v: %v", made, err)
	}
	rows := waitTemplates(t, s.Templates, func(rows []squad.Template) bool { return len(rows) == 2 && rows[1].Status == "error" })
	if rows[0].Name != "base" || rows[0].Status != "ready" || rows[1].Error == "" {
		t.Errorf("templates are %+v", rows)
	}
	if err := s.DeleteTemplate(t.Context(), made.ID); err != nil {
		t.Error(err)
	}
	waitTemplates(t, s.Templates, func(rows []squad.Template) bool { return len(rows) == 1 })
}

func waitTemplates(t *testing.T, list func(context.Context) ([]squad.Template, error), until func([]squad.Template) bool) []squad.Template {
	t.Helper()
	for {
		rows, err := list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if until(rows) {
			return rows
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("templates stay %+v", rows)
		}
	}
}
