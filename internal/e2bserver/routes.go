package e2bserver

import (
	"net/http"
	"strings"

	squad "agentsquad"
)

// controlPlane is E2B's REST API: old and new paths lead to the same handlers.
func (s *Server) controlPlane() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"POST /sandboxes":                           s.create(oldTimeout),
		"POST /v2/sandboxes":                        s.create(newTimeout),
		"GET /sandboxes":                            s.listRunning,
		"GET /v2/sandboxes":                         s.list,
		"GET /sandboxes/metrics":                    s.manyMetrics,
		"GET /sandboxes/{id}":                       s.get,
		"DELETE /sandboxes/{id}":                    s.delete,
		"POST /sandboxes/{id}/connect":              s.connect(true),
		"POST /v2/sandboxes/{id}/connect":           s.connect(false),
		"POST /sandboxes/{id}/resume":               s.resume,
		"POST /sandboxes/{id}/pause":                s.pause,
		"POST /sandboxes/{id}/timeout":              s.setTimeout,
		"POST /sandboxes/{id}/refreshes":            s.refresh,
		"GET /sandboxes/{id}/metrics":               s.metrics,
		"GET /sandboxes/{id}/logs":                  s.oldLogs,
		"GET /v2/sandboxes/{id}/logs":               s.logs,
		"PUT /sandboxes/{id}/network":               s.setNetwork,
		"POST /sandboxes/{id}/snapshots":            s.snapshot,
		"GET /snapshots":                            s.snapshots,
		"POST /sandboxes/{id}/fork":                 s.fork,
		"POST /sandboxes/{id}/squad-lend":           s.lend,
		"POST /v3/templates":                        s.requestBuild,
		"POST /v2/templates":                        s.requestBuild,
		"GET /templates":                            s.listTemplates,
		"GET /v2/templates":                         s.listTemplates,
		"GET /templates/{id}":                       s.getTemplate,
		"PATCH /templates/{id}":                     s.patchTemplate,
		"PATCH /v2/templates/{id}":                  s.patchTemplate,
		"DELETE /templates/{id}":                    s.deleteTemplate,
		"GET /templates/{id}/{part}":                s.templatePart,
		"GET /templates/{id}/files/{hash}":          s.uploadLink,
		"POST /templates/tags":                      s.assignTags,
		"DELETE /templates/tags":                    s.removeTags,
		"POST /v2/templates/{id}/builds/{build}":    s.startBuild,
		"GET /templates/{id}/builds/{build}/status": s.buildStatus,
		"GET /templates/{id}/builds/{build}/logs":   s.buildLogs,
		"GET /health":                               func(w http.ResponseWriter, _ *http.Request, _ string) error { return noContent(w) },
	} {
		mux.Handle(pattern, s.authenticated(h))
	}
	for _, prefix := range []string{"/volumes", "/secrets", "/events", "/teams", "/nodes", "/api-keys", "/access-tokens"} {
		mux.Handle(prefix, s.authenticated(unsupported))
		mux.Handle(prefix+"/", s.authenticated(unsupported))
	}
	mux.Handle("/", s.authenticated(unknownPath))
	return mux
}

// unsupported says plainly what this server does not have.
func unsupported(w http.ResponseWriter, r *http.Request, _ string) error {
	part, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	writeJSON(w, http.StatusNotImplemented, errorBody{
		Code: http.StatusNotImplemented, Message: "This server does not support /" + part,
	})
	return nil
}

func unknownPath(_ http.ResponseWriter, r *http.Request, _ string) error {
	return squad.Errorf(squad.CodeNotFound, "There is no %s %s in this API", r.Method, r.URL.Path)
}

// authenticated lets a request through when its key is known.
func (s *Server) authenticated(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-API-Key")
		if key == "" {
			s.writeError(w, r, squad.Errorf(squad.CodeUnauthorized, "Missing API key: send it in the header X-API-Key"))
			return
		}
		owner, ok := s.cfg.Keys(r.Context(), key)
		if !ok {
			s.writeError(w, r, squad.Errorf(squad.CodeUnauthorized, "Invalid API key"))
			return
		}
		if err := s.AwaitReady(r.Context()); err != nil {
			s.writeError(w, r, err)
			return
		}
		if err := h(w, r, owner); err != nil {
			s.writeError(w, r, err)
		}
	})
}
