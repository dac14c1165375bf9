package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// world is one of everything, each field filled.
type world struct {
	User       squad.User
	Squad      squad.Squad
	SquadUser  squad.SquadUser
	Credential squad.Credential
	Repository squad.Repository
	Member     squad.Member
	Before     squad.Task
	Task       squad.Task
	Execution  squad.Execution
	Sandbox    squad.Sandbox
	Token      squad.APIToken
	Git        squad.GitOperation
	Message    squad.Message
	Pull       squad.PullRequest
	Comment    squad.ReviewComment
	Usage      squad.Usage
	Audit      squad.AuditEntry
}

// fill sets every field of v to something that is not zero, so that a field of
// the vocabulary that the store forgets is noticed.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, (*n)*1000, time.UTC)))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(fmt.Sprintf(`{"n":%d}`, *n))))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		m, of := reflect.MakeMap(v.Type()), reflect.New(v.Type().Elem()).Elem()
		if of.Kind() == reflect.Interface {
			of.Set(reflect.ValueOf(fmt.Sprint("v", *n)))
		} else {
			fill(of, n)
		}
		m.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", *n)).Convert(v.Type().Key()), of)
		v.Set(m)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n, " ü\n"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	}
}

func newWorld() *world {
	w, n := &world{}, 0
	for i := range reflect.TypeFor[world]().NumField() {
		f := reflect.ValueOf(w).Elem().Field(i)
		fill(f, &n)
		if id := f.FieldByName("ID"); id.IsValid() {
			id.SetString(squad.NewID())
		}
	}
	w.Squad.UserID, w.Squad.Status = w.User.ID, squad.SquadActive
	w.SquadUser = squad.SquadUser{SquadID: w.Squad.ID, UserID: w.User.ID, Role: squad.RoleViewer}
	w.Credential.SquadID, w.Credential.Kind = w.Squad.ID, squad.CredentialToken
	w.Repository.SquadID, w.Repository.Forge, w.Repository.CredentialID = w.Squad.ID, squad.ForgeGitea, w.Credential.ID
	w.Member.SquadID, w.Member.SandboxID, w.Member.CurrentTaskID = w.Squad.ID, "", ""
	for _, t := range []*squad.Task{&w.Before, &w.Task} {
		t.SquadID, t.RepositoryID, t.AssigneeID = w.Squad.ID, w.Repository.ID, w.Member.ID
		t.Status, t.Flag, t.Priority, t.ExecutionID, t.DependsOn = squad.TaskInReview, squad.FlagFailed, 3, "", nil
		t.Version = 1
	}
	w.Before.Number, w.Task.Number = 1, 2
	w.Task.DependsOn = []string{w.Before.ID}
	e := &w.Execution
	e.TaskID, e.SquadID, e.MemberID, e.SandboxID = w.Task.ID, w.Squad.ID, w.Member.ID, ""
	e.Status, e.Percent = squad.ExecutionFailed, 50
	b := &w.Sandbox
	b.SquadID, b.AgentID, b.TaskID, b.ExecutionID, b.Status = w.Squad.ID, w.Member.ID, w.Task.ID, w.Execution.ID, squad.SandboxPaused
	k := &w.Token
	k.UserID, k.MemberID, k.TaskID, k.SandboxID = w.User.ID, w.Member.ID, w.Task.ID, w.Sandbox.ID
	k.Kind, k.Hash = squad.TokenAgent, fmt.Sprintf("%064d", 7)
	w.Git.SandboxID, w.Git.ExecutionID, w.Git.Status = w.Sandbox.ID, w.Execution.ID, "failed"
	w.Message.SquadID, w.Message.TaskID, w.Message.ExecutionID = w.Squad.ID, w.Task.ID, w.Execution.ID
	p := &w.Pull
	p.RepositoryID, p.TaskID, p.State = w.Repository.ID, w.Task.ID, squad.PullOpen
	p.Mergeable, p.Checks, p.Review = "clean", "pending", "approved"
	w.Comment.PullID = w.Pull.ID
	u := &w.Usage
	u.ExecutionID, u.TaskID, u.MemberID, u.SquadID, u.SandboxID = w.Execution.ID, w.Task.ID, w.Member.ID, w.Squad.ID, w.Sandbox.ID
	return w
}

// create writes the world in the order of its references.
func (w *world) create(ctx context.Context, tx *store.Tx) error {
	for _, f := range []func() error{
		func() error { return tx.CreateUser(ctx, &w.User) },
		func() error { return tx.CreateSquad(ctx, &w.Squad) },
		func() error { return tx.CreateSquadUser(ctx, &w.SquadUser) },
		func() error { return tx.CreateCredential(ctx, &w.Credential) },
		func() error { return tx.SetSealedCredential(ctx, w.Credential.ID, []byte{0, 1, 255}) },
		func() error { return tx.CreateRepository(ctx, &w.Repository) },
		func() error { return tx.CreateMember(ctx, &w.Member) },
		func() error { return tx.CreateTask(ctx, &w.Before) },
		func() error { return tx.CreateTask(ctx, &w.Task) },
		func() error { return tx.CreateExecution(ctx, &w.Execution) },
		func() error { return tx.CreateSandbox(ctx, &w.Sandbox) },
		func() error { return tx.CreateAPIToken(ctx, &w.Token) },
		func() error { return tx.CreateGitOperation(ctx, &w.Git) },
		func() error { return tx.CreateMessage(ctx, &w.Message) },
		func() error { return tx.CreatePullRequest(ctx, &w.Pull) },
		func() error { return tx.CreateReviewComment(ctx, &w.Comment) },
		func() error { return tx.CreateAuditEntry(ctx, &w.Audit) },
		func() error { return tx.AddUsage(ctx, &w.Usage) },
		func() error { return tx.SetSetting(ctx, "colour", "red") },
		func() error {
			return tx.Append(ctx, squad.Event{Type: squad.EventTaskCreated, TaskID: w.Task.ID, Payload: []byte(`{"b":1,"a":2}`)})
		},
	} {
		if err := f(); err != nil {
			return err
		}
	}
	w.Task.CostUSD += w.Usage.CostUSD
	w.Execution.TokensIn += w.Usage.TokensIn
	w.Execution.TokensOut += w.Usage.TokensOut
	w.Execution.TokensCached += w.Usage.TokensCached
	w.Execution.ModelCostUSD += w.Usage.CostUSD
	return nil
}

// check wants the database to hold the world as it is.
func (w *world) check(t *testing.T, q *store.Query) {
	t.Helper()
	ctx := t.Context()
	same(t, w.User)(q.User(ctx, w.User.ID))
	same(t, w.Squad)(q.Squad(ctx, w.Squad.ID))
	same(t, w.SquadUser)(q.SquadUser(ctx, w.Squad.ID, w.User.ID))
	same(t, w.Credential)(q.Credential(ctx, w.Credential.ID))
	same(t, []byte{0, 1, 255})(q.SealedCredential(ctx, w.Credential.ID))
	same(t, w.Repository)(q.Repository(ctx, w.Repository.ID))
	same(t, w.Member)(q.Member(ctx, w.Member.ID))
	same(t, w.Before)(q.Task(ctx, w.Before.ID))
	same(t, w.Task)(q.Task(ctx, w.Task.ID))
	same(t, w.Task)(q.TaskByNumber(ctx, w.Squad.ID, w.Task.Number))
	same(t, w.Execution)(q.Execution(ctx, w.Execution.ID))
	same(t, w.Sandbox)(q.Sandbox(ctx, w.Sandbox.ID))
	same(t, w.Sandbox)(q.RunningSandboxOfTask(ctx, w.Task.ID))
	same(t, w.Sandbox)(q.SandboxByE2BID(ctx, w.Sandbox.E2BID))
	same(t, w.Token)(q.APIToken(ctx, w.Token.ID))
	same(t, w.Token)(q.TokenByHash(ctx, w.Token.Hash))
	same(t, w.Git)(q.GitOperation(ctx, w.Git.ID))
	same(t, w.Message)(q.Message(ctx, w.Message.ID))
	same(t, w.Pull)(q.PullRequest(ctx, w.Pull.ID))
	same(t, w.Pull)(q.PullRequestByBranch(ctx, w.Repository.ID, w.Pull.Head))
	same(t, w.Pull)(q.PullRequestByNumber(ctx, w.Repository.ID, w.Pull.Number))
	same(t, w.Comment)(q.ReviewComment(ctx, w.Comment.ID))
	same(t, w.Usage)(q.Usage(ctx, w.Usage.ID))
	same(t, w.Audit)(q.AuditEntry(ctx, w.Audit.ID))
	same(t, "red")(q.Setting(ctx, "colour"))
	same(t, w.Usage.CostUSD)(q.SpentUSD(ctx, store.SpendFilter{TaskID: w.Task.ID, MemberID: w.Member.ID, SquadID: w.Squad.ID, Since: w.Usage.At}))
	same(t, w.Usage.TokensIn+w.Usage.TokensOut)(q.SpentTokens(ctx, store.SpendFilter{TaskID: w.Task.ID}))
	events, err := q.Events(ctx, store.EventFilter{TaskID: w.Task.ID})
	if err != nil || len(events) != 1 || string(events[0].Payload) != `{"b":1,"a":2}` || events[0].Seq != 1 {
		t.Errorf("events %+v, %v", events, err)
	}
}

func same[T any](t *testing.T, want T) func(got T, err error) {
	t.Helper()
	return func(got T, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%T differs (-want +got):\n%s", want, d)
		}
	}
}

func TestNouns_EveryFieldComesBack(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		write(t, s, w.create)
		w.check(t, s.Query)
		if err := s.View(t.Context(), func(q *store.Query) error { w.check(t, q); return nil }); err != nil {
			t.Fatal(err)
		}
		write(t, s, func(_ context.Context, tx *store.Tx) error { w.check(t, tx.Query); return nil })
	})
}

func TestNouns_UpdatesComeBack(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		write(t, s, w.create)
		write(t, s, func(ctx context.Context, tx *store.Tx) error {
			w.User.Name, w.Squad.Name, w.SquadUser.Role = "n", "n", squad.RoleAdmin
			w.Credential.Hint, w.Repository.Policy.Draft, w.Member.SandboxID = "h", false, w.Sandbox.ID
			w.Member.CurrentTaskID, w.Task.Title, w.Task.ExecutionID = w.Task.ID, "n", w.Execution.ID
			w.Task.DependsOn = nil
			w.Execution.SandboxID, w.Sandbox.Status = w.Sandbox.ID, squad.SandboxRunning
			w.Token.ExpiresAt, w.Git.Status, w.Message.Body = time.Time{}, "succeeded", "n"
			w.Pull.State, w.Comment.Body = squad.PullOpen, "n"
			for _, err := range []error{
				tx.UpdateUser(ctx, &w.User), tx.UpdateSquad(ctx, &w.Squad), tx.UpdateSquadUser(ctx, &w.SquadUser),
				tx.UpdateCredential(ctx, &w.Credential), tx.UpdateRepository(ctx, &w.Repository), tx.UpdateMember(ctx, &w.Member),
				tx.UpdateTask(ctx, &w.Task), tx.UpdateExecution(ctx, &w.Execution), tx.UpdateSandbox(ctx, &w.Sandbox),
				tx.UpdateAPIToken(ctx, &w.Token), tx.UpdateGitOperation(ctx, &w.Git), tx.UpdateMessage(ctx, &w.Message),
				tx.UpdatePullRequest(ctx, &w.Pull), tx.UpdateReviewComment(ctx, &w.Comment),
			} {
				if err != nil {
					return err
				}
			}
			return nil
		})
		w.check(t, s.Query)
	})
}

func TestNouns_MissingIsNotFound(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		write(t, s, func(_ context.Context, tx *store.Tx) error {
			for name, err := range map[string]error{
				"delete user": tx.DeleteUser(ctx, "x"), "delete squad": tx.DeleteSquad(ctx, "x"), "delete member": tx.DeleteMember(ctx, "x"),
				"delete repository": tx.DeleteRepository(ctx, "x"), "delete task": tx.DeleteTask(ctx, "x"), "delete execution": tx.DeleteExecution(ctx, "x"),
				"delete sandbox": tx.DeleteSandbox(ctx, "x"), "delete token": tx.DeleteAPIToken(ctx, "x"), "delete message": tx.DeleteMessage(ctx, "x"),
				"delete credential": tx.DeleteCredential(ctx, "x"), "delete pull": tx.DeletePullRequest(ctx, "x"),
				"delete comment": tx.DeleteReviewComment(ctx, "x"),
				"delete git":     tx.DeleteGitOperation(ctx, "x"), "delete place": tx.DeleteSquadUser(ctx, "x", "y"),
				"update task":  tx.UpdateTask(ctx, &squad.Task{ID: "x", Title: "t", Status: squad.TaskDone}),
				"update squad": tx.UpdateSquad(ctx, &squad.Squad{ID: "x", Name: "n", Status: squad.SquadActive}),
				"seal":         tx.SetSealedCredential(ctx, "x", nil),
			} {
				if squad.CodeOf(err) != squad.CodeNotFound {
					t.Errorf("%s: %v", name, err)
				}
			}
			return nil
		})
		_, e1 := s.Task(ctx, "x")
		_, e2 := s.Setting(ctx, "x")
		_, e3 := s.SealedCredential(ctx, "x")
		_, e4 := s.TokenByHash(ctx, "x")
		_, e5 := s.Lease(ctx, "x")
		for _, err := range []error{e1, e2, e3, e4, e5} {
			if squad.CodeOf(err) != squad.CodeNotFound {
				t.Error(err)
			}
		}
	})
}
