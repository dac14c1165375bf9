package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
)

// taskVerbRoutes are the verbs that the runner does.
func (s *Server) taskVerbRoutes(api huma.API) {
	const tag = "Tasks"
	huma.Register(api, post("run-task", "/tasks/{id}/run", tag, "Start a task", http.StatusCreated), s.runTask)
	huma.Register(api, post("retry-task", "/tasks/{id}/retry", tag, "Start again from the last checkpoint", http.StatusCreated), s.retryTask)
	huma.Register(api, verb("cancel-task", "/tasks/{id}/cancel", tag, "End all executions of a task"), s.cancelTask)
	huma.Register(api, verb("merge-task", "/tasks/{id}/merge", tag, "Merge the pull request of a task"), s.mergeTask)
	huma.Register(api, post("nudge-task", "/tasks/{id}/nudge", tag, "Hand a message to the agent", http.StatusCreated), s.nudgeTask)
	huma.Register(api, post("fork-task", "/tasks/{id}/fork", tag, "Try a task several ways at once", http.StatusCreated), s.forkTask)
	huma.Register(api, get("diff-task", "/tasks/{id}/diff", tag, "Changes of a task against its base"), s.diffTask)
}

// steer finds a task to act on and the runner to do it.
func (s *Server) steer(ctx context.Context, ref, action string) (squad.Task, Runner, error) {
	t, err := s.writableTask(ctx, s.store.Query, ref)
	if err != nil {
		return t, nil, err
	}
	if s.ports.Runner == nil {
		return t, nil, unavailable("running tasks")
	}
	return t, s.ports.Runner, s.note(ctx, action, t.ID)
}

func (s *Server) runTask(ctx context.Context, in *struct {
	ByID
	Body squad.RunOptions
},
) (*One[squad.Execution], error) {
	t, runner, err := s.steer(ctx, in.ID, "task.run")
	if err != nil {
		return nil, err
	}
	e, err := runner.Run(ctx, actorOf(ctx), t.ID, in.Body)
	if err != nil {
		return nil, err
	}
	return answer(e), nil
}

func (s *Server) retryTask(ctx context.Context, in *struct {
	ByID
	Body squad.RunOptions
},
) (*One[squad.Execution], error) {
	t, runner, err := s.steer(ctx, in.ID, "task.retry")
	if err != nil {
		return nil, err
	}
	e, err := runner.Retry(ctx, actorOf(ctx), t.ID, in.Body)
	if err != nil {
		return nil, err
	}
	return answer(e), nil
}

func (s *Server) cancelTask(ctx context.Context, in *struct {
	ByID
	Body Cause
},
) (*One[squad.Task], error) {
	t, runner, err := s.steer(ctx, in.ID, "task.cancel")
	if err != nil {
		return nil, err
	}
	if t, err = runner.Cancel(ctx, actorOf(ctx), t.ID, in.Body.Cause); err != nil {
		return nil, err
	}
	return &One[squad.Task]{taskETag(t), t}, nil
}

// Cause says why.
type Cause struct {
	Cause string `json:"cause,omitempty" maxLength:"2000"`
}

func (s *Server) mergeTask(ctx context.Context, in *struct {
	ByID
	Body squad.MergeOptions
},
) (*One[squad.PullRequest], error) {
	t, runner, err := s.steer(ctx, in.ID, "task.merge")
	if err != nil {
		return nil, err
	}
	p, err := runner.Merge(ctx, actorOf(ctx), t.ID, in.Body)
	if err != nil {
		return nil, err
	}
	return answer(p), nil
}

func (s *Server) nudgeTask(ctx context.Context, in *struct {
	ByID
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"65536"`
	}
},
) (*One[squad.Message], error) {
	t, runner, err := s.steer(ctx, in.ID, "task.nudge")
	if err != nil {
		return nil, err
	}
	m, err := runner.Nudge(ctx, actorOf(ctx), t.ID, in.Body.Text)
	if err != nil {
		return nil, err
	}
	return answer(m), nil
}

func (s *Server) forkTask(ctx context.Context, in *struct {
	ByID
	Body squad.ForkOptions
},
) (*List[squad.Execution], error) {
	t, runner, err := s.steer(ctx, in.ID, "task.fork")
	if err != nil {
		return nil, err
	}
	es, err := runner.Fork(ctx, actorOf(ctx), t.ID, in.Body)
	if err != nil {
		return nil, err
	}
	return whole(es), nil
}

func (s *Server) diffTask(ctx context.Context, in *ByID) (*One[squad.Diff], error) {
	t, err := s.task(ctx, s.store.Query, in.ID)
	if err != nil {
		return nil, err
	}
	if s.ports.Runner == nil {
		return nil, unavailable("running tasks")
	}
	d, err := s.ports.Runner.Diff(ctx, actorOf(ctx), t.ID)
	if err != nil {
		return nil, err
	}
	return answer(d), nil
}
