package api

import (
	"context"
	"slices"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) moveTask(ctx context.Context, in *struct {
	ByID
	Matching
	Body squad.TaskMove
},
) (*One[squad.Task], error) {
	t, err := s.move(ctx, in.ID, in.IfMatch, in.Body)
	if err != nil {
		return nil, err
	}
	return &One[squad.Task]{taskETag(t), t}, nil
}

// move puts a task into a column. A task that a person puts into in_progress is
// run; what runs is not disturbed by a change of its place in the column.
func (s *Server) move(ctx context.Context, ref, ifMatch string, m squad.TaskMove) (squad.Task, error) {
	t, err := s.writableTask(ctx, s.store.Query, ref)
	if err != nil {
		return t, err
	}
	if err := unchanged(ifMatch, taskETag(t)); err != nil {
		return t, err
	}
	if m.Status == squad.TaskInProgress && m.Flag == squad.FlagNone && t.Status != squad.TaskInProgress && s.ports.Runner != nil {
		if _, err := s.ports.Runner.Run(ctx, actorOf(ctx), t.ID, squad.RunOptions{}); err != nil {
			return t, err
		}
		ifMatch = ""
	}
	err = s.change(ctx, "task.move", func(tx *store.Tx) (string, error) {
		if t, err = s.writableTask(ctx, tx.Query, t.ID); err != nil {
			return "", err
		}
		if err := unchanged(ifMatch, taskETag(t)); err != nil {
			return "", err
		}
		if t.Status != m.Status || t.Flag != m.Flag || t.Cause != m.Cause {
			if t, err = s.life.Move(ctx, tx, t.ID, m.Status, m.Flag, m.Cause); err != nil {
				return "", err
			}
		}
		if m.Position == nil || *m.Position == t.Position {
			return t.ID, nil
		}
		t, err = s.life.Edit(ctx, tx, t.ID, 0, func(t *squad.Task) error {
			t.Position = *m.Position
			return nil
		})
		return t.ID, err
	})
	return t, err
}

func (s *Server) bulkTasks(ctx context.Context, in *struct{ Body squad.TaskBulk }) (*List[squad.BulkResult], error) {
	b := in.Body
	switch {
	case b.Action == "move" && b.Status == "":
		return nil, squad.Invalid("status", "say which column to move to")
	case (b.Action == "label" || b.Action == "unlabel") && b.Label == "":
		return nil, squad.Invalid("label", "say which label")
	}
	results := make([]squad.BulkResult, 0, len(b.IDs))
	for _, id := range b.IDs {
		r := squad.BulkResult{ID: id, OK: true}
		if err := s.bulkOne(ctx, id, b); err != nil {
			p := problemOf(ctx, err)
			r = squad.BulkResult{ID: id, Code: p.Code, Error: p.Detail}
		}
		results = append(results, r)
	}
	return whole(results), nil
}

func (s *Server) bulkOne(ctx context.Context, id string, b squad.TaskBulk) error {
	if b.Action == "move" {
		_, err := s.move(ctx, id, "", squad.TaskMove{Status: b.Status})
		return err
	}
	return s.change(ctx, "task."+b.Action, func(tx *store.Tx) (string, error) {
		t, err := s.writableTask(ctx, tx.Query, id)
		if err != nil {
			return "", err
		}
		if b.Action == "delete" {
			return t.ID, s.life.Delete(ctx, tx, t.ID)
		}
		_, err = s.life.Edit(ctx, tx, t.ID, 0, func(t *squad.Task) error {
			switch b.Action {
			case "assign":
				t.AssigneeID = b.AssigneeID
			case "priority":
				t.Priority = b.Priority
			case "label":
				if !slices.Contains(t.Labels, b.Label) {
					t.Labels = append(t.Labels, b.Label)
				}
			case "unlabel":
				t.Labels = slices.DeleteFunc(t.Labels, func(l string) bool { return l == b.Label })
			}
			return nil
		})
		return t.ID, err
	})
}
