package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) templateRoutes(api huma.API) {
	const tag = "Templates"
	huma.Register(api, get("list-templates", "/templates", tag, "List sandbox templates with the state of their builds"), s.listTemplates)
	huma.Register(api, post("build-template", "/templates", tag, "Begin to build a template", http.StatusAccepted), s.buildTemplate)
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
