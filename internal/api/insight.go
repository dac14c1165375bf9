package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) insightRoutes(api huma.API) {
	const tag = "Insights"
	huma.Register(api, get("usage", "/usage", tag, "Tokens and cost by day, member, task or model"), s.usage)
	huma.Register(api, get("insights", "/insights", tag, "Success, cost and start times at a glance"), s.insights)
}

// UsageRow is the use of models under one key.
type UsageRow struct {
	Key          string  `json:"key" doc:"A day, or the identifier of a member, a task, or a model"`
	TokensIn     int64   `json:"tokens_in"`
	TokensOut    int64   `json:"tokens_out"`
	TokensCached int64   `json:"tokens_cached"`
	CostUSD      float64 `json:"cost_usd"`
	Calls        int64   `json:"calls"`
}

// Period is how far back to look.
type Period struct {
	SquadID string `query:"squad_id" maxLength:"100"`
	Days    int    `query:"days" minimum:"1" maximum:"366" default:"30"`
}

// usagePage is how many entries are summed at a time.
const usagePage = 5000

func (s *Server) usage(ctx context.Context, in *struct {
	Paging
	Period
	By       string `query:"by" enum:"day,member,task,model" default:"day"`
	TaskID   string `query:"task_id" maxLength:"100"`
	MemberID string `query:"member_id" maxLength:"100"`
},
) (*List[UsageRow], error) {
	squads, err := s.insightSquads(ctx, in.SquadID)
	if err != nil {
		return nil, err
	}
	rows := map[string]*UsageRow{}
	for _, id := range squads {
		f := store.UsageFilter{SquadID: id, TaskID: in.TaskID, MemberID: in.MemberID, Since: s.since(in.Days), Limit: usagePage}
		for {
			page, err := s.store.Usages(ctx, f)
			if err != nil {
				return nil, err
			}
			for _, u := range page {
				rows = addUsage(rows, usageKey(u, in.By), u)
			}
			if len(page) < usagePage {
				break
			}
			f.After = page[len(page)-1].ID
		}
	}
	out := make([]UsageRow, 0, len(rows))
	for _, r := range rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b UsageRow) int {
		if in.By != "day" && a.CostUSD != b.CostUSD {
			return cmp.Compare(b.CostUSD, a.CostUSD)
		}
		return cmp.Compare(a.Key, b.Key)
	})
	return whole(out), nil
}

func usageKey(u squad.Usage, by string) string {
	switch by {
	case "member":
		return u.MemberID
	case "task":
		return u.TaskID
	case "model":
		return u.Model
	default:
		return u.At.UTC().Format(time.DateOnly)
	}
}

func addUsage(rows map[string]*UsageRow, key string, u squad.Usage) map[string]*UsageRow {
	r, ok := rows[key]
	if !ok {
		r = &UsageRow{Key: key}
		rows[key] = r
	}
	r.TokensIn += u.TokensIn
	r.TokensOut += u.TokensOut
	r.TokensCached += u.TokensCached
	r.CostUSD += u.CostUSD
	r.Calls++
	return rows
}

// insightSquads: numbers of a whole squad are for people, not for agents.
func (s *Server) insightSquads(ctx context.Context, asked string) ([]string, error) {
	a := actorOf(ctx)
	if a.IsAgent() && !manages(a, a.SquadID) {
		return nil, squad.Errorf(squad.CodeForbidden, "not for members")
	}
	return visibleSquads(a, asked)
}

func (s *Server) since(days int) time.Time {
	return s.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-days)
}

// Insights are the figures of a period.
type Insights struct {
	Executions  map[squad.ExecutionStatus]int `json:"executions" doc:"Count by state"`
	Tasks       map[squad.TaskStatus]int      `json:"tasks" doc:"Count by column"`
	CostUSD     float64                       `json:"cost_usd" doc:"Models and sandboxes"`
	TokensIn    int64                         `json:"tokens_in"`
	TokensOut   int64                         `json:"tokens_out"`
	DurationMS  Spread                        `json:"duration_ms" doc:"Ended executions, from start to end"`
	StartMS     Spread                        `json:"start_ms" doc:"Time to make a sandbox"`
	Pulls       map[squad.PullState]int       `json:"pulls" doc:"Count by state"`
	SuccessRate float64                       `json:"success_rate" doc:"Succeeded among ended executions, 0 to 1"`
}

// Spread is the middle and the edge of some measurements.
type Spread struct {
	Count int   `json:"count"`
	P50   int64 `json:"p50"`
	P95   int64 `json:"p95"`
}

func spreadOf(values []int64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	slices.Sort(values)
	at := func(p float64) int64 { return values[min(len(values)-1, int(p*float64(len(values))))] }
	return Spread{Count: len(values), P50: at(.5), P95: at(.95)}
}

// insightRows bounds what one answer looks at in each list.
const insightRows = 20_000

func (s *Server) insights(ctx context.Context, in *Period) (*struct{ Body Insights }, error) {
	squads, err := s.insightSquads(ctx, in.SquadID)
	if err != nil {
		return nil, err
	}
	out := Insights{
		Executions: map[squad.ExecutionStatus]int{}, Tasks: map[squad.TaskStatus]int{}, Pulls: map[squad.PullState]int{},
	}
	since := s.since(in.Days)
	var durations, starts []int64
	for _, id := range squads {
		executions, err := s.store.Executions(ctx, store.ExecutionFilter{SquadID: id, Newest: true, Limit: insightRows})
		if err != nil {
			return nil, err
		}
		for _, e := range executions {
			if e.CreatedAt.Before(since) {
				break
			}
			out.add(e)
			if !e.FinishedAt.IsZero() && !e.StartedAt.IsZero() {
				durations = append(durations, e.FinishedAt.Sub(e.StartedAt).Milliseconds())
			}
		}
		boxes, err := s.store.Sandboxes(ctx, store.SandboxFilter{SquadID: id, Newest: true, Limit: insightRows})
		if err != nil {
			return nil, err
		}
		for _, b := range boxes {
			if b.CreatedAt.Before(since) {
				break
			}
			if b.CreateMS > 0 {
				starts = append(starts, b.CreateMS)
			}
		}
		if err := s.countTasksAndPulls(ctx, id, &out); err != nil {
			return nil, err
		}
	}
	out.DurationMS, out.StartMS = spreadOf(durations), spreadOf(starts)
	ended := out.Executions[squad.ExecutionSucceeded] + out.Executions[squad.ExecutionFailed] + out.Executions[squad.ExecutionCancelled]
	if ended > 0 {
		out.SuccessRate = float64(out.Executions[squad.ExecutionSucceeded]) / float64(ended)
	}
	return &struct{ Body Insights }{out}, nil
}

func (out *Insights) add(e squad.Execution) {
	out.Executions[e.Status]++
	out.CostUSD += e.ModelCostUSD + e.SandboxCostUSD
	out.TokensIn += e.TokensIn
	out.TokensOut += e.TokensOut
}

func (s *Server) countTasksAndPulls(ctx context.Context, squadID string, out *Insights) error {
	tasks, err := s.store.Tasks(ctx, store.TaskFilter{SquadID: squadID, Limit: insightRows})
	if err != nil {
		return err
	}
	for _, t := range tasks {
		out.Tasks[t.Status]++
	}
	pulls, err := s.store.PullRequests(ctx, store.PullRequestFilter{SquadID: squadID, Limit: insightRows})
	if err != nil {
		return err
	}
	for _, p := range pulls {
		out.Pulls[p.State]++
	}
	return nil
}
