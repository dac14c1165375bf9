package squad

import "time"

// Member is an agent of a squad.
type Member struct {
	ID             string       `json:"id"`
	SquadID        string       `json:"squad_id"`
	Name           string       `json:"name" minLength:"1" maxLength:"100"`
	Role           string       `json:"role" minLength:"1" maxLength:"60" doc:"For example developer, reviewer, tester, project_manager"`
	Specialization string       `json:"specialization"`
	LLMProvider    string       `json:"llm_provider" doc:"anthropic, openai, or empty where the agent brings its own"`
	LLMModel       string       `json:"llm_model"`
	SystemPrompt   string       `json:"system_prompt"`
	Config         MemberConfig `json:"config"`
	IsActive       bool         `json:"is_active"`
	SandboxID      string       `json:"sandbox_id,omitempty" doc:"The sandbox it works in now"`
	CurrentTaskID  string       `json:"current_task_id,omitempty"`
	GitContext     GitContext   `json:"git_context,omitzero"`
	CreatedAt      time.Time    `json:"created_at"`
	UpdatedAt      time.Time    `json:"updated_at"`
}

// RoleProjectManager is the member role that receives escalations.
const RoleProjectManager = "project_manager"

// AgentKind names the way an agent is driven.
type AgentKind string

// Kinds of agent.
const (
	AgentCommand AgentKind = "command" // a shell command in the sandbox
	AgentACP     AgentKind = "acp"     // an Agent Client Protocol program in the sandbox
	AgentLLM     AgentKind = "llm"     // the built-in loop; only its tools run in the sandbox
)

// MemberConfig says how the member's agent is started and bounded.
type MemberConfig struct {
	Agent      AgentKind         `json:"agent,omitempty" enum:"command,acp,llm" doc:"How the agent is driven"`
	Preset     string            `json:"preset,omitempty" doc:"ACP preset: claude, codex, gemini, opencode"`
	Command    string            `json:"command,omitempty" doc:"Command of a command or ACP agent"`
	Env        map[string]string `json:"env,omitempty" doc:"Environment of the agent; never secrets"`
	BaseURL    string            `json:"base_url,omitempty" doc:"Model API other than the provider's own"`
	MaxTurns   int               `json:"max_turns,omitempty"`
	MaxRunning int               `json:"max_running,omitempty" doc:"Executions at once; 0 means 1"`
	Timeout    time.Duration     `json:"timeout,omitempty" doc:"Longest execution (nanoseconds); 0 means the installation's limit"`
	Budget     Budget            `json:"budget,omitzero"`
	AuthorName string            `json:"author_name,omitempty" doc:"Name on commits; default is the member's"`
	AuthorMail string            `json:"author_mail,omitempty"`
	Template   string            `json:"template,omitempty"`
}

// GitContext is where the member stands in git.
type GitContext struct {
	RepositoryID string `json:"repository_id,omitempty"`
	Path         string `json:"path,omitempty" doc:"Checkout inside the sandbox"`
	Branch       string `json:"branch,omitempty"`
	BaseBranch   string `json:"base_branch,omitempty"`
	Head         string `json:"head,omitempty" doc:"Last commit stored outside the sandbox"`
}

// Message is a note between members, or between a person and a member.
type Message struct {
	ID          string    `json:"id"`
	SquadID     string    `json:"squad_id"`
	TaskID      string    `json:"task_id,omitempty"`
	ExecutionID string    `json:"execution_id,omitempty"`
	From        string    `json:"from" doc:"member:<id>, user:<id> or system"`
	To          string    `json:"to" doc:"member:<id>, user:<id>, or squad for all"`
	Kind        string    `json:"kind" enum:"note,question,answer,escalation,review,nudge"`
	Body        string    `json:"body" minLength:"1" maxLength:"65536"`
	ReadAt      time.Time `json:"read_at,omitzero" doc:"When it was handed to the agent"`
	CreatedAt   time.Time `json:"created_at"`
}
