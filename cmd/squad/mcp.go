package main

import (
	"github.com/spf13/cobra"

	"agentsquad/internal/app"
	"agentsquad/internal/mcp"
)

func newMCP(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve the squad's tools over the Model Context Protocol on standard input and output",
		Long: `Lets any MCP client use the squad's tools: git, commands and files in sandboxes,
and the board. The token decides what may be done; which role may use which tool
is said in tools.yaml in the server's data folder.

A server also answers at /mcp over streamable HTTP with the same token.`,
		Example: `  claude mcp add squad -- squad mcp
  SQUAD_URL=https://squad.example.com SQUAD_TOKEN=… squad mcp`,
		Args: none(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := e.server()
			if err != nil {
				return err
			}
			return mcp.Proxy(cmd.Context(), found.URL, found.Token, app.Version)
		},
	}
}
