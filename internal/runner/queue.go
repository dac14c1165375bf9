package runner

import (
	"cmp"
	"context"
	"time"

	squad "agentsquad"
	"agentsquad/internal/flow"
	"agentsquad/internal/store"
)

// keepPromoting moves executions from the queue into work whenever something
// changed, and every few seconds for what another node changed.
func (r *Runner) keepPromoting(ctx context.Context) {
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for {
		if err := r.promote(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.ErrorContext(ctx, "promote executions", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.bell:
		case <-tick.C:
		}
	}
}

// queuePage is how many waiting executions are looked at together.
const queuePage = 500

// promote starts as many queued executions as the limits allow, most urgent
// first. A queued execution holds no sandbox; its flow begins in the transaction
// that takes it out of the queue, so that neither is without the other. One that
// has no place yet, or whose task waits for others, is in nobody's way.
func (r *Runner) promote(ctx context.Context) error {
	queued, err := r.cfg.Store.CountExecutions(ctx, store.ExecutionFilter{Statuses: []squad.ExecutionStatus{squad.ExecutionQueued}})
	if err != nil || queued == 0 {
		return err
	}
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, "runner-queue"); err != nil {
			return err
		}
		running, err := tx.Executions(ctx, store.ExecutionFilter{Statuses: []squad.ExecutionStatus{squad.ExecutionRunning}})
		if err != nil {
			return err
		}
		room := newRoom(r.cfg.Limits, running)
		for passed := 0; !room.full(); {
			page, err := tx.Queue(ctx, queuePage, passed)
			if err != nil {
				return err
			}
			for _, e := range page {
				fits, err := room.take(ctx, tx, e)
				if err != nil {
					return err
				}
				if !fits {
					passed++
				} else if err := r.start(ctx, tx, e); err != nil {
					return err
				}
			}
			if len(page) < queuePage {
				return nil
			}
		}
		return nil
	})
}

// start takes one execution out of the queue. One that has a flow already went
// back for another turn: its flow waits for the signal.
func (r *Runner) start(ctx context.Context, tx *store.Tx, e squad.Execution) error {
	again := !e.StartedAt.IsZero()
	if _, err := r.cfg.Life.MoveExecution(ctx, tx, e.ID, squad.ExecutionRunning, func(e *squad.Execution) {
		e.Liveness = squad.Liveness{State: "working", Since: tx.Now}
	}); err != nil {
		return err
	}
	if again {
		return r.cfg.Flows.Signal(ctx, tx, e.ID, signalSlot, nil)
	}
	return r.cfg.Flows.Start(ctx, tx, flow.Spec{ID: e.ID, Name: flowExecution, Queue: flowExecution, Input: input{ExecutionID: e.ID}})
}

// room counts what runs against the limits of installation, squad and member.
type room struct {
	limits  Limits
	total   int
	squads  map[string]int
	members map[string]int
	bounds  map[string]int // limit by squad or member, read once
}

func newRoom(limits Limits, running []squad.Execution) *room {
	m := &room{limits: limits, squads: map[string]int{}, members: map[string]int{}, bounds: map[string]int{}}
	for _, e := range running {
		if e.Liveness.State != "quota" { // it waits for a sandbox, and takes nobody's place
			m.add(e)
		}
	}
	return m
}

func (m *room) add(e squad.Execution) {
	m.total++
	m.squads[e.SquadID]++
	if e.MemberID != "" {
		m.members[e.MemberID]++
	}
}

// full says that the installation has no place for anybody.
func (m *room) full() bool { return m.total >= m.limits.Running }

// take claims a place for an execution, if there is one.
func (m *room) take(ctx context.Context, tx *store.Tx, e squad.Execution) (bool, error) {
	if m.full() {
		return false, nil
	}
	ofSquad, err := m.bound("squad:"+e.SquadID, func() (int, error) {
		s, err := tx.Squad(ctx, e.SquadID)
		if s.Status != squad.SquadActive && err == nil {
			return -1, nil // paused: nothing new starts
		}
		return s.Config.MaxRunning, err
	})
	if err != nil || ofSquad < 0 || ofSquad > 0 && m.squads[e.SquadID] >= ofSquad {
		return false, err
	}
	if e.MemberID != "" {
		ofMember, err := m.bound("member:"+e.MemberID, func() (int, error) {
			member, err := tx.Member(ctx, e.MemberID)
			return cmp.Or(member.Config.MaxRunning, m.limits.PerMember), err
		})
		if err != nil || m.members[e.MemberID] >= ofMember {
			return false, err
		}
	}
	m.add(e)
	return true, nil
}

func (m *room) bound(key string, read func() (int, error)) (int, error) {
	if n, ok := m.bounds[key]; ok {
		return n, nil
	}
	n, err := read()
	if err == nil {
		m.bounds[key] = n
	}
	return n, err
}
