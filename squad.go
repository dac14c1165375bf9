// Package squad is the vocabulary of Agent Squad: the nouns that every room of
// the house speaks about (squads, members, repositories, tasks, executions,
// sandboxes, pull requests, events), the states they may be in, and the one
// error type that users see.
//
// It does no I/O, starts no goroutine and imports nothing of ours. The JSON form
// of these types is the wire form of the HTTP API and of the events; times are
// UTC, identifiers are UUIDv7 strings made by [NewID].
package squad

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// NewID returns a new UUIDv7: unique, and ordered by the time of its making.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// Squad is a team of members that share repositories, credentials, budgets and
// policy.
type Squad struct {
	ID          string      `json:"id"`
	OrgID       string      `json:"org_id,omitempty" doc:"Organisation, for installations that serve several"`
	UserID      string      `json:"user_id,omitempty" doc:"The user who made the squad"`
	Name        string      `json:"name" minLength:"1" maxLength:"100"`
	Description string      `json:"description"`
	Status      SquadStatus `json:"status" enum:"active,paused,archived"`
	Config      SquadConfig `json:"config"`
	CreatedAt   time.Time   `json:"created_at"`
	UpdatedAt   time.Time   `json:"updated_at"`
}

// SquadStatus says whether a squad takes work.
type SquadStatus string

// The states of a squad. A paused squad starts nothing new; an archived one is
// only read.
const (
	SquadActive   SquadStatus = "active"
	SquadPaused   SquadStatus = "paused"
	SquadArchived SquadStatus = "archived"
)

// SquadConfig is the policy of a squad. The zero value is the default policy.
type SquadConfig struct {
	Provider      string                   `json:"provider,omitempty" doc:"Sandbox provider: local, e2b, or empty for the installation's default"`
	Template      string                   `json:"template,omitempty" doc:"Sandbox template; empty means base"`
	MaxRunning    int                      `json:"max_running,omitempty" doc:"Executions at once; 0 means the installation's limit"`
	Budget        Budget                   `json:"budget,omitzero"`
	Egress        []string                 `json:"egress,omitempty" doc:"Domains that sandboxes may reach; empty means the installation's list"`
	AllowCommands []string                 `json:"allow_commands,omitempty" doc:"Patterns of commands that may run; empty means all"`
	DenyCommands  []string                 `json:"deny_commands,omitempty" doc:"Patterns of commands that may not run"`
	RoleCommands  map[string]CommandPolicy `json:"role_commands,omitempty" doc:"More patterns for members of a role, by role"`
	Cleanup       CleanupPolicy            `json:"cleanup,omitzero"`
	MaxAttempts   int                      `json:"max_attempts,omitempty" doc:"Tries before a task is escalated; 0 means 3"`
	Extra         map[string]any           `json:"extra,omitempty"`
}

// CommandPolicy says which commands may run.
type CommandPolicy struct {
	Allow []string `json:"allow,omitempty" doc:"Patterns of commands that may run; empty means all"`
	Deny  []string `json:"deny,omitempty" doc:"Patterns of commands that may not run"`
}

// CleanupPolicy says what stays after a task ended.
type CleanupPolicy struct {
	KeepSandbox time.Duration `json:"keep_sandbox,omitempty" doc:"Keep the sandbox paused this long for debugging (nanoseconds)"`
	KeepBranch  bool          `json:"keep_branch,omitempty" doc:"Keep the branch after a merge"`
}

// Budget limits what may be spent. Zero means no limit at this level.
type Budget struct {
	TaskUSD  float64 `json:"task_usd,omitempty" minimum:"0" doc:"Most that one task may cost"`
	DayUSD   float64 `json:"day_usd,omitempty" minimum:"0" doc:"Most that may be spent in one UTC day"`
	TotalUSD float64 `json:"total_usd,omitempty" minimum:"0" doc:"Most that may be spent in all"`
	Tokens   int64   `json:"tokens,omitempty" minimum:"0" doc:"Most model tokens of one task, in and out"`
}

// UserRole is the place of a person in a squad, or what an API token allows.
type UserRole string

// The roles of people, from most to least.
const (
	RoleAdmin  UserRole = "admin"
	RoleMember UserRole = "member"
	RoleViewer UserRole = "viewer"
)

// User is a person who signs in.
type User struct {
	ID        string    `json:"id"`
	Name      string    `json:"name" minLength:"1" maxLength:"100"`
	Email     string    `json:"email,omitempty"`
	Admin     bool      `json:"admin" doc:"Administrator of the installation"`
	CreatedAt time.Time `json:"created_at"`
}

// SquadUser is a person's place in a squad.
type SquadUser struct {
	SquadID string   `json:"squad_id"`
	UserID  string   `json:"user_id"`
	Role    UserRole `json:"role" enum:"admin,member,viewer"`
	Name    string   `json:"name,omitempty" doc:"The person's name, in lists"`
}

// TokenKind says what an API token opens.
type TokenKind string

// Kinds of token. An agent's token opens one task and one sandbox; an E2B key
// speaks the E2B protocol only.
const (
	TokenUser    TokenKind = "user"
	TokenAgent   TokenKind = "agent"
	TokenE2B     TokenKind = "e2b"
	TokenSession TokenKind = "session"
	TokenSignIn  TokenKind = "sign_in"
)

// APIToken is a credential of a person, a member or an SDK. Only its hash is
// stored; the secret is shown once, when it is made.
type APIToken struct {
	ID         string    `json:"id"`
	UserID     string    `json:"user_id,omitempty"`
	Kind       TokenKind `json:"kind" enum:"user,agent,e2b,session,sign_in"`
	Name       string    `json:"name"`
	Scopes     []string  `json:"scopes" doc:"read, write, admin; empty means what the user may do"`
	MemberID   string    `json:"member_id,omitempty"`
	TaskID     string    `json:"task_id,omitempty"`
	SandboxID  string    `json:"sandbox_id,omitempty"`
	Prefix     string    `json:"prefix" doc:"First characters of the secret, to tell tokens apart"`
	Hash       string    `json:"-" doc:"SHA-256 of the secret in hex; never leaves the server"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	CreatedAt  time.Time `json:"created_at"`
}

// AuditEntry records who changed what.
type AuditEntry struct {
	ID      string          `json:"id"`
	At      time.Time       `json:"at"`
	Actor   string          `json:"actor" doc:"user:<id>, member:<id>, key:<id> or system"`
	Action  string          `json:"action" doc:"Verb and noun, for example task.create"`
	Subject string          `json:"subject" doc:"Identifier of what was changed"`
	Detail  json.RawMessage `json:"detail,omitempty"`
	Remote  string          `json:"remote,omitempty" doc:"Address of the client"`
}
