package squad

import "time"

// SandboxStatus is the last observed state of a sandbox.
type SandboxStatus string

// States of a sandbox. Terminated is final; error means it was lost or could
// not be made, and is final too.
const (
	SandboxCreated    SandboxStatus = "created"
	SandboxRunning    SandboxStatus = "running"
	SandboxPaused     SandboxStatus = "paused"
	SandboxTerminated SandboxStatus = "terminated"
	SandboxError      SandboxStatus = "error"
)

// Final says whether a sandbox in this state stays in it.
func (s SandboxStatus) Final() bool { return s == SandboxTerminated || s == SandboxError }

// Sandbox is an isolated machine, on this host or at E2B.
type Sandbox struct {
	ID           string        `json:"id"`
	Provider     string        `json:"provider" doc:"local or e2b"`
	E2BID        string        `json:"e2b_id,omitempty" doc:"The provider's identifier"`
	SquadID      string        `json:"squad_id,omitempty"`
	AgentID      string        `json:"agent_id,omitempty" doc:"The member that owns it"`
	TaskID       string        `json:"task_id,omitempty"`
	ExecutionID  string        `json:"execution_id,omitempty"`
	RepoURL      string        `json:"repo_url,omitempty"`
	Template     string        `json:"template"`
	Status       SandboxStatus `json:"status" enum:"created,running,paused,terminated,error"`
	Error        string        `json:"error,omitempty"`
	Pooled       bool          `json:"pooled" doc:"Waits in the warm pool, owned by nobody yet"`
	Node         string        `json:"node,omitempty" doc:"The machine that runs it, where the provider is local"`
	CPU          float64       `json:"cpu"`
	MemoryMB     int64         `json:"memory_mb"`
	Epoch        int64         `json:"epoch" doc:"Fencing number of the execution that holds it"`
	CommandCount int64         `json:"command_count"`
	CreateMS     int64         `json:"create_ms" doc:"How long it took to make, in milliseconds"`
	CostUSD      float64       `json:"cost_usd"`
	CreatedAt    time.Time     `json:"created_at"`
	LastUsedAt   time.Time     `json:"last_used_at"`
	ExpiresAt    time.Time     `json:"expires_at,omitzero"`
	TerminatedAt time.Time     `json:"terminated_at,omitzero"`
	Use          SandboxSample `json:"use,omitzero" doc:"What it used when it was last looked at"`
}

// SandboxSample is one measurement of a sandbox.
type SandboxSample struct {
	At       time.Time `json:"at"`
	CPUPct   float64   `json:"cpu_pct"`
	MemoryMB int64     `json:"memory_mb"`
	DiskMB   int64     `json:"disk_mb,omitempty"`
}

// GitOperation is one git command that was run for an execution or by request.
type GitOperation struct {
	ID          string    `json:"id"`
	SandboxID   string    `json:"sandbox_id,omitempty"`
	ExecutionID string    `json:"execution_id,omitempty"`
	Kind        string    `json:"kind" enum:"clone,fetch,branch,commit,push,pull,rebase,checkpoint,merge"`
	Status      string    `json:"status" enum:"running,succeeded,failed"`
	Attempts    int       `json:"attempts"`
	DurationMS  int64     `json:"duration_ms"`
	ExitCode    int       `json:"exit_code"`
	OutputTail  string    `json:"output_tail,omitempty" doc:"Last lines of output, without credentials"`
	CreatedAt   time.Time `json:"created_at"`
}
