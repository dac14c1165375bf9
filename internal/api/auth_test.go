package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/api"
	"agentsquad/internal/store"
)

func TestAuth_StrangersSeeNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		for _, path := range []string{"/tasks", "/squads", "/sse", "/users", "/events", "/nothing", "/sandboxes/x/terminal", "/sandboxes/x/exec"} {
			for _, header := range []http.Header{nil, bearer("squad_wrong"), bearer(strings.Repeat("x", 100_000)), {"Cookie": {"squad_session=nope"}}} {
				if len(header.Get("Authorization")) > 60_000 { // larger than any header is allowed to be
					header.Set("Authorization", header.Get("Authorization")[:60_000])
				}
				resp, body := h.request(http.MethodGet, api.Prefix+path, "", header)
				if resp.StatusCode != http.StatusUnauthorized || problem(t, body).Code != squad.CodeUnauthorized {
					t.Errorf("%s answers %s", path, resp.Status)
				}
			}
		}
	})
}

func TestAuth_PublicPathsAreFew(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		for path, want := range map[string]int{
			"/healthz": 200, "/readyz": 200, "/": 200, api.Prefix + "/openapi.json": 200, api.Prefix + "/docs": 200, "/mcp": 401, "/git/x": 503,
		} {
			resp, _ := h.request(http.MethodGet, path, "", nil)
			if resp.StatusCode != want {
				t.Errorf("%s answers %d, want %d", path, resp.StatusCode, want)
			}
		}
	})
}

func TestSignIn_LinkWorksOnceAndForAShortTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := newHouse(t, func(c *api.Config) { c.Now = func() time.Time { return now } })
	link := must(h.admin.SignInLink(t.Context(), "me"))(t)
	u := must(url.Parse(link.URL))(t)

	preview, _ := h.request(http.MethodGet, u.RequestURI(), "", http.Header{"Sec-Purpose": {"prefetch"}})
	if preview.StatusCode != http.StatusNoContent || len(preview.Cookies()) != 0 {
		t.Fatalf("a preview answers %s", preview.Status)
	}
	first, _ := h.request(http.MethodGet, u.RequestURI(), "", nil)
	if first.StatusCode != http.StatusSeeOther || len(first.Cookies()) != 1 {
		t.Fatalf("the link answers %s with %d cookies", first.Status, len(first.Cookies()))
	}
	c := first.Cookies()[0]
	if c.Name != api.SessionCookie || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure {
		t.Fatalf("cookie %+v", c)
	}
	cookie := http.Header{"Cookie": {c.Name + "=" + c.Value}}
	if resp, _ := h.request(http.MethodGet, api.Prefix+"/me", "", cookie); resp.StatusCode != http.StatusOK {
		t.Fatalf("the session answers %s", resp.Status)
	}
	second, _ := h.request(http.MethodGet, u.RequestURI(), "", nil)
	if len(second.Cookies()) != 0 {
		t.Fatal("the link worked twice")
	}
	late := must(url.Parse(must(h.admin.SignInLink(t.Context(), "me"))(t).URL))(t)
	now = now.Add(api.SignInLifetime + time.Minute) // the link was made by the clock of the database
	if resp, _ := h.request(http.MethodGet, late.RequestURI(), "", nil); len(resp.Cookies()) != 0 {
		t.Fatal("an old link worked")
	}
	out, _ := h.request(http.MethodDelete, api.Prefix+"/session", "", cookie)
	if out.StatusCode != http.StatusNoContent {
		t.Fatalf("sign out answers %s", out.Status)
	}
	if resp, _ := h.request(http.MethodGet, api.Prefix+"/me", "", cookie); resp.StatusCode != http.StatusUnauthorized {
		t.Fatalf("after signing out the session answers %s", resp.Status)
	}
}

func TestSession_ForeignPagesCannotAct(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		resp, _ := h.request(http.MethodPost, api.Prefix+"/session", `{"token":"`+h.admin.token+`"}`, nil)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("sign in answers %s", resp.Status)
		}
		c := resp.Cookies()[0]
		for name, header := range map[string]http.Header{
			"fetch metadata": {"Sec-Fetch-Site": {"cross-site"}},
			"sibling":        {"Sec-Fetch-Site": {"same-site"}},
			"origin":         {"Origin": {"https://evil.example"}},
		} {
			header.Set("Cookie", c.Name+"="+c.Value)
			resp, body := h.request(http.MethodPost, api.Prefix+"/squads", `{"name":"x"}`, header)
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s %s", name, resp.Status, body)
			}
		}
		own := http.Header{"Cookie": {c.Name + "=" + c.Value}, "Sec-Fetch-Site": {"same-origin"}}
		if resp, body := h.request(http.MethodPost, api.Prefix+"/squads", `{"name":"x"}`, own); resp.StatusCode != http.StatusCreated {
			t.Fatalf("our own page: %s %s", resp.Status, body)
		}
		cross, _ := h.request(http.MethodPost, api.Prefix+"/session", `{"token":"`+h.admin.token+`"}`, http.Header{"Sec-Fetch-Site": {"cross-site"}})
		if cross.StatusCode != http.StatusForbidden {
			t.Fatalf("a foreign page signs in: %s", cross.Status)
		}
	})
}

func TestSignIn_GuessingIsSlow(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := newHouse(t, func(c *api.Config) { c.Now = func() time.Time { return now } })
	limited := 0
	for range 40 {
		resp, body := h.request(http.MethodPost, api.Prefix+"/session", `{"token":"squad_guess"}`, nil)
		if resp.StatusCode == http.StatusTooManyRequests {
			limited++
			if resp.Header.Get("Retry-After") == "" || problem(t, body).Code != squad.CodeQuota {
				t.Fatalf("limited without saying until when: %s", body)
			}
		}
	}
	if limited != 20 {
		t.Fatalf("%d of 40 were limited, want 20", limited)
	}
}

func TestTokens_ExpiryScopesAndKinds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := newHouse(t, func(c *api.Config) { c.Now = func() time.Time { return now } })
	ctx := t.Context()
	s, _ := h.squad("one")

	read := h.client(must(h.admin.CreateToken(ctx, squad.NewToken{Name: "r", Scopes: []string{"read"}, ExpiresIn: 60}))(t).Secret)
	if _, err := read.Squad(ctx, s.ID); err != nil {
		t.Fatal(err)
	}
	_, err := read.CreateTask(ctx, squad.NewTask{SquadID: s.ID, Title: "x"})
	wantCode(t, err, squad.CodeForbidden)
	_, err = read.CreateToken(ctx, squad.NewToken{Name: "more"})
	wantCode(t, err, squad.CodeForbidden)
	_, err = read.SignInLink(ctx, "me")
	wantCode(t, err, squad.CodeForbidden)

	write := h.client(must(h.admin.CreateToken(ctx, squad.NewToken{Name: "w", Scopes: []string{"write"}}))(t).Secret)
	if _, err := write.CreateTask(ctx, squad.NewTask{SquadID: s.ID, Title: "x"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, write.DeleteSquad(ctx, s.ID), squad.CodeForbidden)

	key := must(h.admin.CreateToken(ctx, squad.NewToken{Name: "sdk", Kind: squad.TokenE2B}))(t)
	if !strings.HasPrefix(key.Secret, "e2b_") || len(key.Secret) != 44 {
		t.Fatalf("E2B key %q", key.Secret)
	}
	if owner, ok := h.server.KeyOwner(ctx, key.Secret); !ok || owner != h.admin.user.ID {
		t.Fatalf("owner %q %t", owner, ok)
	}
	_, err = h.client(key.Secret).Me(ctx)
	wantCode(t, err, squad.CodeUnauthorized)

	now = now.Add(2 * time.Minute)
	_, err = read.Squad(ctx, s.ID)
	wantCode(t, err, squad.CodeUnauthorized)
	if err := h.admin.DeleteToken(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := h.server.KeyOwner(ctx, key.Secret); ok {
		t.Fatal("a revoked key still opens")
	}
	for tok, err := range h.admin.Tokens(ctx, client.Values{"user_id": "all"}) {
		if err != nil || tok.Hash != "" || tok.Kind == squad.TokenSignIn {
			t.Fatalf("list shows %+v (%v)", tok, err)
		}
	}
}

func TestRoles_UnknownAndForbiddenLookTheSame(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		mine, _ := h.squad("mine")
		other, member := h.squad("other")
		hidden := h.task(other, "secret plan")
		guest := h.person("guest", false)
		must(h.admin.PutSquadUser(ctx, mine.ID, guest.user.ID, squad.RoleViewer))(t)

		for _, path := range []string{
			"/squads/" + other.ID, "/members/" + member.ID, "/tasks/" + hidden.ID, "/tasks?squad_id=" + other.ID,
			"/sse/squads/" + other.ID, "/users/" + h.admin.user.ID, "/squads/" + other.ID + "/users",
		} {
			real, body := h.request(http.MethodGet, api.Prefix+path, "", bearer(guest.token))
			fake := strings.NewReplacer(other.ID, squad.NewID(), member.ID, squad.NewID(), hidden.ID, squad.NewID(), h.admin.user.ID, squad.NewID()).Replace(path)
			unknown, other := h.request(http.MethodGet, api.Prefix+fake, "", bearer(guest.token))
			if real.StatusCode != http.StatusNotFound || unknown.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %s and %s", path, real.Status, unknown.Status)
				continue
			}
			if len(problem(t, body).Detail) != len(problem(t, other).Detail) {
				t.Errorf("%s tells them apart: %s / %s", path, body, other)
			}
		}
		tasks := must(client.Collect(guest.Tasks(ctx, nil)))(t)
		squads := must(client.Collect(guest.Squads(ctx, nil)))(t)
		if len(tasks) != 0 || len(squads) != 1 {
			t.Fatalf("the guest sees %d tasks and %d squads", len(tasks), len(squads))
		}
		own := h.task(mine, "open plan")
		must(guest.Task(ctx, own.ID))(t)
		_, err := guest.ChangeTask(ctx, own.ID, 0, squad.TaskChange{Title: ptr("mine now")})
		wantCode(t, err, squad.CodeForbidden)
		_, err = guest.CreateSquad(ctx, squad.NewSquad{Name: "x"})
		wantCode(t, err, squad.CodeForbidden)
		_, err = client.Collect(guest.Users(ctx))
		wantCode(t, err, squad.CodeForbidden)
	})
}

func TestAgentToken_OpensItsTaskOnly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		s, member := h.squad("one")
		own, foreign := h.task(s, "own"), h.task(s, "foreign")
		agent := h.client(must(h.admin.CreateToken(ctx, squad.NewToken{
			Name: "agent", Kind: squad.TokenAgent, MemberID: member.ID, TaskID: own.ID,
		}))(t).Secret)

		must(agent.Task(ctx, own.ID))(t)
		_, err := agent.Task(ctx, foreign.ID)
		wantCode(t, err, squad.CodeNotFound)
		if rows := must(client.Collect(agent.Tasks(ctx, nil)))(t); len(rows) != 1 || rows[0].ID != own.ID {
			t.Fatalf("the agent lists %v", rows)
		}
		_, err = agent.ChangeTask(ctx, own.ID, 0, squad.TaskChange{Title: ptr("easier")})
		wantCode(t, err, squad.CodeForbidden)
		_, err = agent.MoveTask(ctx, own.ID, squad.TaskMove{Status: squad.TaskDone})
		wantCode(t, err, squad.CodeForbidden)
		_, err = agent.CreateTask(ctx, squad.NewTask{SquadID: s.ID, Title: "more"})
		wantCode(t, err, squad.CodeNotFound)
		_, err = agent.CreateToken(ctx, squad.NewToken{Name: "more"})
		wantCode(t, err, squad.CodeForbidden)
		_, err = client.Collect(agent.Credentials(ctx, nil))
		if err != nil {
			t.Fatal(err)
		}
		sent := must(agent.SendMessage(ctx, squad.NewMessage{SquadID: s.ID, To: "squad", Body: "hello"}))(t)
		if sent.From != "member:"+member.ID {
			t.Fatalf("the message is from %s", sent.From)
		}
		_, err = agent.SendMessage(ctx, squad.NewMessage{SquadID: s.ID, TaskID: foreign.ID, To: "squad", Body: "hello"})
		wantCode(t, err, squad.CodeInvalid)

		must(h.admin.ChangeMember(ctx, member.ID, squad.MemberChange{IsActive: ptr(false)}))(t)
		_, err = agent.Task(ctx, own.ID)
		wantCode(t, err, squad.CodeUnauthorized)
	})
}

func TestAgentToken_ProjectManagerWritesTasksOfItsSquad(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		s, _ := h.squad("one")
		other, _ := h.squad("two")
		pm := must(h.admin.CreateMember(ctx, squad.NewMember{SquadID: s.ID, Name: "Pia", Role: squad.RoleProjectManager}))(t)
		first := h.task(s, "first")
		agent := h.client(must(h.admin.CreateToken(ctx, squad.NewToken{Name: "pm", Kind: squad.TokenAgent, MemberID: pm.ID, TaskID: first.ID}))(t).Secret)
		made := must(agent.CreateTask(ctx, squad.NewTask{SquadID: s.ID, Title: "split off"}))(t)
		must(agent.ChangeTask(ctx, made.ID, made.Version, squad.TaskChange{Priority: ptr(3)}))(t)
		_, err := agent.CreateTask(ctx, squad.NewTask{SquadID: other.ID, Title: "x"})
		wantCode(t, err, squad.CodeNotFound)
	})
}

func TestAdmin_TheLastOneStays(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		wantCode(t, h.admin.DeleteUser(t.Context(), h.admin.user.ID), squad.CodeConflict)
		_, err := h.admin.ChangeUser(t.Context(), "me", squad.UserChange{Admin: ptr(false)})
		wantCode(t, err, squad.CodeConflict)
		guest := h.person("guest", false)
		_, err = guest.ChangeUser(t.Context(), "me", squad.UserChange{Admin: ptr(true)})
		wantCode(t, err, squad.CodeForbidden)
		must(guest.ChangeUser(t.Context(), "me", squad.UserChange{Name: ptr("Gast")}))(t)
	})
}

func TestAudit_NamesWhoDidWhat(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		s, _ := h.squad("one")
		must(h.admin.ChangeSquad(t.Context(), s.ID, squad.SquadChange{Name: ptr("uno")}))(t)
		var actions []string
		for e, err := range h.admin.Audit(t.Context(), client.Values{"subject": s.ID}) {
			if err != nil || e.Actor != "user:"+h.admin.user.ID || e.Remote == "" {
				t.Fatalf("%+v %v", e, err)
			}
			actions = append(actions, e.Action)
		}
		if strings.Join(actions, " ") != "squad.change squad.create" {
			t.Fatalf("actions %v", actions)
		}
		var stored []squad.AuditEntry
		err := h.store.View(t.Context(), func(q *store.Query) (err error) {
			stored, err = q.AuditEntries(t.Context(), store.AuditEntryFilter{})
			return err
		})
		if err != nil || len(stored) == 0 {
			t.Fatal(err)
		}
	})
}

func ptr[T any](v T) *T { return &v }
