package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	squad "agentsquad"
	"agentsquad/client"
)

// Config describes a [Handler].
type Config struct {
	// URL is our own API's address.
	URL string
	// Actor says who asks; the API in front has checked the token.
	Actor   func(*http.Request) (squad.Actor, bool)
	Policy  Policy
	Version string
}

// Handler serves MCP over streamable HTTP. It keeps no session: each request
// carries its token and is answered by itself.
func Handler(cfg Config) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		actor, ok := cfg.Actor(r)
		token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || !found {
			return nil
		}
		c, err := client.New(client.Config{URL: cfg.URL, Token: token, UserAgent: "squad-mcp"})
		if err != nil {
			return nil
		}
		return newServer(cfg, caller{c: c, actor: actor})
	}, &mcp.StreamableHTTPOptions{Stateless: true})
}

// caller is who uses the tools.
type caller struct {
	c     *client.Client
	actor squad.Actor
}

// role is the caller's place in tools.yaml.
func (c caller) role() string {
	if !c.actor.IsAgent() {
		return people
	}
	return c.actor.MemberRole
}

// newServer makes a server with the tools that the caller may use; others do not
// exist for it.
func newServer(cfg Config, who caller) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "squad", Title: "Agent Squad", Version: cfg.Version}, &mcp.ServerOptions{
		Instructions: "Tools of a squad of coding agents: git, commands and files in your sandbox, and the board. Commit messages are conventional commits.",
	})
	for _, t := range tools {
		if cfg.Policy.Allows(who.role(), t.name) {
			t.add(s, who)
		}
	}
	return s
}

// tool is one verb. add registers it for a caller.
type tool struct {
	name string
	add  func(*mcp.Server, caller)
}

// define makes a tool of a function. Its arguments' schema comes from In.
func define[In, Out any](name, description string, do func(context.Context, caller, In) (Out, error)) tool {
	schema := schemaOf[In]()
	return tool{name: name, add: func(s *mcp.Server, who caller) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: description, InputSchema: schema}, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			out, err := do(ctx, who, in)
			if err != nil {
				return failed(err), nil, nil
			}
			text, err := json.MarshalIndent(out, "", "  ")
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
		})
	}}
}

// schemaOf is the schema of a tool's arguments. What may be left out is left out and
// never null: some clients know no field of two types.
func schemaOf[In any]() *jsonschema.Schema {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic("schema of a tool: " + err.Error()) // cannot be: a test lists all tools
	}
	for _, field := range schema.Properties {
		if len(field.Types) == 2 && field.Types[0] == "null" {
			field.Type, field.Types = field.Types[1], nil
		}
	}
	return schema
}

// failed is an error as the model reads it: the message that a user would see.
func failed(err error) *mcp.CallToolResult {
	text := "internal error"
	var e *squad.Error
	if errors.As(err, &e) {
		text = string(e.Code) + ": " + e.Message
	} else if errors.Is(err, context.DeadlineExceeded) {
		text = "timeout"
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// sandbox is the sandbox that a call means: the one named, else the caller's own.
func (c caller) sandbox(id string) (string, error) {
	if id == "" {
		id = c.actor.SandboxID
	}
	if id == "" {
		return "", squad.Invalid("sandbox_id", "name a sandbox: your token has none of its own")
	}
	return id, nil
}
