package squad

import "time"

// TaskStatus is the column of the board that a task stands in.
type TaskStatus string

// The columns.
const (
	TaskBacklog    TaskStatus = "backlog"
	TaskTodo       TaskStatus = "todo"
	TaskInProgress TaskStatus = "in_progress"
	TaskInReview   TaskStatus = "in_review"
	TaskDone       TaskStatus = "done"
)

// TaskFlag stands beside the column and says why a task does not move.
type TaskFlag string

// The flags; empty means nothing is wrong.
const (
	FlagNone      TaskFlag = ""
	FlagBlocked   TaskFlag = "blocked"
	FlagFailed    TaskFlag = "failed"
	FlagCancelled TaskFlag = "cancelled"
)

// Task is a piece of work for a squad.
type Task struct {
	ID             string     `json:"id"`
	Number         int64      `json:"number" doc:"Counts from 1 in the installation; names the branch task-<number>"`
	SquadID        string     `json:"squad_id"`
	RepositoryID   string     `json:"repository_id,omitempty"`
	Title          string     `json:"title" minLength:"1" maxLength:"300"`
	Description    string     `json:"description"`
	Status         TaskStatus `json:"status" enum:"backlog,todo,in_progress,in_review,done"`
	Flag           TaskFlag   `json:"flag,omitempty" enum:",blocked,failed,cancelled"`
	Cause          string     `json:"cause,omitempty" doc:"Why the flag is set, in words"`
	Priority       int        `json:"priority" minimum:"0" maximum:"3" doc:"0 low, 1 normal, 2 high, 3 urgent"`
	Labels         []string   `json:"labels,omitempty"`
	AssigneeID     string     `json:"assignee_id,omitempty" doc:"The member who does it"`
	DependsOn      []string   `json:"depends_on,omitempty" doc:"Tasks that must be done first"`
	BaseBranch     string     `json:"base_branch,omitempty"`
	Provider       string     `json:"provider,omitempty" enum:",local,e2b" doc:"Where its sandboxes run; empty means the squad's or the installation's"`
	Template       string     `json:"template,omitempty" maxLength:"200" doc:"What its sandboxes start from; empty means the member's or the squad's"`
	GitBranch      string     `json:"git_branch,omitempty"`
	PullRequestURL string     `json:"pull_request_url,omitempty"`
	Budget         Budget     `json:"budget,omitzero"`
	ExecutionID    string     `json:"execution_id,omitempty" doc:"The newest execution"`
	CostUSD        float64    `json:"cost_usd"`
	Position       float64    `json:"position" doc:"Order inside the column"`
	CreatedBy      string     `json:"created_by,omitempty"`
	Version        int64      `json:"version" doc:"Counts changes; the ETag of the task"`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
}

// ExecutionStatus is the state of one attempt at a task.
type ExecutionStatus string

// States of an execution. The last three are final.
const (
	ExecutionQueued    ExecutionStatus = "queued"
	ExecutionRunning   ExecutionStatus = "running"
	ExecutionWaiting   ExecutionStatus = "waiting" // for a person, a review, checks or a quota
	ExecutionSucceeded ExecutionStatus = "succeeded"
	ExecutionFailed    ExecutionStatus = "failed"
	ExecutionCancelled ExecutionStatus = "cancelled"
)

// Final says whether an execution in this state stays in it.
func (s ExecutionStatus) Final() bool {
	return s == ExecutionSucceeded || s == ExecutionFailed || s == ExecutionCancelled
}

// Step names a part of an execution's recipe.
type Step string

// The steps of an execution, in order.
const (
	StepSandbox Step = "sandbox"
	StepClone   Step = "clone"
	StepBranch  Step = "branch"
	StepAgent   Step = "agent"
	StepCommit  Step = "commit"
	StepPush    Step = "push"
	StepPull    Step = "pull_request"
	StepReview  Step = "review"
	StepCleanup Step = "cleanup"
)

// Execution is one attempt of a member at a task.
type Execution struct {
	ID             string          `json:"id"`
	TaskID         string          `json:"task_id"`
	SquadID        string          `json:"squad_id"`
	MemberID       string          `json:"member_id,omitempty"`
	SandboxID      string          `json:"sandbox_id,omitempty"`
	Status         ExecutionStatus `json:"status" enum:"queued,running,waiting,succeeded,failed,cancelled"`
	Step           Step            `json:"step,omitempty"`
	Percent        int             `json:"percent,omitempty" doc:"Progress of the step where it is known"`
	Liveness       Liveness        `json:"liveness,omitzero"`
	Attempt        int             `json:"attempt"`
	Lane           int             `json:"lane,omitempty" doc:"Which of several tries at once; 0 for the first or only one"`
	Turn           int             `json:"turn"`
	GitBranch      string          `json:"git_branch,omitempty"`
	BaseSHA        string          `json:"base_sha,omitempty"`
	HeadSHA        string          `json:"head_sha,omitempty" doc:"Last commit stored outside the sandbox"`
	PullRequestURL string          `json:"pull_request_url,omitempty"`
	CommitHistory  []Commit        `json:"commit_history,omitempty"`
	Error          string          `json:"error,omitempty"`
	ErrorCode      Code            `json:"error_code,omitempty"`
	TokensIn       int64           `json:"tokens_in"`
	TokensOut      int64           `json:"tokens_out"`
	TokensCached   int64           `json:"tokens_cached"`
	ModelCostUSD   float64         `json:"model_cost_usd"`
	SandboxCostUSD float64         `json:"sandbox_cost_usd"`
	CreatedAt      time.Time       `json:"created_at"`
	StartedAt      time.Time       `json:"started_at,omitzero"`
	FinishedAt     time.Time       `json:"finished_at,omitzero"`
}

// Liveness is what was last observed of a running execution.
type Liveness struct {
	State  string    `json:"state,omitempty" enum:"working,command,model,person,rate_limited,looping,silent,sandbox_lost,review,quota,dependency"`
	Detail string    `json:"detail,omitempty" doc:"For example the command that runs, or the tasks it waits for"`
	Since  time.Time `json:"since,omitzero"`
}

// Commit is one commit of a task's branch.
type Commit struct {
	SHA     string    `json:"sha"`
	Subject string    `json:"subject"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
}

// Usage is one model call's tokens and cost.
type Usage struct {
	ID           string    `json:"id"`
	ExecutionID  string    `json:"execution_id,omitempty"`
	TaskID       string    `json:"task_id,omitempty"`
	MemberID     string    `json:"member_id,omitempty"`
	SquadID      string    `json:"squad_id,omitempty"`
	SandboxID    string    `json:"sandbox_id,omitempty"`
	Provider     string    `json:"provider"`
	Model        string    `json:"model"`
	TokensIn     int64     `json:"tokens_in"`
	TokensOut    int64     `json:"tokens_out"`
	TokensCached int64     `json:"tokens_cached"`
	CostUSD      float64   `json:"cost_usd"`
	At           time.Time `json:"at"`
}
