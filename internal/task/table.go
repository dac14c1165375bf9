package task

import squad "agentsquad"

// State is where a task stands: its column and the flag beside it.
type State struct {
	Status squad.TaskStatus
	Flag   squad.TaskFlag
}

// The columns, from left to right, and the flags.
var (
	columns = []squad.TaskStatus{squad.TaskBacklog, squad.TaskTodo, squad.TaskInProgress, squad.TaskInReview, squad.TaskDone}
	flags   = []squad.TaskFlag{squad.FlagNone, squad.FlagBlocked, squad.FlagFailed, squad.FlagCancelled}
)

// moves says which columns a task may go to from each. Staying is not listed: a
// change of the flag alone is judged by flagMoves.
var moves = map[squad.TaskStatus][]squad.TaskStatus{
	squad.TaskBacklog:    {squad.TaskTodo, squad.TaskInProgress, squad.TaskDone},
	squad.TaskTodo:       {squad.TaskBacklog, squad.TaskInProgress, squad.TaskDone},
	squad.TaskInProgress: {squad.TaskBacklog, squad.TaskTodo, squad.TaskInReview, squad.TaskDone},
	squad.TaskInReview:   {squad.TaskTodo, squad.TaskInProgress, squad.TaskDone},
	squad.TaskDone:       {squad.TaskTodo, squad.TaskInReview}, // reopened
}

// allowed says which flags may stand beside each column. Blocked and failed are
// about work that is to go on, so not beside done; nothing fails before it began.
var allowed = map[squad.TaskStatus][]squad.TaskFlag{
	squad.TaskBacklog:    {squad.FlagNone, squad.FlagBlocked, squad.FlagCancelled},
	squad.TaskTodo:       {squad.FlagNone, squad.FlagBlocked, squad.FlagFailed, squad.FlagCancelled},
	squad.TaskInProgress: {squad.FlagNone, squad.FlagBlocked, squad.FlagFailed, squad.FlagCancelled},
	squad.TaskInReview:   {squad.FlagNone, squad.FlagBlocked, squad.FlagFailed, squad.FlagCancelled},
	squad.TaskDone:       {squad.FlagNone, squad.FlagCancelled},
}

// flagMoves says which flag may follow which. A cancelled task is taken up again
// before anything else happens to it.
var flagMoves = map[squad.TaskFlag][]squad.TaskFlag{
	squad.FlagNone:      {squad.FlagNone, squad.FlagBlocked, squad.FlagFailed, squad.FlagCancelled},
	squad.FlagBlocked:   {squad.FlagNone, squad.FlagBlocked, squad.FlagFailed, squad.FlagCancelled},
	squad.FlagFailed:    {squad.FlagNone, squad.FlagBlocked, squad.FlagFailed, squad.FlagCancelled},
	squad.FlagCancelled: {squad.FlagNone},
}

// executionMoves is the life of an execution. The final states lead nowhere.
var executionMoves = map[squad.ExecutionStatus][]squad.ExecutionStatus{
	squad.ExecutionQueued:    {squad.ExecutionRunning, squad.ExecutionFailed, squad.ExecutionCancelled},
	squad.ExecutionRunning:   {squad.ExecutionQueued, squad.ExecutionWaiting, squad.ExecutionSucceeded, squad.ExecutionFailed, squad.ExecutionCancelled},
	squad.ExecutionWaiting:   {squad.ExecutionQueued, squad.ExecutionRunning, squad.ExecutionSucceeded, squad.ExecutionFailed, squad.ExecutionCancelled},
	squad.ExecutionSucceeded: {},
	squad.ExecutionFailed:    {},
	squad.ExecutionCancelled: {},
}

// States lists every column with every flag, sensible or not.
func States() []State {
	var out []State
	for _, c := range columns {
		for _, f := range flags {
			out = append(out, State{c, f})
		}
	}
	return out
}

// ExecutionStates lists every state of an execution.
func ExecutionStates() []squad.ExecutionStatus {
	return []squad.ExecutionStatus{
		squad.ExecutionQueued, squad.ExecutionRunning, squad.ExecutionWaiting,
		squad.ExecutionSucceeded, squad.ExecutionFailed, squad.ExecutionCancelled,
	}
}
