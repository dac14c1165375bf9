package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"agentsquad"
	"agentsquad/internal/api"
	"agentsquad/internal/mcp"
)

// buildMCP makes the tools of agents. Which role may use which is said by
// tools.yaml in the data folder, else by the one that ships.
func (a *App) buildMCP(context.Context) error {
	policy := mcp.DefaultPolicy()
	text, err := os.ReadFile(a.folder.path("tools.yaml"))
	switch {
	case err == nil:
		if policy, err = mcp.ParsePolicy(text); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read tools.yaml: %w", err)
	}
	a.rooms.ports.MCP = mcp.Handler(mcp.Config{
		URL: a.url, Policy: policy, Version: Version,
		Actor: func(r *http.Request) (squad.Actor, bool) { return api.ActorFrom(r.Context()) },
	})
	return nil
}
