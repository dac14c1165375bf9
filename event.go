package squad

import (
	"encoding/json"
	"time"
)

// EventType names a kind of event. Readers ignore types they do not know.
type EventType string

// Events about state: written in the transaction that changed the row. Their
// payload is the row as it is after the change.
const (
	EventSquadChanged      EventType = "squad_changed"      // Squad
	EventMemberChanged     EventType = "member_changed"     // Member
	EventRepositoryChanged EventType = "repository_changed" // Repository
	EventTaskCreated       EventType = "task_created"       // Task
	EventTaskUpdated       EventType = "task_updated"       // Task
	EventTaskDeleted       EventType = "task_deleted"       // {id}
	EventExecutionCreated  EventType = "execution_created"  // Execution
	EventExecutionUpdated  EventType = "execution_updated"  // Execution
	EventSandboxCreated    EventType = "sandbox_created"    // Sandbox
	EventSandboxStatus     EventType = "sandbox_status"     // Sandbox
	EventSandboxTerminated EventType = "sandbox_terminated" // Sandbox
	EventGitOperation      EventType = "git_operation"      // GitProgress
	EventMessageSent       EventType = "message_sent"       // Message
	EventPRCreated         EventType = "pr_created"         // PullRequest
	EventPRUpdated         EventType = "pr_updated"         // PullRequest
	EventPRMerged          EventType = "pr_merged"          // PullRequest
	EventPRClosed          EventType = "pr_closed"          // PullRequest
	EventReviewReceived    EventType = "review_received"    // ReviewComment
	EventChecksChanged     EventType = "checks_changed"     // PullRequest
	EventConflictDetected  EventType = "conflict_detected"  // Conflict
	EventConflictCleared   EventType = "conflict_cleared"   // Conflict
	EventEgressRefused     EventType = "egress_refused"     // {sandbox_id, host, rule}
	EventBudgetReached     EventType = "budget_reached"     // {scope, limit_usd, spent_usd}
)

// Events of an agent's stream.
const (
	EventMessage  EventType = "message"   // Text
	EventThought  EventType = "thought"   // Text
	EventToolCall EventType = "tool_call" // ToolCall
	EventPlan     EventType = "plan"      // Plan
	EventQuestion EventType = "question"  // Text
	EventUsage    EventType = "usage"     // Usage
	EventLog      EventType = "log"       // LogChunk
	EventStep     EventType = "step"      // StepProgress
)

// Event is one entry of the log. Seq is gapless and follows commit order. The
// keys say which streams the event belongs to.
type Event struct {
	Seq          int64           `json:"seq"`
	Type         EventType       `json:"type"`
	At           time.Time       `json:"at"`
	SquadID      string          `json:"squad_id,omitempty"`
	TaskID       string          `json:"task_id,omitempty"`
	ExecutionID  string          `json:"execution_id,omitempty"`
	MemberID     string          `json:"member_id,omitempty"`
	SandboxID    string          `json:"sandbox_id,omitempty"`
	RepositoryID string          `json:"repository_id,omitempty"`
	Payload      json.RawMessage `json:"payload"`
}

// Text is what an agent said or thought. Chunks with the same ID belong to one
// message; readers join them in order.
type Text struct {
	ID   string `json:"id,omitempty"`
	Text string `json:"text"`
}

// ToolCall is the state of one call of a tool; later events with the same ID
// replace earlier ones.
type ToolCall struct {
	ID         string          `json:"id"`
	Title      string          `json:"title"`
	Kind       string          `json:"kind" enum:"read,edit,execute,search,fetch,think,other"`
	Status     string          `json:"status" enum:"pending,running,completed,failed"`
	Command    string          `json:"command,omitempty"`
	ExitCode   *int            `json:"exit_code,omitempty"`
	DurationMS int64           `json:"duration_ms,omitempty"`
	Paths      []string        `json:"paths,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     string          `json:"output,omitempty" doc:"Tail of the output"`
}

// Plan is the agent's list of intentions; each event replaces the last.
type Plan struct {
	Entries []PlanEntry `json:"entries"`
}

// PlanEntry is one intention.
type PlanEntry struct {
	Text   string `json:"text"`
	Status string `json:"status" enum:"pending,in_progress,completed"`
}

// LogChunk is raw output of a process in the sandbox.
type LogChunk struct {
	Stream string `json:"stream" enum:"stdout,stderr,pty,system"`
	Text   string `json:"text"`
}

// StepProgress is the state of one step of an execution's recipe.
type StepProgress struct {
	Step       Step   `json:"step"`
	Status     string `json:"status" enum:"running,succeeded,failed,retrying"`
	Percent    int    `json:"percent,omitempty"`
	Detail     string `json:"detail,omitempty"`
	DurationMS int64  `json:"duration_ms,omitempty"`
}

// GitProgress is a git operation with git's own progress.
type GitProgress struct {
	GitOperation
	Phase   string `json:"phase,omitempty" doc:"For example Receiving objects"`
	Percent int    `json:"percent,omitempty"`
}

// Conflict says that two lines of work touch the same places.
type Conflict struct {
	RepositoryID string   `json:"repository_id"`
	TaskID       string   `json:"task_id"`
	OtherTaskID  string   `json:"other_task_id,omitempty" doc:"Empty where the other side is the base branch"`
	Files        []string `json:"files"`
}
