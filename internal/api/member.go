package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

func (s *Server) memberRoutes(api huma.API) {
	huma.Register(api, get("list-members", "/members", "Members", "List members"), s.listMembers)
	huma.Register(api, post("create-member", "/members", "Members", "Create a member", http.StatusCreated), s.createMember)
	huma.Register(api, get("get-member", "/members/{id}", "Members", "Read a member"), s.getMember)
	huma.Register(api, patch("change-member", "/members/{id}", "Members", "Edit a member"), s.changeMember)
	huma.Register(api, remove("delete-member", "/members/{id}", "Members", "Delete a member"), s.deleteMember)
}

func (s *Server) listMembers(ctx context.Context, in *struct {
	Paging
	SquadID string `query:"squad_id" maxLength:"100"`
	Role    string `query:"role" maxLength:"60"`
	Active  string `query:"active" enum:",true,false"`
},
) (*List[squad.Member], error) {
	var active *bool
	if in.Active != "" {
		yes := in.Active == "true"
		active = &yes
	}
	page, err := across(ctx, in.SquadID, in.Paging, func(m squad.Member) string { return m.ID }, func(ctx context.Context, p span) ([]squad.Member, error) {
		return s.store.Members(ctx, store.MemberFilter{
			SquadID: p.SquadID, Role: in.Role, Active: active, Limit: p.Limit, After: p.After, Newest: p.Newest,
		})
	})
	if err != nil {
		return nil, err
	}
	return &List[squad.Member]{page}, nil
}

func (s *Server) createMember(ctx context.Context, in *struct {
	Once
	Body squad.NewMember
},
) (*One[squad.Member], error) {
	b := in.Body
	if err := mayInSquad(actorOf(ctx), b.SquadID, squad.RoleAdmin, "squad", b.SquadID); err != nil {
		return nil, err
	}
	row, err := once(ctx, s, in.Key, b, "member.create", func(tx *store.Tx) (squad.Member, string, error) {
		row := squad.Member{
			SquadID: b.SquadID, Name: b.Name, Role: b.Role, Specialization: b.Specialization, LLMProvider: b.LLMProvider,
			LLMModel: b.LLMModel, SystemPrompt: b.SystemPrompt, Config: b.Config, IsActive: true,
		}
		if err := checkMember(row); err != nil {
			return row, "", err
		}
		if err := tx.CreateMember(ctx, &row); err != nil {
			return row, "", err
		}
		return row, row.ID, tx.Append(ctx, memberChanged(row))
	})
	if err != nil {
		return nil, err
	}
	return answer(row), nil
}

// checkMember holds the rules between the fields of a member.
func checkMember(m squad.Member) error {
	switch m.Config.Agent {
	case squad.AgentCommand:
		if m.Config.Command == "" {
			return squad.Invalid("config.command", "a command agent needs its command")
		}
	case squad.AgentACP:
		if m.Config.Preset == "" && m.Config.Command == "" {
			return squad.Invalid("config.preset", "an ACP agent needs a preset or a command")
		}
	case squad.AgentLLM:
		if m.LLMModel == "" {
			return squad.Invalid("llm_model", "a built-in agent needs a model")
		}
	}
	return nil
}

func memberChanged(m squad.Member) squad.Event {
	return squad.Event{Type: squad.EventMemberChanged, SquadID: m.SquadID, MemberID: m.ID, Payload: event.Payload(m)}
}

// member reads a member that the actor may see.
func (s *Server) member(ctx context.Context, q *store.Query, id string) (squad.Member, error) {
	m, err := q.Member(ctx, id)
	if err == nil && !seesSquad(actorOf(ctx), m.SquadID) {
		err = squad.NotFound("member", id)
	}
	return m, err
}

func (s *Server) getMember(ctx context.Context, in *ByID) (*One[squad.Member], error) {
	m, err := s.member(ctx, s.store.Query, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(m), nil
}

func (s *Server) changeMember(ctx context.Context, in *struct {
	ByID
	Matching
	Body squad.MemberChange
},
) (*One[squad.Member], error) {
	var m squad.Member
	err := s.change(ctx, "member.change", func(tx *store.Tx) (string, error) {
		var err error
		if m, err = s.member(ctx, tx.Query, in.ID); err != nil {
			return "", err
		}
		if err := mayInSquad(actorOf(ctx), m.SquadID, squad.RoleAdmin, "member", m.ID); err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, etag(m)); err != nil {
			return "", err
		}
		b := in.Body
		set(&m.Name, b.Name)
		set(&m.Role, b.Role)
		set(&m.Specialization, b.Specialization)
		set(&m.LLMProvider, b.LLMProvider)
		set(&m.LLMModel, b.LLMModel)
		set(&m.SystemPrompt, b.SystemPrompt)
		set(&m.Config, b.Config)
		set(&m.IsActive, b.IsActive)
		if err := checkMember(m); err != nil {
			return "", err
		}
		if err := tx.UpdateMember(ctx, &m); err != nil {
			return "", err
		}
		return m.ID, tx.Append(ctx, memberChanged(m))
	})
	if err != nil {
		return nil, err
	}
	return answer(m), nil
}

func (s *Server) deleteMember(ctx context.Context, in *struct {
	ByID
	Matching
},
) (*Nothing, error) {
	return nil, s.change(ctx, "member.delete", func(tx *store.Tx) (string, error) {
		m, err := s.member(ctx, tx.Query, in.ID)
		if err != nil {
			return "", err
		}
		if err := mayInSquad(actorOf(ctx), m.SquadID, squad.RoleAdmin, "member", m.ID); err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, etag(m)); err != nil {
			return "", err
		}
		if live, err := tx.CountExecutions(ctx, store.ExecutionFilter{MemberID: m.ID, Live: true}); err != nil {
			return "", err
		} else if live > 0 {
			return "", squad.Errorf(squad.CodeConflict, "this member still works on %d executions; cancel or reassign them first", live)
		}
		m.IsActive = false
		if err := tx.Append(ctx, memberChanged(m)); err != nil {
			return "", err
		}
		return m.ID, tx.DeleteMember(ctx, m.ID)
	})
}
