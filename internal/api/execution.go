package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) executionRoutes(api huma.API) {
	const tag = "Executions"
	huma.Register(api, get("list-executions", "/executions", tag, "List executions"), s.listExecutions)
	huma.Register(api, get("get-execution", "/executions/{id}", tag, "Read an execution"), s.getExecution)
	huma.Register(api, verb("cancel-execution", "/executions/{id}/cancel", tag, "End an execution"), s.cancelExecution)
	huma.Register(api, verb("cancel-command", "/executions/{id}/cancel-command", tag, "End only the command that runs now"), s.cancelCommand)
	huma.Register(api, verb("reassign-execution", "/executions/{id}/reassign", tag, "Continue with another member"), s.reassignExecution)
	huma.Register(api, verb("keep-execution", "/executions/{id}/keep", tag, "Choose this one of a fork"), s.keepExecution)
	huma.Register(api, get("list-git-operations", "/git-operations", tag, "List git operations"), s.listGitOperations)
}

func (s *Server) listExecutions(ctx context.Context, in *struct {
	Paging
	SquadID   string                  `query:"squad_id" maxLength:"100"`
	TaskID    string                  `query:"task_id" maxLength:"100"`
	MemberID  string                  `query:"member_id" maxLength:"100"`
	SandboxID string                  `query:"sandbox_id" maxLength:"100"`
	Status    []squad.ExecutionStatus `query:"status" enum:"queued,running,waiting,succeeded,failed,cancelled"`
	Live      bool                    `query:"live" doc:"Only those that have not ended"`
},
) (*List[squad.Execution], error) {
	page, err := across(ctx, in.SquadID, in.Paging, func(e squad.Execution) string { return e.ID }, func(ctx context.Context, p span) ([]squad.Execution, error) {
		return s.store.Executions(ctx, store.ExecutionFilter{
			SquadID: p.SquadID, TaskID: in.TaskID, MemberID: in.MemberID, SandboxID: in.SandboxID, Statuses: in.Status, Live: in.Live,
			Limit: p.Limit, After: p.After, Newest: p.Newest,
		})
	})
	if err != nil {
		return nil, err
	}
	a := actorOf(ctx)
	return &List[squad.Execution]{keep(page, func(e squad.Execution) bool { return seesTask(a, e.SquadID, e.TaskID) })}, nil
}

// execution reads an execution that the actor may see.
func (s *Server) execution(ctx context.Context, id string) (squad.Execution, error) {
	e, err := s.store.Execution(ctx, id)
	if err == nil && !seesTask(actorOf(ctx), e.SquadID, e.TaskID) {
		err = squad.NotFound("execution", id)
	}
	return e, err
}

func (s *Server) getExecution(ctx context.Context, in *ByID) (*One[squad.Execution], error) {
	e, err := s.execution(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(e), nil
}

// remedy finds an execution to act on and the runner to do it.
func (s *Server) remedy(ctx context.Context, id, action string) (Runner, error) {
	e, err := s.execution(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := mayWriteTask(actorOf(ctx), e.SquadID, e.TaskID); err != nil {
		return nil, err
	}
	if s.ports.Runner == nil {
		return nil, unavailable("running tasks")
	}
	return s.ports.Runner, s.note(ctx, action, e.ID)
}

func (s *Server) cancelExecution(ctx context.Context, in *struct {
	ByID
	Body Cause
},
) (*One[squad.Execution], error) {
	runner, err := s.remedy(ctx, in.ID, "execution.cancel")
	if err != nil {
		return nil, err
	}
	e, err := runner.CancelExecution(ctx, actorOf(ctx), in.ID, in.Body.Cause)
	if err != nil {
		return nil, err
	}
	return answer(e), nil
}

func (s *Server) cancelCommand(ctx context.Context, in *ByID) (*One[squad.Execution], error) {
	runner, err := s.remedy(ctx, in.ID, "execution.cancel_command")
	if err != nil {
		return nil, err
	}
	if err := runner.CancelCommand(ctx, actorOf(ctx), in.ID); err != nil {
		return nil, err
	}
	return s.getExecution(ctx, in)
}

func (s *Server) reassignExecution(ctx context.Context, in *struct {
	ByID
	Body struct {
		MemberID string `json:"member_id" minLength:"1" maxLength:"100"`
	}
},
) (*One[squad.Execution], error) {
	runner, err := s.remedy(ctx, in.ID, "execution.reassign")
	if err != nil {
		return nil, err
	}
	e, err := runner.Reassign(ctx, actorOf(ctx), in.ID, in.Body.MemberID)
	if err != nil {
		return nil, err
	}
	return answer(e), nil
}

func (s *Server) keepExecution(ctx context.Context, in *ByID) (*One[squad.Execution], error) {
	runner, err := s.remedy(ctx, in.ID, "execution.keep")
	if err != nil {
		return nil, err
	}
	e, err := runner.Keep(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return answer(e), nil
}

func (s *Server) listGitOperations(ctx context.Context, in *struct {
	Paging
	SquadID     string `query:"squad_id" maxLength:"100"`
	ExecutionID string `query:"execution_id" maxLength:"100"`
	SandboxID   string `query:"sandbox_id" maxLength:"100"`
	Kind        string `query:"kind" maxLength:"40"`
	Status      string `query:"status" enum:",running,succeeded,failed"`
},
) (*List[squad.GitOperation], error) {
	after, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	if err := s.maySeeGit(ctx, in.SquadID, in.ExecutionID, in.SandboxID); err != nil {
		return nil, err
	}
	rows, err := s.store.GitOperations(ctx, store.GitOperationFilter{
		SquadID: in.SquadID, ExecutionID: in.ExecutionID, SandboxID: in.SandboxID, Kind: in.Kind, Status: in.Status,
		Limit: in.Limit + 1, After: after, Newest: in.Newest,
	})
	if err != nil {
		return nil, err
	}
	return &List[squad.GitOperation]{paged(rows, in.Limit, func(g squad.GitOperation) string { return g.ID })}, nil
}

// maySeeGit: operations carry no squad of their own, so people name the
// execution or the sandbox; administrators need not.
func (s *Server) maySeeGit(ctx context.Context, squadID, executionID, sandboxID string) error {
	a := actorOf(ctx)
	if squadID != "" && !a.May(squadID, squad.RoleViewer) {
		return squad.NotFound("squad", squadID)
	}
	if squadID == "" && executionID == "" && sandboxID == "" && !a.Admin {
		return squad.Invalid("squad_id", "name a squad, an execution or a sandbox")
	}
	if executionID != "" {
		if _, err := s.execution(ctx, executionID); err != nil {
			return err
		}
	}
	if sandboxID != "" {
		if _, err := s.sandbox(ctx, sandboxID); err != nil {
			return err
		}
	}
	return nil
}
