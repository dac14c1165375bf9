package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) sandboxRoutes(api huma.API) {
	const tag = "Sandboxes"
	huma.Register(api, get("list-sandboxes", "/sandboxes", tag, "List sandboxes"), s.listSandboxes)
	create := post("create-sandbox", "/sandboxes", tag, "Create a sandbox and wait until it runs", http.StatusCreated)
	create.Errors = append(create.Errors, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable)
	huma.Register(api, create, s.createSandbox)
	huma.Register(api, get("sandbox-pool", "/sandboxes/pool", tag, "State of the warm pools"), s.sandboxPool)
	huma.Register(api, get("get-sandbox", "/sandboxes/{id}", tag, "Read a sandbox"), s.getSandbox)
	huma.Register(api, remove("delete-sandbox", "/sandboxes/{id}", tag, "Destroy a sandbox"), s.deleteSandbox)
	huma.Register(api, verb("execute", "/sandboxes/{id}/execute", tag, "Run a command to its end"), s.execute)
	huma.Register(api, verb("pause-sandbox", "/sandboxes/{id}/pause", tag, "Pause, keeping the memory"), s.pauseSandbox)
	huma.Register(api, verb("resume-sandbox", "/sandboxes/{id}/resume", tag, "Resume"), s.resumeSandbox)
	huma.Register(api, post("fork-sandbox", "/sandboxes/{id}/fork", tag, "Make copies of this moment", http.StatusCreated), s.forkSandbox)
	huma.Register(api, get("sandbox-metrics", "/sandboxes/{id}/metrics", tag, "Newest measurements"), s.sandboxMetrics)
}

// seesSandbox: people by squad, agents their own; those of no squad (the pool)
// are for administrators.
func seesSandbox(a squad.Actor, b squad.Sandbox) bool {
	switch {
	case a.IsAgent():
		return a.OwnsSandbox(b)
	case b.SquadID == "":
		return a.Admin
	default:
		return a.May(b.SquadID, squad.RoleViewer)
	}
}

// sandbox reads a sandbox that the actor may see.
func (s *Server) sandbox(ctx context.Context, id string) (squad.Sandbox, error) {
	b, err := s.store.Sandbox(ctx, id)
	if err == nil && !seesSandbox(actorOf(ctx), b) {
		err = squad.NotFound("sandbox", id)
	}
	return b, err
}

// ownSandbox reads a sandbox that the actor may use, and the port to do it.
func (s *Server) ownSandbox(ctx context.Context, id string) (Sandboxes, error) {
	b, err := s.sandbox(ctx, id)
	if err != nil {
		return nil, err
	}
	if a := actorOf(ctx); !a.OwnsSandbox(b) {
		return nil, squad.Errorf(squad.CodeForbidden, "this needs the role %s in the squad", squad.RoleMember)
	}
	if s.ports.Sandboxes == nil {
		return nil, unavailable("running sandboxes")
	}
	return s.ports.Sandboxes, nil
}

func (s *Server) listSandboxes(ctx context.Context, in *struct {
	Paging
	SquadID     string                `query:"squad_id" maxLength:"100"`
	AgentID     string                `query:"agent_id" maxLength:"100"`
	TaskID      string                `query:"task_id" maxLength:"100"`
	ExecutionID string                `query:"execution_id" maxLength:"100"`
	Provider    string                `query:"provider" enum:",local,e2b"`
	Template    string                `query:"template" maxLength:"200"`
	Status      []squad.SandboxStatus `query:"status" enum:"created,running,paused,terminated,error"`
},
) (*List[squad.Sandbox], error) {
	page, err := across(ctx, in.SquadID, in.Paging, func(b squad.Sandbox) string { return b.ID }, func(ctx context.Context, p span) ([]squad.Sandbox, error) {
		return s.store.Sandboxes(ctx, store.SandboxFilter{
			SquadID: p.SquadID, AgentID: in.AgentID, TaskID: in.TaskID, ExecutionID: in.ExecutionID, Provider: in.Provider,
			Template: in.Template, Statuses: in.Status, Limit: p.Limit, After: p.After, Newest: p.Newest,
		})
	})
	if err != nil {
		return nil, err
	}
	a := actorOf(ctx)
	return &List[squad.Sandbox]{keep(page, func(b squad.Sandbox) bool { return seesSandbox(a, b) })}, nil
}

func (s *Server) createSandbox(ctx context.Context, in *struct {
	Once
	Body squad.SandboxRequest
},
) (*One[squad.Sandbox], error) {
	a, b := actorOf(ctx), in.Body
	if err := mayInSquad(a, b.SquadID, squad.RoleMember, "squad", b.SquadID); err != nil {
		return nil, err
	}
	if s.ports.Sandboxes == nil {
		return nil, unavailable("running sandboxes")
	}
	if err := s.note(ctx, "sandbox.create", b.SquadID); err != nil {
		return nil, err
	}
	row, err := outside(ctx, s, in.Key, b, "sandbox.create", func() (squad.Sandbox, error) { return s.ports.Sandboxes.Create(ctx, a, b) })
	if err != nil {
		return nil, err
	}
	return answer(row), nil
}

func (s *Server) getSandbox(ctx context.Context, in *ByID) (*One[squad.Sandbox], error) {
	b, err := s.sandbox(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(b), nil
}

func (s *Server) deleteSandbox(ctx context.Context, in *ByID) (*Nothing, error) {
	boxes, err := s.ownSandbox(ctx, in.ID)
	if err == nil {
		err = s.note(ctx, "sandbox.destroy", in.ID)
	}
	if err != nil {
		return nil, err
	}
	return nil, boxes.Destroy(ctx, actorOf(ctx), in.ID)
}

func (s *Server) execute(ctx context.Context, in *struct {
	ByID
	Body squad.Command
},
) (*struct{ Body squad.CommandResult }, error) {
	boxes, err := s.ownSandbox(ctx, in.ID)
	if err == nil {
		err = s.note(ctx, "sandbox.execute", in.ID)
	}
	if err != nil {
		return nil, err
	}
	res, err := boxes.Execute(ctx, actorOf(ctx), in.ID, in.Body, nil)
	return &struct{ Body squad.CommandResult }{res}, err
}

func (s *Server) pauseSandbox(ctx context.Context, in *ByID) (*One[squad.Sandbox], error) {
	boxes, err := s.ownSandbox(ctx, in.ID)
	if err == nil {
		err = s.note(ctx, "sandbox.pause", in.ID)
	}
	if err != nil {
		return nil, err
	}
	b, err := boxes.Pause(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return answer(b), nil
}

func (s *Server) resumeSandbox(ctx context.Context, in *ByID) (*One[squad.Sandbox], error) {
	boxes, err := s.ownSandbox(ctx, in.ID)
	if err == nil {
		err = s.note(ctx, "sandbox.resume", in.ID)
	}
	if err != nil {
		return nil, err
	}
	b, err := boxes.Resume(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return answer(b), nil
}

func (s *Server) forkSandbox(ctx context.Context, in *struct {
	ByID
	Body struct {
		Count int `json:"count,omitempty" minimum:"1" maximum:"64" default:"1"`
	}
},
) (*List[squad.Sandbox], error) {
	boxes, err := s.ownSandbox(ctx, in.ID)
	if err == nil && actorOf(ctx).IsAgent() {
		err = squad.Errorf(squad.CodeForbidden, "a member may not fork its sandbox")
	}
	if err == nil {
		err = s.note(ctx, "sandbox.fork", in.ID)
	}
	if err != nil {
		return nil, err
	}
	rows, err := boxes.Fork(ctx, actorOf(ctx), in.ID, max(1, in.Body.Count))
	if err != nil {
		return nil, err
	}
	return whole(rows), nil
}

func (s *Server) sandboxMetrics(ctx context.Context, in *struct {
	ByID
	Paging
},
) (*List[squad.SandboxSample], error) {
	if _, err := s.sandbox(ctx, in.ID); err != nil {
		return nil, err
	}
	if s.ports.Sandboxes == nil {
		return nil, unavailable("running sandboxes")
	}
	rows, err := s.ports.Sandboxes.Metrics(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return whole(rows), nil
}

func (s *Server) sandboxPool(ctx context.Context, _ *Paging) (*List[squad.PoolState], error) {
	if actorOf(ctx).IsAgent() {
		return nil, squad.Errorf(squad.CodeForbidden, "not for members")
	}
	if s.ports.Sandboxes == nil {
		return nil, unavailable("running sandboxes")
	}
	rows, err := s.ports.Sandboxes.Pool(ctx)
	if err != nil {
		return nil, err
	}
	return whole(rows), nil
}
