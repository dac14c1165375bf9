package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// limit is one bound on spending that holds for a call.
type limit struct {
	scope  string // shown: "task", "member's day" …
	key    string // what reservations are counted by
	filter store.SpendFilter
	usd    float64
	tokens int64
}

// limits lists all bounds that hold for a caller.
func (m *models) limits(c *caller, now time.Time) []limit {
	day := now.UTC().Truncate(24 * time.Hour)
	own, member, team, house := c.task.Budget, c.member.Config.Budget, c.squad.Config.Budget, m.cfg.Models.Budget
	var list []limit
	add := func(scope, key string, f store.SpendFilter, usd float64) {
		if usd > 0 {
			list = append(list, limit{scope: scope, key: key, filter: f, usd: usd})
		}
	}
	task := store.SpendFilter{TaskID: c.task.ID}
	for _, b := range []squad.Budget{own, member, team, house} {
		add("task", "task:"+c.task.ID, task, b.TaskUSD)
		if b.Tokens > 0 {
			list = append(list, limit{scope: "task", key: "task:" + c.task.ID, filter: task, tokens: b.Tokens})
		}
	}
	add("task", "task:"+c.task.ID, task, own.TotalUSD)
	add("task's day", "task:"+c.task.ID, store.SpendFilter{TaskID: c.task.ID, Since: day}, own.DayUSD)
	if c.member.ID != "" {
		add("member's day", "member:"+c.member.ID, store.SpendFilter{MemberID: c.member.ID, Since: day}, member.DayUSD)
		add("member", "member:"+c.member.ID, store.SpendFilter{MemberID: c.member.ID}, member.TotalUSD)
	}
	add("squad's day", "squad:"+c.squad.ID, store.SpendFilter{SquadID: c.squad.ID, Since: day}, team.DayUSD)
	add("squad", "squad:"+c.squad.ID, store.SpendFilter{SquadID: c.squad.ID}, team.TotalUSD)
	add("installation's day", "all", store.SpendFilter{Since: day}, house.DayUSD)
	add("installation", "all", store.SpendFilter{}, house.TotalUSD)
	return list
}

// estimate is what a call may use.
type estimate struct {
	inUSD, allUSD float64
	tokens        int64
}

// ledger holds what running calls may still spend, so that calls at the same time
// cannot each take the same last dollar.
type ledger struct {
	mu    sync.Mutex
	held  map[string]*hold
	told  map[string]time.Time
	store *store.Store
}

type hold struct {
	calls  int
	usd    float64
	tokens int64
}

// reserve asks all limits and holds the estimate in each. A call that runs alone
// may begin while anything is left after its input; calls at the same time must fit
// with all they may use. So a budget is overdrawn by one answer at most.
func (l *ledger) reserve(ctx context.Context, limits []limit, est estimate) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := map[string]bool{}
	for _, lim := range limits {
		if err := l.ask(ctx, lim, est); err != nil {
			return nil, err
		}
		keys[lim.key] = true
	}
	for key := range keys {
		h := l.held[key]
		if h == nil {
			h = &hold{}
			l.held[key] = h
		}
		h.calls++
		h.usd += est.allUSD
		h.tokens += est.tokens
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for key := range keys {
			h := l.held[key]
			h.calls--
			h.usd -= est.allUSD
			h.tokens -= est.tokens
			if h.calls == 0 {
				delete(l.held, key)
			}
		}
	}), nil
}

// overBudget is a limit that refused a call.
type overBudget struct {
	limit limit
	spent float64
}

func (e *overBudget) Error() string { return "budget of " + e.limit.scope + " is reached" }

func (l *ledger) ask(ctx context.Context, lim limit, est estimate) error {
	var others hold
	if h := l.held[lim.key]; h != nil {
		others = *h
	}
	if lim.tokens > 0 {
		used, err := l.store.SpentTokens(ctx, lim.filter)
		if err != nil {
			return err
		}
		left := lim.tokens - used
		if left <= 0 || (others.calls > 0 && others.tokens+est.tokens > left) {
			return refusal(&overBudget{lim, float64(used)}, "%d of %d tokens are used", used, lim.tokens)
		}
		return nil
	}
	spent, err := l.store.SpentUSD(ctx, lim.filter)
	if err != nil {
		return err
	}
	left := lim.usd - spent
	if left <= 0 || est.inUSD > left || (others.calls > 0 && others.usd+est.allUSD > left) {
		return refusal(&overBudget{lim, spent}, "$%.4f of $%.4f are spent", spent, lim.usd)
	}
	return nil
}

func refusal(why *overBudget, format string, args ...any) error {
	return squad.Wrap(squad.CodeQuota, why, "the budget of the %s does not allow this call: %s", why.limit.scope, fmt.Sprintf(format, args...))
}

// tell writes the event of a reached budget, once a minute and limit at most.
func (m *models) tell(ctx context.Context, c *caller, over *overBudget, now time.Time) {
	key := over.limit.key + over.limit.scope
	m.ledger.mu.Lock()
	recent := now.Sub(m.ledger.told[key]) < time.Minute
	if !recent {
		m.ledger.told[key] = now
	}
	m.ledger.mu.Unlock()
	if recent || m.cfg.Events == nil {
		return
	}
	payload := event.Payload(map[string]any{"scope": over.limit.scope, "limit_usd": over.limit.usd, "limit_tokens": over.limit.tokens, "spent_usd": over.spent})
	if err := m.cfg.Events.Append(ctx, c.event(squad.EventBudgetReached, payload)); err != nil {
		m.cfg.Log.WarnContext(ctx, "reached budget was not told", "error", err)
	}
}
