package mcp

import (
	"context"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Proxy serves the tools of a server over standard input and output: `squad mcp`.
// It lists what the server allows the token and passes each call on, so that rules
// are kept where they are written.
func Proxy(ctx context.Context, url, token, version string) error {
	remote, err := mcp.NewClient(&mcp.Implementation{Name: "squad-mcp", Version: version}, nil).Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: bearer{token}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", url, err)
	}
	defer remote.Close()
	local := mcp.NewServer(&mcp.Implementation{Name: "squad", Title: "Agent Squad", Version: version}, nil)
	for t, err := range remote.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("list tools: %w", err)
		}
		local.AddTool(t, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return remote.CallTool(ctx, &mcp.CallToolParams{Name: req.Params.Name, Arguments: req.Params.Arguments})
		})
	}
	return local.Run(ctx, &mcp.StdioTransport{})
}

// bearer adds the token to each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}
