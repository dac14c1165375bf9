package githubtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Version is that of the package whose description scripts/counterparts fetches.
const Version = "23.0.2"

const remedy = "GitHub's description of its API is not here: run scripts/counterparts (needs npm)"

var errNoSpec = errors.New("no description here")

// prefix is where an Enterprise server has its API.
const prefix = "/api/v3"

// spec is GitHub's description, as far as the server speaks it.
type spec struct {
	router   routers.Router
	examples map[string]json.RawMessage
}

// loaded is read once for the process: it is large.
var loaded = sync.OnceValues(load)

// spoken are the paths that the server answers. The rest is dropped before the
// description is parsed: what refers to what takes seconds to find out.
var spoken = []string{
	"", "/branches", "/branches/{branch}/protection", "/rules/branches/{branch}", "/git/refs", "/git/refs/{ref}", "/pulls", "/pulls/{pull_number}",
	"/pulls/{pull_number}/merge", "/pulls/{pull_number}/requested_reviewers", "/pulls/{pull_number}/reviews", "/pulls/{pull_number}/comments",
	"/issues", "/issues/{issue_number}", "/issues/{issue_number}/labels", "/issues/{issue_number}/comments",
	"/commits/{ref}/check-runs", "/commits/{ref}/status", "/statuses/{sha}",
}

func load() (*spec, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, errNoSpec
	}
	text, err := os.ReadFile(filepath.Join(cache, "agentsquad", "github-openapi-"+Version+".json"))
	if err != nil {
		return nil, errNoSpec
	}
	var doc struct {
		OpenAPI    string                                `json:"openapi"`
		Info       json.RawMessage                       `json:"info"`
		Paths      map[string]json.RawMessage            `json:"paths"`
		Components map[string]map[string]json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read description: %w", err)
	}
	paths := map[string]json.RawMessage{"/app/installations/{installation_id}/access_tokens": doc.Paths["/app/installations/{installation_id}/access_tokens"]}
	for _, p := range spoken {
		// A reference may have slashes, which a router must be told.
		paths[strings.Replace("/repos/{owner}/{repo}"+p, "{ref}", "{ref:.+}", 1)] = doc.Paths["/repos/{owner}/{repo}"+p]
	}
	s := &spec{examples: doc.Components["examples"]}
	doc.Paths, doc.Components = paths, reachable(paths, doc.Components)
	if text, err = json.Marshal(doc); err != nil {
		return nil, err
	}
	api, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("load description: %w", err)
	}
	api.Servers = openapi3.Servers{{URL: prefix}}
	s.router, err = gorillamux.NewRouter(api)
	return s, err
}

// reachable are the components that the paths refer to, by whatever way.
func reachable(paths map[string]json.RawMessage, all map[string]map[string]json.RawMessage) map[string]map[string]json.RawMessage {
	kept := map[string]map[string]json.RawMessage{}
	var follow func(text []byte)
	follow = func(text []byte) {
		const mark = `"$ref":"#/components/`
		text = bytes.ReplaceAll(text, []byte(`"$ref": "`), []byte(`"$ref":"`))
		for _, part := range strings.Split(string(text), mark)[1:] {
			ref, _, _ := strings.Cut(part, `"`)
			kind, name, _ := strings.Cut(ref, "/")
			if kept[kind] == nil {
				kept[kind] = map[string]json.RawMessage{}
			}
			if _, done := kept[kind][name]; !done {
				kept[kind][name] = all[kind][name]
				follow(all[kind][name])
			}
		}
	}
	for _, p := range paths {
		follow(p)
	}
	return kept
}

// example is one of GitHub's own, to be changed where it matters.
func (s *spec) example(name string) map[string]any {
	var e struct {
		Value any `json:"value"`
	}
	if err := json.Unmarshal(s.examples[name], &e); err != nil {
		panic(fmt.Sprintf("example %s: %v", name, err))
	}
	if list, ok := e.Value.([]any); ok {
		return list[0].(map[string]any)
	}
	return e.Value.(map[string]any)
}

// checkRequest says what GitHub's description does not allow in a request.
func (s *spec) checkRequest(r *http.Request, body []byte) (*openapi3filter.RequestValidationInput, error) {
	route, params, err := s.router.FindRoute(r)
	if err != nil {
		return nil, fmt.Errorf("no such operation: %w", err)
	}
	// The description's text allows a bare list of labels, its schema does not.
	if strings.HasSuffix(r.URL.Path, "/labels") && bytes.HasPrefix(body, []byte("[")) {
		body = []byte(`{"labels":` + string(body) + `}`)
	}
	if strings.TrimSpace(string(body)) == "null" { // how the client of apps says nothing; GitHub takes it
		body = nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{IncludeResponseStatus: false, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	return in, brief(openapi3filter.ValidateRequest(r.Context(), in))
}

// checkAnswer says what the description does not allow in an answer. One with a
// status that it does not list is left alone: refusals are described in its text.
func (s *spec) checkAnswer(in *openapi3filter.RequestValidationInput, status int, header http.Header, body []byte) error {
	if in == nil || in.Route.Operation.Responses.Status(status) == nil && status >= 400 || status == http.StatusNotModified {
		return nil
	}
	if !strings.Contains(header.Get("Content-Type"), "json") && len(body) > 0 {
		return nil // a diff
	}
	in.Options.IncludeResponseStatus = true
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: status, Header: header, Options: in.Options}
	out.SetBodyBytes(body)
	return brief(openapi3filter.ValidateResponse(in.Request.Context(), out))
}

// brief leaves out the schema, which is a thousand lines.
func brief(err error) error {
	if err == nil {
		return nil
	}
	text, _, _ := strings.Cut(err.Error(), "\nSchema:")
	return errors.New(text)
}
