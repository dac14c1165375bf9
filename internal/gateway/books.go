package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

func storeRepositories(squadID, name string) store.RepositoryFilter {
	return store.RepositoryFilter{SquadID: squadID, Name: name, Limit: 2}
}

// entry is one git operation in the books.
type entry struct {
	g     *Gateway
	c     *caller
	row   squad.GitOperation
	start time.Time
	// elsewhere says that whoever asks keeps the row: only what comes with its end
	// is written here.
	elsewhere bool
}

// begin writes the row of an operation before anything happens.
func (g *Gateway) begin(ctx context.Context, c *caller, kind string) (*entry, error) {
	e := &entry{g: g, c: c, start: g.cfg.Now()}
	e.row = squad.GitOperation{SandboxID: c.sandbox.ID, ExecutionID: c.execution.ID, Kind: kind, Status: "running", Attempts: 1}
	if e.elsewhere = fromServer(ctx); e.elsewhere {
		return e, nil
	}
	err := g.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.CreateGitOperation(ctx, &e.row); err != nil {
			return err
		}
		return tx.Append(ctx, e.event("", 0))
	})
	if err != nil {
		return nil, fmt.Errorf("write git operation: %w", err)
	}
	return e, nil
}

func (e *entry) event(phase string, percent int) squad.Event {
	return e.c.event(squad.EventGitOperation, event.Payload(squad.GitProgress{GitOperation: e.row, Phase: phase, Percent: percent}))
}

// progress tells readers how far the operation is. It is a courtesy: a full log
// does not stop a push.
func (e *entry) progress(ctx context.Context, p git.Progress) {
	if e.elsewhere {
		if tell := git.ProgressOf(ctx); tell != nil {
			tell(p)
		}
		return
	}
	if e.g.cfg.Events == nil || p.Percent%25 != 0 {
		return
	}
	if err := e.g.cfg.Events.Append(ctx, e.event(p.Phase, p.Percent)); err != nil {
		e.g.cfg.Log.DebugContext(ctx, "progress was not told", "error", err)
	}
}

// finish closes the row with the outcome, and writes what the caller adds in the
// same transaction.
func (e *entry) finish(ctx context.Context, outcome error, add func(tx *store.Tx) error) error {
	e.row.DurationMS = e.g.cfg.Now().Sub(e.start).Milliseconds()
	e.row.Status = "succeeded"
	if outcome != nil {
		e.row.Status, e.row.ExitCode = "failed", 1
		e.row.OutputTail = git.Redact(message(outcome))
	}
	if e.elsewhere && add == nil {
		return nil
	}
	err := e.g.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if add != nil {
			if err := add(tx); err != nil {
				return err
			}
		}
		if e.elsewhere {
			return nil
		}
		if err := tx.UpdateGitOperation(ctx, &e.row); err != nil {
			return err
		}
		return tx.Append(ctx, e.event("", 0))
	})
	if err != nil {
		return fmt.Errorf("close git operation: %w", err)
	}
	return nil
}

// stored notes in the execution which commit is safe outside the sandbox now.
func (c *caller) stored(ctx context.Context, tx *store.Tx, sha, branch string, commits []squad.Commit) error {
	if c.execution.ID == "" {
		return nil
	}
	e, err := tx.Execution(ctx, c.execution.ID)
	if err != nil {
		return err
	}
	e.HeadSHA = sha
	if branch != "" {
		e.GitBranch = branch
		e.CommitHistory = joinHistory(e.CommitHistory, commits)
	}
	if err := tx.UpdateExecution(ctx, &e); err != nil {
		return err
	}
	return tx.Append(ctx, c.event(squad.EventExecutionUpdated, event.Payload(e)))
}

const maxHistory = 200

// joinHistory adds new commits, oldest first, leaving out those already there.
func joinHistory(have, add []squad.Commit) []squad.Commit {
	known := map[string]bool{}
	for _, c := range have {
		known[c.SHA] = true
	}
	for _, c := range add {
		if !known[c.SHA] {
			have = append(have, c)
		}
	}
	return have[max(0, len(have)-maxHistory):]
}

// made remembers which commits a task brought in through the gateway: those and
// no others it may replace.
type made struct {
	Commits []string `json:"commits"`
}

const maxMade = 5000

func madeKey(taskID string) string { return "git.made." + taskID }

func readMade(ctx context.Context, q *store.Query, taskID string) (made, error) {
	var m made
	text, err := q.Setting(ctx, madeKey(taskID))
	if squad.CodeOf(err) == squad.CodeNotFound {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, fmt.Errorf("read commits of task: %w", err)
	}
	return m, nil
}

// addMade adds commits, before they are let in.
func (g *Gateway) addMade(ctx context.Context, taskID string, commits []squad.Commit) error {
	if len(commits) == 0 {
		return nil
	}
	return g.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, madeKey(taskID)); err != nil {
			return err
		}
		m, err := readMade(ctx, tx.Query, taskID)
		if err != nil {
			return err
		}
		for _, c := range commits {
			m.Commits = append(m.Commits, c.SHA)
		}
		m.Commits = m.Commits[max(0, len(m.Commits)-maxMade):]
		text, err := json.Marshal(m)
		return errors.Join(err, tx.SetSetting(ctx, madeKey(taskID), string(text)))
	})
}
