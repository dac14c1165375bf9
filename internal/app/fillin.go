package app

import (
	"context"
	"fmt"
	"io"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/demo"
	"agentsquad/internal/store"
)

// demoPace is the pause between the lines of the demonstration's agents, in
// seconds: slow enough to be watched on the board.
const demoPace = 0.6

// fillIn makes what the settings ask a new installation to have, in the
// background: requests are answered meanwhile. What fails is told in the log
// and tried again at the next start.
func (a *App) fillIn(context.Context) error {
	a.run("fill in", func(ctx context.Context) error {
		if err := a.fill(ctx); err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "the installation could not be filled in", "error", err)
		}
		return nil
	})
	return nil
}

func (a *App) fill(ctx context.Context) error {
	found, err := client.FromData(a.folder.dir)
	if err != nil {
		return err
	}
	c, err := client.New(found)
	if err != nil {
		return err
	}
	if a.cfg.GitHubRepoOwner != "" && a.cfg.GitHubRepoName != "" {
		if err := a.fillRepository(ctx, c); err != nil {
			return err
		}
	}
	if !a.cfg.Demo {
		return nil
	}
	has, err := a.hasSquad(ctx, demo.SquadName)
	if err != nil || has {
		return err
	}
	if a.rooms.ports.Runner == nil {
		_, err = demo.Seed(ctx, c, demoPace)
	} else {
		err = demo.Play(ctx, c, io.Discard, demoPace)
	}
	if err != nil {
		return fmt.Errorf("play the demonstration: %w", err)
	}
	return nil
}

func (a *App) hasSquad(ctx context.Context, name string) (bool, error) {
	rows, err := a.store.Squads(ctx, store.SquadFilter{Name: name, Limit: 1})
	return len(rows) > 0, err
}

// fillRepository adds the repository that the environment names, once, in a
// squad of its owner's name.
func (a *App) fillRepository(ctx context.Context, c *client.Client) error {
	owner, name := a.cfg.GitHubRepoOwner, a.cfg.GitHubRepoOwner+"/"+a.cfg.GitHubRepoName
	rows, err := a.store.Repositories(ctx, store.RepositoryFilter{Name: name, Limit: 1})
	if err != nil || len(rows) > 0 {
		return err
	}
	squads, err := a.store.Squads(ctx, store.SquadFilter{Name: owner, Limit: 1})
	if err != nil {
		return err
	}
	if len(squads) == 0 {
		s, err := c.CreateSquad(ctx, squad.NewSquad{Name: owner})
		if err != nil {
			return err
		}
		squads = append(squads, s)
	}
	_, err = c.CreateRepository(ctx, squad.NewRepository{SquadID: squads[0].ID, Name: name, Forge: squad.ForgeGitHub})
	if err != nil {
		return fmt.Errorf("add repository %s: %w", name, err)
	}
	return nil
}
