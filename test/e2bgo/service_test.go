package e2bgo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
	"agentsquad/test/e2bsdk/e2btest"
)

// TestService_OnRealSandboxes walks a sandbox of a squad through the verbs.
func TestService_OnRealSandboxes(t *testing.T) {
	t.Parallel()
	stack := e2btest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	st, err := store.Open(ctx, store.Config{URL: "sqlite:" + t.TempDir() + "/squad.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := sandbox.New(ctx, sandbox.Config{
		Store: st, Grace: time.Nanosecond, Pools: []sandbox.Pool{{Provider: "local", Min: 1}},
		Providers: map[string]sandbox.Provider{"local": {Client: connect(t, stack.URL, false), Node: "here", Mounts: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(run) }()
	var row squad.Sandbox
	for row.ID == "" { // a warm one waits
		rows, err := st.Sandboxes(ctx, store.SandboxFilter{Statuses: []squad.SandboxStatus{squad.SandboxRunning}})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 0 {
			row = rows[0]
		}
		time.Sleep(10 * time.Millisecond)
	}
	sq := squad.Squad{Name: "real", Status: squad.SquadActive}
	if err := st.Tx(ctx, func(tx *store.Tx) error { return tx.CreateSquad(ctx, &sq) }); err != nil {
		t.Fatal(err)
	}
	me := squad.System()
	asked := time.Now()
	claimed, err := s.Create(ctx, me, squad.SandboxRequest{SquadID: sq.ID})
	if err != nil || claimed.ID != row.ID {
		t.Fatalf("the warm one was not taken: %+v, %v", claimed, err)
	}
	t.Logf("made in %d ms, handed out of the pool in %s", row.CreateMS, time.Since(asked).Round(time.Millisecond))
	stop()
	<-ended
	if res, err := s.Execute(ctx, me, row.ID, squad.Command{Shell: "uname; whoami"}, nil); err != nil || res.Stdout != "Linux\nuser\n" {
		t.Errorf("execute = %+v, %v", res, err)
	}
	if info, err := s.Upload(ctx, me, row.ID, "up", strings.NewReader("load")); err != nil || info.Size != 4 {
		t.Errorf("upload = %+v, %v", info, err)
	}
	if _, err := s.Pause(ctx, me, row.ID); err != nil {
		t.Error(err)
	}
	if res, err := s.Execute(ctx, me, row.ID, squad.Command{Shell: "cat up"}, nil); err != nil || res.Stdout != "load" {
		t.Errorf("after pause = %+v, %v", res, err)
	}
	forks, err := s.Fork(ctx, me, row.ID, 2)
	if err != nil || len(forks) != 2 {
		t.Fatalf("fork = %v, %v", forks, err)
	}
	if report, err := s.Sweep(ctx, "local"); err != nil || report.Seen < 3 {
		t.Errorf("sweep = %+v, %v", report, err)
	}
	if checks := s.Check(ctx); checks[0].Status != "ok" {
		t.Errorf("check = %+v", checks)
	}
	rows, err := st.Sandboxes(ctx, store.SandboxFilter{Statuses: []squad.SandboxStatus{squad.SandboxCreated, squad.SandboxRunning, squad.SandboxPaused}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := s.Destroy(ctx, me, r.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Sweep(ctx, "local"); err != nil { // a refill may have been cut short by stop
		t.Error(err)
	}
	if left := stack.Runtime.List(); len(left) != 0 {
		t.Errorf("%d sandboxes left over", len(left))
	}
}
