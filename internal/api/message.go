package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

func (s *Server) messageRoutes(api huma.API) {
	huma.Register(api, get("list-messages", "/messages", "Messages", "List messages"), s.listMessages)
	huma.Register(api, post("send-message", "/messages", "Messages", "Write to a member, a person or the squad", http.StatusCreated), s.sendMessage)
	huma.Register(api, get("get-message", "/messages/{id}", "Messages", "Read a message"), s.getMessage)
}

// seesMessage: an agent reads what it sent, what was sent to it or to all, and
// what was said about its task.
func seesMessage(a squad.Actor, m squad.Message) bool {
	if !a.IsAgent() || manages(a, m.SquadID) {
		return seesSquad(a, m.SquadID)
	}
	self := a.String()
	return seesSquad(a, m.SquadID) && (m.From == self || m.To == self || m.To == "squad" || m.TaskID != "" && m.TaskID == a.TaskID)
}

func (s *Server) listMessages(ctx context.Context, in *struct {
	Paging
	SquadID     string `query:"squad_id" maxLength:"100"`
	TaskID      string `query:"task_id" maxLength:"100"`
	ExecutionID string `query:"execution_id" maxLength:"100"`
	From        string `query:"from" maxLength:"100"`
	To          string `query:"to" maxLength:"100"`
	Kind        string `query:"kind" enum:",note,question,answer,escalation,review,nudge"`
	Unread      bool   `query:"unread"`
},
) (*List[squad.Message], error) {
	page, err := across(ctx, in.SquadID, in.Paging, func(m squad.Message) string { return m.ID }, func(ctx context.Context, p span) ([]squad.Message, error) {
		return s.store.Messages(ctx, store.MessageFilter{
			SquadID: p.SquadID, TaskID: in.TaskID, ExecutionID: in.ExecutionID, From: in.From, To: in.To, Kind: in.Kind, Unread: in.Unread,
			Limit: p.Limit, After: p.After, Newest: p.Newest,
		})
	})
	if err != nil {
		return nil, err
	}
	a := actorOf(ctx)
	return &List[squad.Message]{keep(page, func(m squad.Message) bool { return seesMessage(a, m) })}, nil
}

func (s *Server) sendMessage(ctx context.Context, in *struct {
	Once
	Body squad.NewMessage
},
) (*One[squad.Message], error) {
	a, b := actorOf(ctx), in.Body
	if !a.IsAgent() {
		if err := mayInSquad(a, b.SquadID, squad.RoleMember, "squad", b.SquadID); err != nil {
			return nil, err
		}
	} else if !seesSquad(a, b.SquadID) {
		return nil, squad.NotFound("squad", b.SquadID)
	}
	m, err := once(ctx, s, in.Key, b, "message.send", func(tx *store.Tx) (squad.Message, string, error) {
		m := squad.Message{
			SquadID: b.SquadID, TaskID: b.TaskID, ExecutionID: b.ExecutionID, From: a.String(), To: b.To, Kind: b.Kind, Body: b.Body,
		}
		if m.Kind == "" {
			m.Kind = "note"
		}
		if err := s.checkMessage(ctx, tx.Query, m); err != nil {
			return m, "", err
		}
		if err := tx.CreateMessage(ctx, &m); err != nil {
			return m, "", err
		}
		e := squad.Event{
			Type: squad.EventMessageSent, SquadID: m.SquadID, TaskID: m.TaskID, ExecutionID: m.ExecutionID, Payload: event.Payload(m),
		}
		if id, ok := strings.CutPrefix(m.To, "member:"); ok {
			e.MemberID = id
		}
		return m, m.ID, tx.Append(ctx, e)
	})
	if err != nil {
		return nil, err
	}
	return answer(m), nil
}

// checkMessage wants a recipient, a task and an execution of the same squad.
func (s *Server) checkMessage(ctx context.Context, q *store.Query, m squad.Message) error {
	kind, id, _ := strings.Cut(m.To, ":")
	switch {
	case m.To == "squad":
	case kind == "member":
		if to, err := q.Member(ctx, id); squad.CodeOf(err) == squad.CodeNotFound || err == nil && to.SquadID != m.SquadID {
			return squad.Invalid("to", "names no member of this squad")
		} else if err != nil {
			return err
		}
	case kind == "user":
		if _, err := q.User(ctx, id); squad.CodeOf(err) == squad.CodeNotFound {
			return squad.Invalid("to", "names no user")
		} else if err != nil {
			return err
		}
	default:
		return squad.Invalid("to", "must be member:<id>, user:<id> or squad")
	}
	if m.TaskID != "" {
		t, err := s.task(ctx, q, m.TaskID)
		if squad.CodeOf(err) == squad.CodeNotFound || err == nil && (t.SquadID != m.SquadID || t.ID != m.TaskID) {
			return squad.Invalid("task_id", "names no task of this squad")
		}
		if err != nil {
			return err
		}
	}
	if m.ExecutionID != "" {
		e, err := q.Execution(ctx, m.ExecutionID)
		if squad.CodeOf(err) == squad.CodeNotFound || err == nil && (e.SquadID != m.SquadID || m.TaskID != "" && e.TaskID != m.TaskID) {
			return squad.Invalid("execution_id", "names no execution of this squad and task")
		}
		return err
	}
	return nil
}

func (s *Server) getMessage(ctx context.Context, in *ByID) (*One[squad.Message], error) {
	m, err := s.store.Message(ctx, in.ID)
	if err == nil && !seesMessage(actorOf(ctx), m) {
		err = squad.NotFound("message", in.ID)
	}
	if err != nil {
		return nil, err
	}
	return answer(m), nil
}
