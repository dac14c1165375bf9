package api

import (
	"context"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

func (s *Server) streamRoutes(api huma.API) {
	const tag = "Events"
	stream := func(id, path, summary string) huma.Operation {
		op := get(id, path, tag, summary)
		op.Description = "Server-sent events: id is the event's number, event its type, data the event as JSON. " +
			"Last-Event-ID (or after) resumes behind that number without gap or repeat."
		return op
	}
	huma.Register(api, stream("stream", "/sse", "Follow events as they happen"), s.streamAll)
	huma.Register(api, stream("stream-squad", "/sse/squads/{id}", "Follow the events of a squad"), s.streamSquad)
	huma.Register(api, stream("stream-execution", "/sse/executions/{id}", "An execution from its beginning, live or ended"), s.streamExecution)
	huma.Register(api, get("stream-stats", "/sse/stats", tag, "How the streams are doing"), s.streamStats)
	huma.Register(api, get("list-events", "/events", tag, "List events; after is an event's number"), s.listEvents)
}

// EventQuery narrows a stream or a list of events.
type EventQuery struct {
	SquadID     string            `query:"squad_id" maxLength:"100"`
	TaskID      string            `query:"task_id" maxLength:"100"`
	ExecutionID string            `query:"execution_id" maxLength:"100"`
	MemberID    string            `query:"member_id" maxLength:"100"`
	SandboxID   string            `query:"sandbox_id" maxLength:"100"`
	Types       []squad.EventType `query:"types" maxItems:"50" doc:"Only these types, separated by commas"`
}

func (q EventQuery) filter() store.EventFilter {
	return store.EventFilter{
		SquadID: q.SquadID, TaskID: q.TaskID, ExecutionID: q.ExecutionID, MemberID: q.MemberID, SandboxID: q.SandboxID, Types: q.Types,
	}
}

// Resume says behind which event a stream begins.
type Resume struct {
	After       string `query:"after" maxLength:"20" doc:"Number of the last event already known; without it a stream begins now"`
	LastEventID string `header:"Last-Event-ID" maxLength:"20"`
}

// from is the number to begin behind. The header counts before the query: a
// browser repeats the address of its first try and moves on only in the header.
func (r Resume) from(otherwise int64) (int64, error) {
	text, field := r.LastEventID, "Last-Event-ID"
	if text == "" {
		text, field = r.After, "after"
	}
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, squad.Invalid(field, "must be the number of an event")
	}
	return n, nil
}

func (s *Server) streamAll(ctx context.Context, in *struct {
	EventQuery
	Resume
},
) (*huma.StreamResponse, error) {
	if in.SquadID != "" && !seesSquad(actorOf(ctx), in.SquadID) {
		return nil, squad.NotFound("squad", in.SquadID)
	}
	return s.stream(ctx, in.filter(), in.Resume, -1)
}

func (s *Server) streamSquad(ctx context.Context, in *struct {
	ByID
	Resume
	Types []squad.EventType `query:"types" maxItems:"50"`
},
) (*huma.StreamResponse, error) {
	if !seesSquad(actorOf(ctx), in.ID) {
		return nil, squad.NotFound("squad", in.ID)
	}
	return s.stream(ctx, store.EventFilter{SquadID: in.ID, Types: in.Types}, in.Resume, -1)
}

func (s *Server) streamExecution(ctx context.Context, in *struct {
	ByID
	Resume
	Types []squad.EventType `query:"types" maxItems:"50"`
},
) (*huma.StreamResponse, error) {
	if _, err := s.execution(ctx, in.ID); err != nil {
		return nil, err
	}
	return s.stream(ctx, store.EventFilter{ExecutionID: in.ID, Types: in.Types}, in.Resume, 0)
}

// stream answers with events from the given point on; otherwise < 0 means now.
func (s *Server) stream(ctx context.Context, f store.EventFilter, r Resume, otherwise int64) (*huma.StreamResponse, error) {
	if otherwise < 0 {
		last, err := s.store.LastSeq(ctx)
		if err != nil {
			return nil, err
		}
		otherwise = last
	}
	var err error
	if f.After, err = r.from(otherwise); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		r, w := humago.Unwrap(hctx)
		s.serveStream(w, r.WithContext(hctx.Context()), f)
	}}, nil
}

func (s *Server) streamStats(context.Context, *struct{}) (*struct{ Body event.Stats }, error) {
	return &struct{ Body event.Stats }{s.events.Stats()}, nil
}

func (s *Server) listEvents(ctx context.Context, in *struct {
	EventQuery
	Limit int    `query:"limit" minimum:"1" maximum:"5000" default:"1000"`
	After string `query:"after" maxLength:"20" doc:"Number of the last event already known"`
},
) (*List[squad.Event], error) {
	a := actorOf(ctx)
	if in.SquadID != "" && !seesSquad(a, in.SquadID) {
		return nil, squad.NotFound("squad", in.SquadID)
	}
	after, err := Resume{After: in.After}.from(0)
	if err != nil {
		return nil, err
	}
	f := in.filter()
	f.After, f.Limit = after, in.Limit
	rows, err := s.events.Stored(ctx, f)
	if err != nil {
		return nil, err
	}
	page := Page[squad.Event]{Items: rows}
	if len(rows) == in.Limit {
		page.Next = strconv.FormatInt(rows[len(rows)-1].Seq, 10)
	}
	return &List[squad.Event]{keep(page, func(e squad.Event) bool { return seesEvent(a, &e) })}, nil
}
