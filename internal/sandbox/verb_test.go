package sandbox_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	squad "agentsquad"
	"agentsquad/e2b/e2btest"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
)

// live is a house with a sandbox in which the real daemon runs.
func live(t *testing.T, change func(*sandbox.Config)) (*house, squad.Sandbox) {
	t.Helper()
	h := build(t, machine(t), change)
	row, err := h.service.Create(bounded(t), h.person(squad.RoleMember), squad.SandboxRequest{SquadID: h.squad.ID, MemberID: h.member.ID, TaskID: h.task.ID})
	if err != nil {
		t.Fatal(err)
	}
	return h, row
}

func TestExecute_TellsOutputExitCodeAndTime(t *testing.T) {
	t.Parallel()
	h, row := live(t, func(c *sandbox.Config) { c.MaxOutput = 1000 })
	var mu sync.Mutex
	var heard strings.Builder
	res, err := h.service.Execute(bounded(t), h.person(squad.RoleMember), row.ID,
		squad.Command{Shell: `echo "naïve $WORD"; exit 3`, Env: map[string]string{"WORD": "x"}, Dir: "/tmp"},
		func(c squad.LogChunk) { mu.Lock(); defer mu.Unlock(); heard.WriteString(c.Stream + ":" + c.Text) })
	if err != nil || res.ExitCode != 3 || res.Stdout != "naïve x\n" || res.Error != "" {
		t.Errorf("result = %+v, %v", res, err)
	}
	if heard.String() != "stdout:naïve x\n" {
		t.Errorf("heard %q", heard.String())
	}
	res, err = h.service.Execute(bounded(t), squad.System(), row.ID, squad.Command{Shell: "seq 10000"}, nil)
	if err != nil || !res.Truncated || len(res.Stdout) != 1000 || !strings.HasSuffix(res.Stdout, "10000\n") {
		t.Errorf("long output: %d bytes, truncated %v, %v", len(res.Stdout), res.Truncated, err)
	}
	res, err = h.service.Execute(bounded(t), squad.System(), row.ID, squad.Command{Shell: "echo begun; exec sleep 600", TimeoutSec: 1}, nil)
	if err != nil || !strings.Contains(res.Error, "timeout after 1s") || res.Stdout != "begun\n" || res.ExitCode != -1 {
		t.Errorf("timeout: %+v, %v", res, err)
	}
	if got := h.row(row.ID); got.CommandCount != 3 || !got.LastUsedAt.After(row.LastUsedAt) {
		t.Errorf("row counts %d commands", got.CommandCount)
	}
	entries, err := h.store.AuditEntries(t.Context(), store.AuditEntryFilter{Subject: row.ID})
	if err != nil || len(entries) != 4 || entries[1].Action != "sandbox.execute" || entries[1].Actor != "user:u1" {
		t.Errorf("audit = %+v, %v", entries, err)
	}
}

func TestExecute_SandboxThatDiesIsMarkedAtOnce(t *testing.T) {
	t.Parallel()
	h, row := live(t, nil)
	_, err := h.service.Execute(bounded(t), squad.System(), row.ID, squad.Command{Shell: "echo half; exec sleep 600"},
		func(squad.LogChunk) { h.provider.Vanish(row.E2BID) })
	code(t, err, squad.CodeConflict)
	if got := h.row(row.ID); got.Status != squad.SandboxError || got.TerminatedAt.IsZero() {
		t.Errorf("row = %s", got.Status)
	}
	if last := h.events(row.ID); last[len(last)-1] != squad.EventSandboxTerminated {
		t.Errorf("events = %v", last)
	}
	_, err = h.service.Execute(bounded(t), squad.System(), row.ID, squad.Command{Shell: "true"}, nil)
	code(t, err, squad.CodeConflict)
}

func TestExecute_NoSecretInTheAuditLog(t *testing.T) {
	t.Parallel()
	h, row := live(t, nil)
	cmd := squad.Command{Shell: "true https://bot:hunter22@example.com/x TOKEN=abcdefgh123"}
	if _, err := h.service.Execute(bounded(t), squad.System(), row.ID, cmd, nil); err != nil {
		t.Fatal(err)
	}
	entries, err := h.store.AuditEntries(t.Context(), store.AuditEntryFilter{Subject: row.ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(string(e.Detail), "hunter22") || strings.Contains(string(e.Detail), "abcdefgh123") {
			t.Errorf("audit entry %s holds a secret: %s", e.Action, e.Detail)
		}
	}
}

func TestPolicy_RefusalNamesTheRule(t *testing.T) {
	t.Parallel()
	h, row := live(t, nil)
	h.squad.Config.DenyCommands = []string{"curl *"}
	h.squad.Config.RoleCommands = map[string]squad.CommandPolicy{"developer": {Deny: []string{"git push --force*"}}}
	if err := h.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.UpdateSquad(t.Context(), &h.squad) }); err != nil {
		t.Fatal(err)
	}
	for shell, rule := range map[string]string{"echo hi && curl http://x": "curl *", "git push --force-with-lease": "git push --force*"} {
		_, err := h.service.Execute(bounded(t), h.person(squad.RoleMember), row.ID, squad.Command{Shell: shell}, nil)
		code(t, err, squad.CodeRule)
		if err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("refusal of %q does not name %q: %v", shell, rule, err)
		}
	}
	if _, err := h.service.Execute(bounded(t), squad.System(), row.ID, squad.Command{Shell: "curl --version >/dev/null 2>&1; true"}, nil); err != nil {
		t.Errorf("the house's own command: %v", err)
	}
	_, err := h.service.Terminal(bounded(t), h.person(squad.RoleMember), row.ID, 80, 24)
	code(t, err, squad.CodeRule)
}

// TestOwnership walks every verb with every kind of stranger: each is answered
// as if the sandbox did not exist, and nothing happens to it.
func TestOwnership_StrangersFindNothing(t *testing.T) {
	t.Parallel()
	h, row := live(t, nil)
	other, _, otherTask := h.people("second")
	strangers := map[string]squad.Actor{
		"person of another squad": {Kind: squad.TokenUser, UserID: "u2", Ceiling: squad.RoleAdmin, Roles: map[string]squad.UserRole{other.ID: squad.RoleAdmin}},
		"viewer":                  h.person(squad.RoleViewer),
		"agent of another task":   {Kind: squad.TokenAgent, MemberID: h.member.ID, TaskID: otherTask.ID, SandboxID: "x"},
		"nobody":                  {},
	}
	verbs := map[string]func(context.Context, squad.Actor) error{
		"open": func(ctx context.Context, a squad.Actor) error { _, err := h.service.Open(ctx, a, row.ID); return err },
		"execute": func(ctx context.Context, a squad.Actor) error {
			_, err := h.service.Execute(ctx, a, row.ID, squad.Command{Shell: "true"}, nil)
			return err
		},
		"files": func(ctx context.Context, a squad.Actor) error {
			_, err := h.service.Files(ctx, a, row.ID, ".")
			return err
		},
		"upload": func(ctx context.Context, a squad.Actor) error {
			_, err := h.service.Upload(ctx, a, row.ID, "f", strings.NewReader(""))
			return err
		},
		"download": func(ctx context.Context, a squad.Actor) error {
			_, _, err := h.service.Download(ctx, a, row.ID, "f")
			return err
		},
		"remove": func(ctx context.Context, a squad.Actor) error { return h.service.Remove(ctx, a, row.ID, "f") },
		"terminal": func(ctx context.Context, a squad.Actor) error {
			_, err := h.service.Terminal(ctx, a, row.ID, 1, 1)
			return err
		},
		"dial": func(ctx context.Context, a squad.Actor) error {
			_, err := h.service.Dial(ctx, a, row.ID, 80)
			return err
		},
		"pause":  func(ctx context.Context, a squad.Actor) error { _, err := h.service.Pause(ctx, a, row.ID); return err },
		"resume": func(ctx context.Context, a squad.Actor) error { _, err := h.service.Resume(ctx, a, row.ID); return err },
		"fork": func(ctx context.Context, a squad.Actor) error {
			_, err := h.service.Fork(ctx, a, row.ID, 1)
			return err
		},
		"status": func(ctx context.Context, a squad.Actor) error { _, err := h.service.Status(ctx, a, row.ID); return err },
		"metrics": func(ctx context.Context, a squad.Actor) error {
			_, err := h.service.Metrics(ctx, a, row.ID)
			return err
		},
		"destroy": func(ctx context.Context, a squad.Actor) error { return h.service.Destroy(ctx, a, row.ID) },
		"create": func(ctx context.Context, a squad.Actor) error {
			_, err := h.service.Create(ctx, a, squad.SandboxRequest{SquadID: h.squad.ID})
			return err
		},
	}
	for who, actor := range strangers {
		for verb, do := range verbs {
			if err := do(bounded(t), actor); squad.CodeOf(err) != squad.CodeNotFound {
				t.Errorf("%s may %s: %v", who, verb, err)
			}
		}
	}
	if got := h.row(row.ID); got.Status != squad.SandboxRunning || h.provider.Made() != 1 {
		t.Errorf("strangers changed something: %+v", got)
	}
	own := squad.Actor{Kind: squad.TokenAgent, MemberID: h.member.ID, TaskID: h.task.ID, SquadID: h.squad.ID}
	if _, err := h.service.Execute(bounded(t), own, row.ID, squad.Command{Shell: "true"}, nil); err != nil {
		t.Errorf("its own agent: %v", err)
	}
}

func TestFiles_UploadListDownloadRemove(t *testing.T) {
	t.Parallel()
	h, row := live(t, nil)
	me, dir := h.person(squad.RoleMember), t.TempDir()
	info, err := h.service.Upload(bounded(t), me, row.ID, dir+"/a/b", strings.NewReader("content"))
	if err != nil || info.Size != 7 || info.Type != "file" {
		t.Fatalf("upload = %+v, %v", info, err)
	}
	list, err := h.service.Files(bounded(t), me, row.ID, dir+"/a")
	if err != nil || len(list) != 1 || list[0].Name != "b" {
		t.Errorf("files = %+v, %v", list, err)
	}
	r, size, err := h.service.Download(bounded(t), me, row.ID, dir+"/a/b")
	if err != nil || size != 7 {
		t.Fatalf("download = %d, %v", size, err)
	}
	data, _ := io.ReadAll(r)
	r.Close()
	if !bytes.Equal(data, []byte("content")) {
		t.Errorf("downloaded %q", data)
	}
	if err := h.service.Remove(bounded(t), me, row.ID, dir+"/a"); err != nil {
		t.Error(err)
	}
	_, _, err = h.service.Download(bounded(t), me, row.ID, dir+"/a/b")
	code(t, err, squad.CodeNotFound)
	code(t, h.service.Remove(bounded(t), me, row.ID, dir+"/a"), squad.CodeNotFound)
}

func TestTerminalAndDial_ReachInside(t *testing.T) {
	t.Parallel()
	h, row := live(t, nil)
	term, err := h.service.Terminal(bounded(t), h.person(squad.RoleMember), row.ID, 80, 24)
	if err != nil {
		t.Fatal(err)
	}
	if err := term.Resize(90, 20); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(term, "stty size; exit\n"); err != nil {
		t.Fatal(err)
	}
	screen, _ := io.ReadAll(term)
	if !strings.Contains(string(screen), "20 90") {
		t.Errorf("screen = %q", screen)
	}
	if err := term.Close(); err != nil {
		t.Error(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
		}
	}()
	conn, err := h.service.Dial(bounded(t), h.person(squad.RoleMember), row.ID, listener.Addr().(*net.TCPAddr).Port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "echo")
	back := make([]byte, 4)
	if _, err := io.ReadFull(conn, back); err != nil || string(back) != "echo" {
		t.Errorf("echo = %q, %v", back, err)
	}
}

func TestLife_PauseResumeForkDestroy(t *testing.T) {
	t.Parallel()
	h, row := live(t, nil)
	me := h.person(squad.RoleMember)
	for range 2 {
		if got, err := h.service.Pause(bounded(t), me, row.ID); err != nil || got.Status != squad.SandboxPaused {
			t.Fatalf("pause = %s, %v", got.Status, err)
		}
	}
	for range 2 {
		if got, err := h.service.Resume(bounded(t), me, row.ID); err != nil || got.Status != squad.SandboxRunning {
			t.Fatalf("resume = %s, %v", got.Status, err)
		}
	}
	if _, err := h.service.Pause(bounded(t), me, row.ID); err != nil {
		t.Fatal(err)
	}
	if res, err := h.service.Execute(bounded(t), me, row.ID, squad.Command{Shell: "echo awake"}, nil); err != nil || res.Stdout != "awake\n" {
		t.Errorf("a paused sandbox is woken by need: %+v, %v", res, err)
	}
	forks, err := h.service.Fork(bounded(t), me, row.ID, 2)
	if err != nil || len(forks) != 2 || forks[0].ID == forks[1].ID || forks[0].E2BID == row.E2BID || forks[0].SquadID != h.squad.ID {
		t.Fatalf("fork = %+v, %v", forks, err)
	}
	if samples, err := h.service.Metrics(bounded(t), me, row.ID); err != nil || len(samples) != 1 || samples[0].MemoryMB != 64 {
		t.Errorf("metrics = %+v, %v", samples, err)
	}
	h.provider.Vanish(forks[1].E2BID) // gone already is no error
	for _, id := range []string{row.ID, forks[0].ID, forks[1].ID, row.ID} {
		if err := h.service.Destroy(bounded(t), me, id); err != nil {
			t.Error(err)
		}
	}
	if left := h.provider.Running(); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	want := []squad.EventType{
		squad.EventSandboxCreated, squad.EventSandboxStatus, squad.EventSandboxStatus,
		squad.EventSandboxStatus, squad.EventSandboxStatus, squad.EventSandboxTerminated,
	}
	if got := h.events(row.ID); !slices.Equal(got, want) {
		t.Errorf("events = %v", got)
	}
	code(t, second(h.service.Pause(bounded(t), me, row.ID)), squad.CodeConflict)
}

func second[T any](_ T, err error) error { return err }

func TestCheck_TellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	h, _ := live(t, nil)
	if checks := h.service.Check(t.Context()); len(checks) != 1 || checks[0].Status != "ok" || !strings.Contains(checks[0].Detail, "envd 0.6.4") {
		t.Errorf("checks = %+v", checks)
	}
	h.provider.Close()
	if checks := h.service.Check(t.Context()); checks[0].Status != "failed" || checks[0].Remedy == "" {
		t.Errorf("checks = %+v", checks)
	}
}

func TestCheck_TellsTheLimitsOfTheTierOnceTheyAreKnown(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{Limit: 2, Header: http.Header{
		"X-Ratelimit-Limit": {"20000"}, "X-Ratelimit-Remaining": {"19876"}, "X-Ratelimit-Reset": {"30"},
	}}, nil)
	h.acquire()
	h.acquire()
	_, err := h.service.Acquire(bounded(t), h.request(h.execution()))
	code(t, err, squad.CodeQuota)
	checks := h.service.Check(t.Context())
	if len(checks) != 1 || checks[0].Status != "ok" {
		t.Fatalf("checks = %+v", checks)
	}
	for _, want := range []string{"2 of at most 2 sandboxes of the account run", "19876 of 20000 requests left for 30s"} {
		if !strings.Contains(checks[0].Detail, want) {
			t.Errorf("no %q in %q", want, checks[0].Detail)
		}
	}
}
