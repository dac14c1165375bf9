package demo

import (
	"context"
	"fmt"
	"os"
	"strconv"

	squad "agentsquad"
	"agentsquad/client"
)

// Cast is what a demonstration made.
type Cast struct {
	Squad      squad.Squad
	Repository squad.Repository
	Members    []squad.Member
	Tasks      []squad.Task
}

// SquadName names the demonstration's squad; an installation that has it is not
// filled again.
const SquadName = "Demo crew"

// Seed makes the squad, its repository, members and tasks. pace is the pause in
// seconds between the lines of the scripted agents, for people who watch.
func Seed(ctx context.Context, c *client.Client, pace float64) (*Cast, error) {
	var cast Cast
	var err error
	if cast.Squad, err = c.CreateSquad(ctx, squad.NewSquad{Name: SquadName, Description: "Three scripted agents on a small repository. No key, no network."}); err != nil {
		return nil, fmt.Errorf("make squad: %w", err)
	}
	dir, err := os.MkdirTemp("", "squad-demo-")
	if err != nil {
		return nil, fmt.Errorf("make repository: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := makeRepository(dir); err != nil {
		return nil, err
	}
	cast.Repository, err = c.CreateRepository(ctx, squad.NewRepository{SquadID: cast.Squad.ID, Name: "hello", Forge: squad.ForgeLocal, ImportPath: dir})
	if err != nil {
		return nil, fmt.Errorf("make repository: %w", err)
	}
	for i, a := range actors {
		m, err := c.CreateMember(ctx, squad.NewMember{
			SquadID: cast.Squad.ID, Name: a.name, Role: a.role, Specialization: a.specialty,
			Config: squad.MemberConfig{Agent: squad.AgentCommand, Command: a.script, Env: map[string]string{"PACE": strconv.FormatFloat(pace, 'f', -1, 64)}},
		})
		if err != nil {
			return nil, fmt.Errorf("make member %s: %w", a.name, err)
		}
		cast.Members = append(cast.Members, m)
		t, err := c.CreateTask(ctx, squad.NewTask{
			SquadID: cast.Squad.ID, RepositoryID: cast.Repository.ID, AssigneeID: m.ID, Title: work[i].title, Description: work[i].description,
		})
		if err != nil {
			return nil, fmt.Errorf("make task: %w", err)
		}
		cast.Tasks = append(cast.Tasks, t)
	}
	return &cast, nil
}

// Start puts the tasks to work.
func (cast *Cast) Start(ctx context.Context, c *client.Client) error {
	for _, t := range cast.Tasks {
		if _, err := c.RunTask(ctx, t.ID, squad.RunOptions{}); err != nil {
			return fmt.Errorf("start task #%d: %w", t.Number, err)
		}
	}
	return nil
}
