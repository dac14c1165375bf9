package api_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/api"
)

func TestTasks_LifeOfOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		s, member := h.squad("one")
		created := must(h.admin.CreateTask(ctx, squad.NewTask{SquadID: s.ID, Title: "write it", AssigneeID: member.ID, Labels: []string{"a"}}))(t)
		if created.Number != 1 || created.Status != squad.TaskTodo || created.Priority != 1 || created.GitBranch != "task-1" {
			t.Fatalf("created %+v", created)
		}
		byNumber := must(h.admin.Task(ctx, "1"))(t)
		if byNumber.ID != created.ID {
			t.Fatal("not found by its number")
		}
		changed := must(h.admin.ChangeTask(ctx, created.ID, created.Version, squad.TaskChange{Title: ptr("write it well"), Priority: ptr(2)}))(t)
		if changed.Title != "write it well" || changed.AssigneeID != member.ID || changed.Version <= created.Version {
			t.Fatalf("changed %+v", changed)
		}
		_, err := h.admin.ChangeTask(ctx, created.ID, created.Version, squad.TaskChange{Title: ptr("lost update")})
		wantCode(t, err, squad.CodeStale)
		moved := must(h.admin.MoveTask(ctx, created.ID, squad.TaskMove{Status: squad.TaskBacklog, Position: ptr(0.5)}))(t)
		if moved.Status != squad.TaskBacklog || moved.Position != 0.5 {
			t.Fatalf("moved %+v", moved)
		}
		_, err = h.admin.RunTask(ctx, created.ID, squad.RunOptions{})
		wantCode(t, err, squad.CodeUnavailable)
		if err := h.admin.DeleteTask(ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		_, err = h.admin.Task(ctx, created.ID)
		wantCode(t, err, squad.CodeNotFound)
	})
}

func TestTasks_BulkDoesEachByItself(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		s, _ := h.squad("one")
		a, b := h.task(s, "a"), h.task(s, "b")
		results := must(h.admin.BulkTasks(t.Context(), squad.TaskBulk{IDs: []string{a.ID, "nope", b.ID}, Action: "label", Label: "hot"}))(t)
		if len(results) != 3 || !results[0].OK || results[1].OK || results[1].Code != squad.CodeNotFound || !results[2].OK {
			t.Fatalf("%+v", results)
		}
		if rows := must(client.Collect(h.admin.Tasks(t.Context(), client.Values{"label": "hot"})))(t); len(rows) != 2 {
			t.Fatalf("%d have the label", len(rows))
		}
	})
}

func TestTasks_PagesMeetWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		guest := h.person("guest", false)
		want := 0
		for i := range 3 {
			s, _ := h.squad(fmt.Sprint("squad ", i))
			if i < 2 {
				must(h.admin.PutSquadUser(t.Context(), s.ID, guest.user.ID, squad.RoleViewer))(t)
				want += 7
			}
			for j := range 7 {
				h.task(s, fmt.Sprint(i, j))
			}
		}
		for _, newest := range []string{"", "true"} {
			seen := map[string]bool{}
			for row, err := range guest.Tasks(t.Context(), client.Values{"limit": "3", "newest": newest}) {
				if err != nil || seen[row.ID] {
					t.Fatalf("%s twice, or %v", row.Title, err)
				}
				seen[row.ID] = true
			}
			if len(seen) != want {
				t.Fatalf("newest %q: saw %d, want %d", newest, len(seen), want)
			}
		}
	})
}

func TestCreate_SameKeyHappensOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		s, _ := h.squad("one")
		header := bearer(h.admin.token)
		header.Set("Idempotency-Key", "k1")
		body := `{"squad_id":"` + s.ID + `","title":"once"}`
		_, first := h.request(http.MethodPost, api.Prefix+"/tasks", body, header)
		_, second := h.request(http.MethodPost, api.Prefix+"/tasks", body, header)
		if first != second || !strings.Contains(first, `"number":1`) {
			t.Fatalf("%s\n%s", first, second)
		}
		resp, other := h.request(http.MethodPost, api.Prefix+"/tasks", strings.Replace(body, "once", "twice", 1), header)
		if resp.StatusCode != http.StatusUnprocessableEntity {
			t.Fatalf("another request with the key: %s %s", resp.Status, other)
		}
		if rows := must(client.Collect(h.admin.Tasks(t.Context(), nil)))(t); len(rows) != 1 {
			t.Fatalf("%d tasks", len(rows))
		}
	})
}

func TestRepositories_LocalForgeIsReal(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		s, _ := h.squad("one")
		source := filepath.Join(t.TempDir(), "src")
		for _, args := range [][]string{
			{"init", "-q", "-b", "trunk", source},
			{"-C", source, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "chore: begin"},
		} {
			if out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v %s", args, err, out)
			}
		}
		r := must(h.admin.CreateRepository(ctx, squad.NewRepository{SquadID: s.ID, Name: "code", ImportPath: source}))(t)
		if r.DefaultBranch != "trunk" || r.Forge != squad.ForgeLocal {
			t.Fatalf("%+v", r)
		}
		branches := must(client.Collect(h.admin.Branches(ctx, r.ID)))(t)
		if len(branches) != 1 || branches[0] != "trunk" {
			t.Fatalf("branches %v", branches)
		}
		boss := h.person("boss", false)
		must(h.admin.PutSquadUser(ctx, s.ID, boss.user.ID, squad.RoleAdmin))(t)
		_, err := boss.CreateRepository(ctx, squad.NewRepository{SquadID: s.ID, Name: "etc", ImportPath: "/etc"})
		wantCode(t, err, squad.CodeForbidden)
		_, err = h.admin.CreateRepository(ctx, squad.NewRepository{SquadID: s.ID, Name: "o/n", Forge: squad.ForgeGitHub, URL: "https://user:pw@github.com/o/n"})
		wantCode(t, err, squad.CodeInvalid)
		if err := h.admin.DeleteRepository(ctx, r.ID); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCredentials_SecretIsWrittenAndNeverRead(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		const secret = "ghp_averyverysecretvalue1234"
		s, _ := h.squad("one")
		_, body := h.request(http.MethodPost, api.Prefix+"/credentials",
			`{"squad_id":"`+s.ID+`","name":"gh","kind":"token","provider":"github","secret":"`+secret+`"}`, bearer(h.admin.token))
		all := []string{body}
		for _, path := range []string{"/credentials", "/audit", "/events"} {
			_, b := h.request(http.MethodGet, api.Prefix+path, "", bearer(h.admin.token))
			all = append(all, b)
		}
		row := must(client.Collect(h.admin.Credentials(t.Context(), nil)))(t)[0]
		rotated := must(h.admin.ChangeCredential(t.Context(), row.ID, squad.CredentialChange{Secret: ptr(secret + "5678")}))(t)
		if row.Hint != "…1234" || rotated.Hint != "…5678" || rotated.RotatedAt.IsZero() {
			t.Fatalf("hints %q %q", row.Hint, rotated.Hint)
		}
		for _, text := range all {
			if strings.Contains(text, "averyverysecret") {
				t.Fatalf("the secret is in %s", text)
			}
		}
		_, long := h.request(http.MethodPost, api.Prefix+"/credentials", `{"name":"`+strings.Repeat("n", 200)+`","kind":"token","secret":"`+secret+`"}`, bearer(h.admin.token))
		if strings.Contains(long, "averyverysecret") {
			t.Fatalf("the secret is in the complaint: %s", long)
		}
		guest := h.person("guest", false)
		must(h.admin.PutSquadUser(t.Context(), s.ID, guest.user.ID, squad.RoleMember))(t)
		if rows := must(client.Collect(guest.Credentials(t.Context(), nil)))(t); len(rows) != 0 {
			t.Fatal("a member of the squad sees its credentials")
		}
	})
}

func TestBadInput_NamesTheFieldAndChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		s, _ := h.squad("one")
		before := must(h.store.LastSeq(t.Context()))(t)
		for _, c := range []struct{ method, path, body, field string }{
			{"POST", "/tasks", `{"squad_id":"` + s.ID + `"}`, "title"},
			{"POST", "/tasks", `{"squad_id":"` + s.ID + `","title":""}`, "title"},
			{"POST", "/tasks", `{"squad_id":"` + s.ID + `","title":"x","priority":9}`, "priority"},
			{"POST", "/tasks", `{"squad_id":"` + s.ID + `","title":"x","colour":"red"}`, "colour"},
			{"POST", "/tasks", `{"squad_id":"` + s.ID + `","title":"x","assignee_id":"nobody"}`, "assignee_id"},
			{"POST", "/tasks", `{"squad_id":"` + s.ID + `","title":"x","depends_on":["nothing"]}`, "depends_on"},
			{"POST", "/members", `{"squad_id":"` + s.ID + `","name":"x","role":"dev","config":{"agent":"llm"}}`, "llm_model"},
			{"POST", "/members", `{"squad_id":"` + s.ID + `","name":"x","role":"dev","config":{"agent":"ftp"}}`, "config.agent"},
			{"POST", "/users", `{"name":"x","email":"not mail"}`, "email"},
			{"POST", "/tokens", `{"name":"x","scopes":["root"]}`, "scopes"},
			{"POST", "/messages", `{"squad_id":"` + s.ID + `","to":"everyone","body":"x"}`, "to"},
			{"GET", "/tasks?limit=0", "", "limit"},
			{"GET", "/tasks?after=%21", "", "after"},
			{"GET", "/tasks?status=flying", "", "status"},
			{"GET", "/tasks?colour=red", "", "colour"},
			{"GET", "/sse?after=minus", "", "after"},
			{"GET", "/events?after=-1", "", "after"},
		} {
			resp, body := h.request(c.method, api.Prefix+c.path, c.body, bearer(h.admin.token))
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s %s: %s %s", c.method, c.path, resp.Status, body)
				continue
			}
			p := problem(t, body)
			if p.Code != squad.CodeInvalid || !strings.Contains(p.Field+" "+p.Detail, c.field) || p.RequestID == "" {
				t.Errorf("%s %s %s: field %q, want %q: %s", c.method, c.path, c.body, p.Field, c.field, body)
			}
		}
		for _, body := range []string{`{`, `[]`, `"x"`, `{"title":`, "\x00", `{"squad_id":1}`} {
			resp, text := h.request("POST", api.Prefix+"/tasks", body, bearer(h.admin.token))
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%q: %s %s", body, resp.Status, text)
			}
		}
		huge := `{"squad_id":"` + s.ID + `","title":"x","description":"` + strings.Repeat("d", 2<<20) + `"}`
		if resp, _ := h.request("POST", api.Prefix+"/tasks", huge, bearer(h.admin.token)); resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("2 MiB: %s", resp.Status)
		}
		if after := must(h.store.LastSeq(t.Context()))(t); after != before {
			t.Fatalf("something changed: event %d, was %d", after, before)
		}
	})
}

func TestSettings_AreKept(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		resp, _ := h.request("PUT", api.Prefix+"/settings/board", `{"value":{"columns":5}}`, bearer(h.admin.token))
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		_, body := h.request("GET", api.Prefix+"/settings/board", "", bearer(h.admin.token))
		if !strings.Contains(body, `{"columns":5}`) {
			t.Fatal(body)
		}
		if resp, _ := h.request("GET", api.Prefix+"/settings/sandbox.installation", "", bearer(h.admin.token)); resp.StatusCode != http.StatusNotFound {
			t.Fatalf("rooms' own settings are within reach: %s", resp.Status)
		}
	})
}
