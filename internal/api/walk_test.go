package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// document is what the walk needs of an OpenAPI document.
type document struct {
	Paths      map[string]map[string]documented `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type documented struct {
	OperationID string `json:"operationId"`
	Parameters  []struct {
		Name string `json:"name"`
		In   string `json:"in"`
	} `json:"parameters"`
	RequestBody struct {
		Required bool `json:"required"`
		Content  map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]any `json:"responses"`
}

type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"`
	Enum       []any             `json:"enum"`
	Format     string            `json:"format"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Items      *schema           `json:"items"`
	Minimum    float64           `json:"minimum"`
}

func (d documented) has(in, name string) bool {
	return slices.ContainsFunc(d.Parameters, func(p struct {
		Name string `json:"name"`
		In   string `json:"in"`
	},
	) bool {
		return p.In == in && strings.EqualFold(p.Name, name)
	})
}

func (h *house) document() document {
	h.t.Helper()
	var d document
	if err := json.Unmarshal(h.server.OpenAPI(), &d); err != nil {
		h.t.Fatal(err)
	}
	return d
}

// example makes the least value that a schema allows; squad is put where one is named.
func (d document) example(s schema, squadID string) any {
	if s.Ref != "" {
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	kind := s.Type
	if list, ok := kind.([]any); ok {
		kind = list[0]
	}
	switch kind {
	case "object":
		out := map[string]any{}
		for _, name := range s.Required {
			out[name] = d.example(s.Properties[name], squadID)
			if name == "squad_id" {
				out[name] = squadID
			}
		}
		return out
	case "array":
		return []any{d.example(*s.Items, squadID)}
	case "integer", "number":
		return max(s.Minimum, 1)
	case "boolean":
		return true
	}
	return "xxxxxxxx"
}

// everybodys are the changes that a viewer may ask for: of their own session and
// tokens, and one that answers for each task by itself.
var everybodys = []string{"sign-in", "sign-out", "create-token", "bulk-tasks"}

// whole are bodies that need more than their required fields.
var whole = map[string]string{"review-pull": `{"body":"no"}`}

// fill puts identifiers of real things into a path.
func fill(path string, ids map[string]string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = "none"
			if id := ids[parts[i-1]]; id != "" {
				parts[i] = id
			}
		}
	}
	return strings.Join(parts, "/")
}

// changes calls f for each operation that changes something.
func (d document) changes(f func(method, path string, op documented)) {
	for path, item := range d.Paths {
		for method, op := range item {
			if method != "get" && method != "parameters" {
				f(strings.ToUpper(method), path, op)
			}
		}
	}
}

// state is what must not move when a request is refused.
func (h *house) state() string {
	h.t.Helper()
	last, err := h.admin.LastSeq(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	audit, err := h.store.AuditEntries(h.t.Context(), store.AuditEntryFilter{})
	if err != nil {
		h.t.Fatal(err)
	}
	changes := 0
	for _, e := range audit {
		if e.Action != "token.create" { // a viewer may make their own
			changes++
		}
	}
	return fmt.Sprintf("%d events, %d audit entries", last, changes)
}

func TestEveryChange_NeedsARightAndARightBody(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		crew, member := h.squad("crew")
		k := h.task(crew, "a task")
		repo := must(h.admin.CreateRepository(t.Context(), squad.NewRepository{SquadID: crew.ID, Name: "hello"}))(t)
		viewer := h.person("viewer", false)
		must(h.admin.PutSquadUser(t.Context(), crew.ID, viewer.user.ID, squad.RoleViewer))(t)
		ids := map[string]string{"squads": crew.ID, "members": member.ID, "tasks": k.ID, "repositories": repo.ID, "users": h.admin.user.ID}
		d := h.document()
		before := h.state()
		d.changes(func(method, path string, op documented) {
			at := fill(path, ids)
			body, hasBody := []byte(nil), false
			for kind, content := range op.RequestBody.Content {
				if hasBody = kind == "application/json"; hasBody {
					body, _ = json.Marshal(d.example(content.Schema, crew.ID))
				}
			}
			if full := whole[op.OperationID]; full != "" {
				body = []byte(full)
			}
			if op.has("query", "path") {
				at += "?path=/tmp/file"
			}
			if got := h.ask(method, at, "", body); !strings.HasPrefix(op.OperationID, "sign-") && got.status != http.StatusUnauthorized {
				t.Errorf("%s %s (%s) without a token: %d", method, path, op.OperationID, got.status)
			}
			if got := h.ask(method, at, viewer.token, body); !slices.Contains(everybodys, op.OperationID) && got.status != http.StatusForbidden && got.status != http.StatusNotFound {
				t.Errorf("%s %s (%s) by a viewer: %d %s, sent %s", method, path, op.OperationID, got.status, got.text, body)
			}
			if !hasBody {
				return
			}
			bad := h.ask(method, at, h.admin.token, []byte(`{"no_such_field":1}`))
			var p struct{ Code, Field string }
			_ = json.Unmarshal([]byte(bad.text), &p)
			if bad.status/100 != 4 || p.Field == "" || p.Code != "invalid" {
				t.Errorf("%s %s (%s) with a wrong field: %d %s", method, path, op.OperationID, bad.status, bad.text)
			}
		})
		if after := h.state(); after != before {
			t.Errorf("refused requests changed something: %s became %s", before, after)
		}
	})
}

func TestEveryOperation_KeepsTheHouseRules(t *testing.T) {
	t.Parallel()
	d := newHouse(t).document()
	// Lists that are whole by nature: bounded by what they list, not by the database.
	short := []string{
		"list-branches", "list-conflicts", "list-files", "sandbox-metrics", "doctor", "list-squad-users", "get-board",
		"list-templates", "check-repository", "list-agents",
	}
	for path, item := range d.Paths {
		for method, op := range item {
			switch {
			case method == "patch" && !op.has("header", "If-Match"):
				t.Errorf("%s %s: an edit without If-Match", op.OperationID, path)
			// A token's answer holds its secret, which is not kept anywhere.
			case method == "post" && strings.HasPrefix(op.OperationID, "create-") && op.OperationID != "create-token" && !op.has("header", "Idempotency-Key"):
				t.Errorf("%s %s: a create without an idempotency key", op.OperationID, path)
			case method == "get" && listed(d, op) && !slices.Contains(short, op.OperationID) && (!op.has("query", "limit") || !op.has("query", "after")):
				t.Errorf("%s %s: a list without pages", op.OperationID, path)
			}
		}
	}
}

// listed says whether an operation answers with a page.
func listed(d document, op documented) bool {
	raw, _ := json.Marshal(op.Responses["200"])
	for name, s := range d.Components.Schemas {
		if _, pages := s.Properties["items"]; pages && strings.Contains(string(raw), `schemas/`+name+`"`) {
			return true
		}
	}
	return false
}

func TestVerbs_NeedNoBodyWhereAllHasDefaults(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		d := h.document()
		d.changes(func(method, path string, op documented) {
			if method != http.MethodPost || op.RequestBody.Required || whole[op.OperationID] != "" || op.RequestBody.Content["application/json"].Schema.Ref == "" {
				return
			}
			if got := h.ask(method, fill(path, nil), h.admin.token, nil); got.status == http.StatusBadRequest {
				t.Errorf("%s without a body: %d %s", op.OperationID, got.status, got.text)
			}
		})
	})
}

func TestTasks_LabelIsPartOfTheQuery(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		crew, _ := h.squad("crew")
		for i := range 12 {
			labels := []string{"plain"}
			if i%4 == 3 {
				labels = []string{"urgent"}
			}
			must(h.admin.CreateTask(t.Context(), squad.NewTask{SquadID: crew.ID, Title: fmt.Sprintf("task %d", i), Labels: labels}))(t)
		}
		got := h.ask(http.MethodGet, "/api/v1/tasks?label=urgent&limit=2", h.admin.token, nil)
		var page struct {
			Items []squad.Task
			Next  string
		}
		if err := json.Unmarshal([]byte(got.text), &page); err != nil || len(page.Items) != 2 || page.Next == "" {
			t.Errorf("the first page of two urgent tasks: %v %s", err, got.text)
		}
	})
}

func TestBoard_HasEveryTaskInOneAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		crew, _ := h.squad("crew")
		for i := range 3 {
			h.task(crew, fmt.Sprintf("task %d", i))
		}
		outsider := h.person("outsider", false)
		var page struct{ Items []squad.Task }
		got := h.ask(http.MethodGet, "/api/v1/squads/"+crew.ID+"/board", h.admin.token, nil)
		if err := json.Unmarshal([]byte(got.text), &page); err != nil || len(page.Items) != 3 {
			t.Errorf("board: %v %d %s", err, got.status, got.text)
		}
		if got := h.ask(http.MethodGet, "/api/v1/squads/"+crew.ID+"/board", outsider.token, nil); got.status != http.StatusNotFound {
			t.Errorf("an outsider's board: %d", got.status)
		}
	})
}
