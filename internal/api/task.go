package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) taskRoutes(api huma.API) {
	const tag = "Tasks"
	huma.Register(api, get("list-tasks", "/tasks", tag, "List tasks"), s.listTasks)
	huma.Register(api, get("get-board", "/squads/{id}/board", tag, "All tasks of a squad as its board shows them, without their descriptions"), s.board)
	huma.Register(api, post("create-task", "/tasks", tag, "Create a task", http.StatusCreated), s.createTask)
	huma.Register(api, verb("bulk-tasks", "/tasks/bulk", tag, "Change many tasks; each by itself"), s.bulkTasks)
	huma.Register(api, get("get-task", "/tasks/{id}", tag, "Read a task, by identifier or number"), s.getTask)
	huma.Register(api, patch("change-task", "/tasks/{id}", tag, "Edit a task"), s.changeTask)
	huma.Register(api, remove("delete-task", "/tasks/{id}", tag, "Delete a task with its executions"), s.deleteTask)
	huma.Register(api, verb("move-task", "/tasks/{id}/move", tag, "Put a task into a column; in_progress starts it"), s.moveTask)
}

func (s *Server) listTasks(ctx context.Context, in *struct {
	Paging
	SquadID      string             `query:"squad_id" maxLength:"100"`
	RepositoryID string             `query:"repository_id" maxLength:"100"`
	AssigneeID   string             `query:"assignee_id" maxLength:"100"`
	Status       []squad.TaskStatus `query:"status" enum:"backlog,todo,in_progress,in_review,done"`
	Flag         []squad.TaskFlag   `query:"flag" enum:"blocked,failed,cancelled"`
	Label        string             `query:"label" maxLength:"60"`
	Text         string             `query:"q" maxLength:"200" doc:"Words in title or description"`
},
) (*List[squad.Task], error) {
	page, err := across(ctx, in.SquadID, in.Paging, func(t squad.Task) string { return t.ID }, func(ctx context.Context, p span) ([]squad.Task, error) {
		return s.store.Tasks(ctx, store.TaskFilter{
			SquadID: p.SquadID, RepositoryID: in.RepositoryID, AssigneeID: in.AssigneeID, Statuses: in.Status, Flags: in.Flag,
			Label: in.Label, Text: in.Text, Limit: p.Limit, After: p.After, Newest: p.Newest,
		})
	})
	if err != nil {
		return nil, err
	}
	a := actorOf(ctx)
	page = keep(page, func(t squad.Task) bool { return seesTask(a, t.SquadID, t.ID) })
	return &List[squad.Task]{page}, nil
}

// board answers with all tasks at once, by column and place. It costs little: only what
// changed since the last time is read.
func (s *Server) board(ctx context.Context, in *ByID) (*List[squad.Task], error) {
	if !seesSquad(actorOf(ctx), in.ID) {
		return nil, squad.NotFound("squad", in.ID)
	}
	if _, err := s.store.Squad(ctx, in.ID); err != nil {
		return nil, err
	}
	rows, err := s.store.Board(ctx, store.TaskFilter{SquadID: in.ID})
	if err != nil {
		return nil, err
	}
	a := actorOf(ctx)
	return &List[squad.Task]{keep(Page[squad.Task]{Items: append([]squad.Task{}, rows...)}, func(t squad.Task) bool { return seesTask(a, t.SquadID, t.ID) })}, nil
}

func (s *Server) createTask(ctx context.Context, in *struct {
	Once
	Body squad.NewTask
},
) (*One[squad.Task], error) {
	a, b := actorOf(ctx), in.Body
	if !manages(a, b.SquadID) {
		if err := mayInSquad(a, b.SquadID, squad.RoleMember, "squad", b.SquadID); err != nil {
			return nil, err
		}
	}
	if b.Run && s.ports.Runner == nil {
		return nil, unavailable("running tasks")
	}
	t, err := once(ctx, s, in.Key, b, "task.create", func(tx *store.Tx) (squad.Task, string, error) {
		t := squad.Task{
			SquadID: b.SquadID, RepositoryID: b.RepositoryID, Title: b.Title, Description: b.Description, Status: b.Status,
			Priority: 1, Labels: b.Labels, AssigneeID: b.AssigneeID, DependsOn: b.DependsOn, BaseBranch: b.BaseBranch,
			Provider: b.Provider, Template: b.Template, Budget: b.Budget, CreatedBy: a.String(),
		}
		if t.Status == "" {
			t.Status = squad.TaskTodo
		}
		set(&t.Priority, b.Priority)
		if err := s.life.Create(ctx, tx, &t); err != nil {
			return t, "", err
		}
		return t, t.ID, nil
	})
	if err != nil {
		return nil, err
	}
	if b.Run {
		t, err = s.runCreated(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	return &One[squad.Task]{taskETag(t), t}, nil
}

// runCreated starts a new task. A create that is sent again finds it running.
func (s *Server) runCreated(ctx context.Context, t squad.Task) (squad.Task, error) {
	_, err := s.ports.Runner.Run(ctx, actorOf(ctx), t.ID, squad.RunOptions{})
	if err != nil && squad.CodeOf(err) != squad.CodeConflict {
		return t, err
	}
	return s.store.Task(ctx, t.ID)
}

// task reads a task that the actor may see, by identifier or by number.
func (s *Server) task(ctx context.Context, q *store.Query, ref string) (squad.Task, error) {
	var t squad.Task
	var err error
	if n, e := strconv.ParseInt(ref, 10, 64); e == nil {
		t, err = q.TaskByNumber(ctx, "", n)
	} else {
		t, err = q.Task(ctx, ref)
	}
	if err == nil && !seesTask(actorOf(ctx), t.SquadID, t.ID) {
		err = squad.NotFound("task", ref)
	}
	return t, err
}

// writableTask reads a task that the actor may change.
func (s *Server) writableTask(ctx context.Context, q *store.Query, ref string) (squad.Task, error) {
	t, err := s.task(ctx, q, ref)
	if err == nil {
		err = mayWriteTask(actorOf(ctx), t.SquadID, t.ID)
	}
	return t, err
}

func (s *Server) getTask(ctx context.Context, in *ByID) (*One[squad.Task], error) {
	t, err := s.task(ctx, s.store.Query, in.ID)
	if err != nil {
		return nil, err
	}
	return &One[squad.Task]{taskETag(t), t}, nil
}

func (s *Server) changeTask(ctx context.Context, in *struct {
	ByID
	Matching
	Body squad.TaskChange
},
) (*One[squad.Task], error) {
	var t squad.Task
	err := s.change(ctx, "task.change", func(tx *store.Tx) (string, error) {
		var err error
		if t, err = s.writableTask(ctx, tx.Query, in.ID); err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, taskETag(t)); err != nil {
			return "", err
		}
		b := in.Body
		t, err = s.life.Edit(ctx, tx, t.ID, 0, func(t *squad.Task) error {
			set(&t.Title, b.Title)
			set(&t.Description, b.Description)
			set(&t.RepositoryID, b.RepositoryID)
			set(&t.Priority, b.Priority)
			set(&t.Labels, b.Labels)
			set(&t.AssigneeID, b.AssigneeID)
			set(&t.DependsOn, b.DependsOn)
			set(&t.BaseBranch, b.BaseBranch)
			set(&t.Provider, b.Provider)
			set(&t.Template, b.Template)
			set(&t.Budget, b.Budget)
			return nil
		})
		return t.ID, err
	})
	if err != nil {
		return nil, err
	}
	return &One[squad.Task]{taskETag(t), t}, nil
}

func (s *Server) deleteTask(ctx context.Context, in *struct {
	ByID
	Matching
},
) (*Nothing, error) {
	return nil, s.change(ctx, "task.delete", func(tx *store.Tx) (string, error) {
		t, err := s.writableTask(ctx, tx.Query, in.ID)
		if err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, taskETag(t)); err != nil {
			return "", err
		}
		return t.ID, s.life.Delete(ctx, tx, t.ID)
	})
}
