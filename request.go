package squad

import "time"

// The bodies that callers send to the HTTP API, shared by server and client.
// In a change, nil means "leave as it is"; nested policies are replaced whole.

// NewSquad asks for a squad.
type NewSquad struct {
	Name        string      `json:"name" minLength:"1" maxLength:"100"`
	Description string      `json:"description,omitempty" maxLength:"10000"`
	OrgID       string      `json:"org_id,omitempty" maxLength:"100"`
	Config      SquadConfig `json:"config,omitzero"`
}

// SquadChange edits a squad.
type SquadChange struct {
	Name        *string      `json:"name,omitempty" minLength:"1" maxLength:"100"`
	Description *string      `json:"description,omitempty" maxLength:"10000"`
	Status      *SquadStatus `json:"status,omitempty" enum:"active,paused,archived"`
	Config      *SquadConfig `json:"config,omitempty"`
}

// NewMember asks for a member.
type NewMember struct {
	SquadID        string       `json:"squad_id"`
	Name           string       `json:"name" minLength:"1" maxLength:"100"`
	Role           string       `json:"role" minLength:"1" maxLength:"60"`
	Specialization string       `json:"specialization,omitempty" maxLength:"10000"`
	LLMProvider    string       `json:"llm_provider,omitempty" maxLength:"60"`
	LLMModel       string       `json:"llm_model,omitempty" maxLength:"200"`
	SystemPrompt   string       `json:"system_prompt,omitempty" maxLength:"200000"`
	Config         MemberConfig `json:"config,omitzero"`
}

// MemberChange edits a member.
type MemberChange struct {
	Name           *string       `json:"name,omitempty" minLength:"1" maxLength:"100"`
	Role           *string       `json:"role,omitempty" minLength:"1" maxLength:"60"`
	Specialization *string       `json:"specialization,omitempty" maxLength:"10000"`
	LLMProvider    *string       `json:"llm_provider,omitempty" maxLength:"60"`
	LLMModel       *string       `json:"llm_model,omitempty" maxLength:"200"`
	SystemPrompt   *string       `json:"system_prompt,omitempty" maxLength:"200000"`
	Config         *MemberConfig `json:"config,omitempty"`
	IsActive       *bool         `json:"is_active,omitempty"`
}

// NewRepository asks for a repository. URL is left out for the local forge.
type NewRepository struct {
	SquadID       string           `json:"squad_id"`
	Name          string           `json:"name" minLength:"1" maxLength:"200"`
	Forge         ForgeKind        `json:"forge,omitempty" enum:"local,github,gitea" default:"local"`
	URL           string           `json:"url,omitempty" maxLength:"2000"`
	APIURL        string           `json:"api_url,omitempty" maxLength:"2000"`
	DefaultBranch string           `json:"default_branch,omitempty" maxLength:"200"`
	CredentialID  string           `json:"credential_id,omitempty"`
	PRTemplate    string           `json:"pr_template,omitempty" maxLength:"65536"`
	Reviewers     []string         `json:"reviewers,omitempty" maxItems:"50"`
	Policy        RepositoryPolicy `json:"policy,omitzero"`
	// ImportPath is a git repository on the server's disk to copy into the local
	// forge; administrators only.
	ImportPath string `json:"import_path,omitempty" maxLength:"4096" doc:"Repository on the server's disk to copy into the local forge; administrators only"`
}

// RepositoryChange edits a repository.
type RepositoryChange struct {
	Name          *string           `json:"name,omitempty" minLength:"1" maxLength:"200"`
	DefaultBranch *string           `json:"default_branch,omitempty" minLength:"1" maxLength:"200"`
	CredentialID  *string           `json:"credential_id,omitempty"`
	PRTemplate    *string           `json:"pr_template,omitempty" maxLength:"65536"`
	Reviewers     *[]string         `json:"reviewers,omitempty" maxItems:"50"`
	Policy        *RepositoryPolicy `json:"policy,omitempty"`
}

// NewTask asks for a task. Run starts it at once.
type NewTask struct {
	SquadID      string     `json:"squad_id"`
	RepositoryID string     `json:"repository_id,omitempty"`
	Title        string     `json:"title" minLength:"1" maxLength:"300"`
	Description  string     `json:"description,omitempty" maxLength:"100000"`
	Status       TaskStatus `json:"status,omitempty" enum:"backlog,todo" doc:"First column; todo by default"`
	Priority     *int       `json:"priority,omitempty" minimum:"0" maximum:"3" doc:"0 low, 1 normal (default), 2 high, 3 urgent"`
	Labels       []string   `json:"labels,omitempty" maxItems:"50"`
	AssigneeID   string     `json:"assignee_id,omitempty"`
	DependsOn    []string   `json:"depends_on,omitempty" maxItems:"100"`
	BaseBranch   string     `json:"base_branch,omitempty" maxLength:"200"`
	Provider     string     `json:"provider,omitempty" enum:",local,e2b" doc:"Where its sandboxes run; empty means the squad's or the installation's"`
	Template     string     `json:"template,omitempty" maxLength:"200" doc:"What its sandboxes start from"`
	Budget       Budget     `json:"budget,omitzero"`
	Run          bool       `json:"run,omitempty" doc:"Start it at once"`
}

// TaskChange edits a task. The column is changed by a move, not here.
type TaskChange struct {
	Title        *string   `json:"title,omitempty" minLength:"1" maxLength:"300"`
	Description  *string   `json:"description,omitempty" maxLength:"100000"`
	RepositoryID *string   `json:"repository_id,omitempty"`
	Priority     *int      `json:"priority,omitempty" minimum:"0" maximum:"3"`
	Labels       *[]string `json:"labels,omitempty" maxItems:"50"`
	AssigneeID   *string   `json:"assignee_id,omitempty"`
	DependsOn    *[]string `json:"depends_on,omitempty" maxItems:"100"`
	BaseBranch   *string   `json:"base_branch,omitempty" maxLength:"200"`
	Provider     *string   `json:"provider,omitempty" enum:",local,e2b"`
	Template     *string   `json:"template,omitempty" maxLength:"200"`
	Budget       *Budget   `json:"budget,omitempty"`
}

// TaskMove puts a task into a column, and sets or clears its flag.
type TaskMove struct {
	Status   TaskStatus `json:"status" enum:"backlog,todo,in_progress,in_review,done"`
	Flag     TaskFlag   `json:"flag,omitempty" enum:",blocked,failed,cancelled"`
	Cause    string     `json:"cause,omitempty" maxLength:"2000"`
	Position *float64   `json:"position,omitempty" doc:"Order inside the column"`
}

// TaskBulk applies one verb to many tasks. Each is done or refused by itself.
type TaskBulk struct {
	IDs        []string   `json:"ids" minItems:"1" maxItems:"500"`
	Action     string     `json:"action" enum:"move,assign,label,unlabel,priority,delete"`
	Status     TaskStatus `json:"status,omitempty" enum:"backlog,todo,in_progress,in_review,done" doc:"For move"`
	AssigneeID string     `json:"assignee_id,omitempty" doc:"For assign; empty clears it"`
	Label      string     `json:"label,omitempty" maxLength:"60" doc:"For label and unlabel"`
	Priority   int        `json:"priority,omitempty" minimum:"0" maximum:"3" doc:"For priority"`
}

// BulkResult is the outcome for one task of a bulk request.
type BulkResult struct {
	ID    string `json:"id"`
	OK    bool   `json:"ok"`
	Code  Code   `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

// NewMessage asks for a message. The sender is who asks.
type NewMessage struct {
	SquadID     string `json:"squad_id"`
	TaskID      string `json:"task_id,omitempty"`
	ExecutionID string `json:"execution_id,omitempty"`
	To          string `json:"to" minLength:"1" maxLength:"100" doc:"member:<id>, user:<id>, or squad"`
	Kind        string `json:"kind,omitempty" enum:"note,question,answer,escalation,review,nudge" default:"note"`
	Body        string `json:"body" minLength:"1" maxLength:"65536"`
}

// NewCredential asks for a sealed secret.
type NewCredential struct {
	SquadID  string         `json:"squad_id,omitempty" doc:"Empty for the whole installation"`
	Name     string         `json:"name" minLength:"1" maxLength:"100"`
	Kind     CredentialKind `json:"kind" enum:"token,github_app,model_key,e2b_key,webhook,sign_key"`
	Provider string         `json:"provider,omitempty" maxLength:"60"`
	Secret   string         `json:"secret" minLength:"1" maxLength:"65536" writeOnly:"true" doc:"Written, never read back"`
}

// CredentialChange renames a credential or replaces its secret.
type CredentialChange struct {
	Name   *string `json:"name,omitempty" minLength:"1" maxLength:"100"`
	Secret *string `json:"secret,omitempty" minLength:"1" maxLength:"65536" writeOnly:"true"`
}

// NewUser asks for a user.
type NewUser struct {
	Name  string `json:"name" minLength:"1" maxLength:"100"`
	Email string `json:"email,omitempty" maxLength:"254"`
	Admin bool   `json:"admin,omitempty"`
}

// UserChange edits a user.
type UserChange struct {
	Name  *string `json:"name,omitempty" minLength:"1" maxLength:"100"`
	Email *string `json:"email,omitempty" maxLength:"254"`
	Admin *bool   `json:"admin,omitempty"`
}

// NewToken asks for an API token.
type NewToken struct {
	Name      string    `json:"name" minLength:"1" maxLength:"100"`
	Kind      TokenKind `json:"kind,omitempty" enum:"user,agent,e2b" default:"user"`
	UserID    string    `json:"user_id,omitempty" doc:"Another user's; administrators only"`
	Scopes    []string  `json:"scopes,omitempty" maxItems:"3" doc:"read, write, admin; empty means what the user may do"`
	MemberID  string    `json:"member_id,omitempty" doc:"For agent tokens"`
	TaskID    string    `json:"task_id,omitempty" doc:"For agent tokens"`
	SandboxID string    `json:"sandbox_id,omitempty" doc:"For agent tokens"`
	ExpiresIn int64     `json:"expires_in,omitempty" minimum:"0" maximum:"315360000" doc:"Seconds; 0 means never"`
}

// CreatedToken is a new token with its secret, which is shown only here.
type CreatedToken struct {
	APIToken
	Secret string `json:"secret" doc:"Shown once"`
}

// SignInLink opens the page once, for a short time.
type SignInLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// RunOptions say how a task is started.
type RunOptions struct {
	MemberID string `json:"member_id,omitempty" doc:"Another member than the assignee"`
	Message  string `json:"message,omitempty" maxLength:"65536" doc:"More instructions for this attempt"`
}

// ForkOptions say how many ways a task is tried.
type ForkOptions struct {
	Count   int      `json:"count,omitempty" minimum:"0" maximum:"16" doc:"How many ways; ignored where members are named"`
	Members []string `json:"members,omitempty" maxItems:"16" doc:"The members who try"`
}

// MergeOptions say how a pull request is merged.
type MergeOptions struct {
	Method  string `json:"method,omitempty" enum:",merge,squash,rebase" doc:"Empty means the repository's policy"`
	Message string `json:"message,omitempty" maxLength:"65536"`
}

// NewReview is a remark or a verdict on a pull request.
type NewReview struct {
	Path    string `json:"path,omitempty" maxLength:"4096"`
	Line    int    `json:"line,omitempty" minimum:"0"`
	Side    string `json:"side,omitempty" enum:",old,new"`
	Verdict string `json:"verdict,omitempty" enum:",comment,approve,request_changes"`
	Body    string `json:"body,omitempty" maxLength:"65536"`
	Turn    bool   `json:"turn,omitempty" doc:"Hand it to the agent at once as a new turn"`
}

// GitRequest is a git verb in a sandbox. Which fields are read depends on the verb.
type GitRequest struct {
	RepositoryID string   `json:"repository_id,omitempty" doc:"Repository; default is the task's"`
	Branch       string   `json:"branch,omitempty" maxLength:"200"`
	Base         string   `json:"base,omitempty" maxLength:"200"`
	Message      string   `json:"message,omitempty" maxLength:"65536" doc:"Conventional commit message"`
	Paths        []string `json:"paths,omitempty" maxItems:"1000" doc:"Files to commit; empty means all changes"`
	Title        string   `json:"title,omitempty" maxLength:"300" doc:"For a pull request"`
	Body         string   `json:"body,omitempty" maxLength:"65536" doc:"For a pull request"`
	Draft        bool     `json:"draft,omitempty" doc:"For a pull request"`
}
