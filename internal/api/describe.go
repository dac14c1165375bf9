package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsPage string

// describe is the frame of the OpenAPI document. Paths for the document and its
// page are our own, since the router's page loads scripts from elsewhere.
func describe(version string) huma.Config {
	jsonFormat := huma.Format{
		Marshal: func(w io.Writer, v any) error {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			return e.Encode(v)
		},
		Unmarshal: json.Unmarshal,
	}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Agent Squad", Version: version,
				Description: "A squad of AI coding agents, each in a sandbox of its own. Errors are RFC 9457 problem JSON with a stable code.",
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token":   {Type: "http", Scheme: "bearer"},
					"session": {Type: "apiKey", In: "cookie", Name: SessionCookie},
				},
			},
			Security: []map[string][]string{{"token": {}}, {"session": {}}},
		},
		Formats:                      map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}

// document fixes the OpenAPI document and renders its page, once.
func (s *Server) document(api huma.API) error {
	optionalBodies(api.OpenAPI())
	var err error
	if s.openAPI, err = json.Marshal(api.OpenAPI()); err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	t, err := template.New("docs").Parse(docsPage)
	if err != nil {
		return fmt.Errorf("parse the docs page: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, groups(api.OpenAPI())); err != nil {
		return fmt.Errorf("render the docs page: %w", err)
	}
	s.docs = out.Bytes()
	return nil
}

// optionalBodies says of posts without a required field that they need no body.
func optionalBodies(doc *huma.OpenAPI) {
	for _, item := range doc.Paths {
		if item.Post == nil || item.Post.RequestBody == nil {
			continue
		}
		for _, media := range item.Post.RequestBody.Content {
			schema := media.Schema
			if schema != nil && schema.Ref != "" {
				schema = doc.Components.Schemas.SchemaFromRef(schema.Ref)
			}
			item.Post.RequestBody.Required = schema == nil || len(schema.Required) > 0
		}
	}
}

func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/openapi+json")
	_, _ = w.Write(s.openAPI) // the client has gone: nobody to tell
}

func (s *Server) serveDocs(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	_, _ = w.Write(s.docs) // the client has gone: nobody to tell
}

// docGroup is one chapter of the docs page.
type docGroup struct {
	Tag        string
	Operations []docOperation
}

type docOperation struct {
	Method, Path, Summary, Description, Body string
	Params                                   []*huma.Param
}

func groups(doc *huma.OpenAPI) []docGroup {
	byTag := map[string][]docOperation{}
	for path, item := range doc.Paths {
		for method, op := range map[string]*huma.Operation{
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
		} {
			if op == nil {
				continue
			}
			d := docOperation{Method: method, Path: path, Summary: op.Summary, Description: op.Description, Params: op.Parameters}
			if op.RequestBody != nil {
				for _, media := range op.RequestBody.Content {
					if media.Schema != nil {
						d.Body = strings.TrimPrefix(media.Schema.Ref, "#/components/schemas/")
					}
				}
			}
			tag := "Other"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			byTag[tag] = append(byTag[tag], d)
		}
	}
	out := make([]docGroup, 0, len(byTag))
	for tag, ops := range byTag {
		slices.SortFunc(ops, func(a, b docOperation) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
		out = append(out, docGroup{tag, ops})
	}
	slices.SortFunc(out, func(a, b docGroup) int { return strings.Compare(a.Tag, b.Tag) })
	return out
}
