package api

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) templateRoutes(api huma.API) {
	const tag = "Templates"
	huma.Register(api, get("list-templates", "/templates", tag, "List sandbox templates with the state of their builds"), s.listTemplates)
	huma.Register(api, post("build-template", "/templates", tag, "Begin to build a template", http.StatusAccepted), s.buildTemplate)
	add := put("put-template", "/templates/{id}", tag, "Make a template of base and a folder: the body is a tar archive, plain or gzipped")
	add.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}},
	}}
	huma.Register(api, add, s.putTemplate)
	huma.Register(api, remove("delete-template", "/templates/{id}", tag, "Delete a template"), s.deleteTemplate)
}

func (s *Server) listTemplates(ctx context.Context, _ *Paging) (*List[squad.Template], error) {
	if s.ports.Templates == nil {
		return whole([]squad.Template{}), nil
	}
	rows, err := s.ports.Templates.Templates(ctx)
	if err != nil {
		return nil, err
	}
	return whole(rows), nil
}

func (s *Server) buildTemplate(ctx context.Context, in *struct{ Body squad.NewTemplate }) (*One[squad.Template], error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	if s.ports.Templates == nil {
		return nil, unavailable("the sandbox runtime of this machine")
	}
	if in.Body.Image != "" && in.Body.Template != "" {
		return nil, squad.Invalid("template", "a template starts from an image or from another template, not from both")
	}
	row, err := s.ports.Templates.BuildTemplate(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	// The build runs already; its entry in the audit log follows.
	if err := s.change(ctx, "template.build", func(*store.Tx) (string, error) { return row.ID, nil }); err != nil {
		return nil, err
	}
	return answer(row), nil
}

// maxTemplate bounds the archive of a template.
const maxTemplate = 16 << 30

// templateInput takes the body as a stream: an archive is not held in memory.
type templateInput struct {
	ByID
	body io.Reader
}

// Resolve is called by the router before the handler.
func (in *templateInput) Resolve(hctx huma.Context) []error {
	r, w := humago.Unwrap(hctx)
	in.body = http.MaxBytesReader(w, r.Body, maxTemplate)
	return nil
}

func (s *Server) putTemplate(ctx context.Context, in *templateInput) (*One[squad.Template], error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	if s.ports.Templates == nil {
		return nil, unavailable("the sandbox runtime of this machine")
	}
	if err := s.note(ctx, "template.put", in.ID); err != nil {
		return nil, err
	}
	row, err := s.ports.Templates.AddFolder(ctx, in.ID, in.body)
	if err != nil {
		return nil, err
	}
	return answer(row), nil
}

func (s *Server) deleteTemplate(ctx context.Context, in *ByID) (*Nothing, error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	if s.ports.Templates == nil {
		return nil, unavailable("the sandbox runtime of this machine")
	}
	if err := s.ports.Templates.DeleteTemplate(ctx, in.ID); err != nil {
		return nil, err
	}
	return nil, s.change(ctx, "template.delete", func(*store.Tx) (string, error) { return in.ID, nil })
}
