package squad

import "slices"

// Actor is who asks: a person, a member through its agent token, an SDK through
// an E2B key, or the house itself. The API makes it from the caller's token and
// hands it down; rooms that own a verb check it again where they must.
type Actor struct {
	Kind    TokenKind `json:"kind,omitempty"` // empty for the house itself
	UserID  string    `json:"user_id,omitempty"`
	TokenID string    `json:"token_id,omitempty"`
	// Admin is an administrator of the installation whose token is not narrowed.
	Admin bool `json:"admin,omitempty"`
	// Ceiling is the most that the token's scopes allow, in any squad.
	Ceiling UserRole `json:"ceiling,omitempty"`
	// Roles are the person's places by squad; unused for administrators.
	Roles map[string]UserRole `json:"-"`
	// MemberID, SquadID, TaskID and SandboxID bound an agent's token.
	MemberID  string `json:"member_id,omitempty"`
	SquadID   string `json:"squad_id,omitempty"`
	TaskID    string `json:"task_id,omitempty"`
	SandboxID string `json:"sandbox_id,omitempty"`
	// MemberRole is the role of the agent's member, for example project_manager.
	MemberRole string `json:"member_role,omitempty"`
	// Remote is the address of the client, for the audit log.
	Remote string `json:"-"`
}

// System is the actor of work that the house does by itself.
func System() Actor { return Actor{Admin: true, Ceiling: RoleAdmin} }

// String names the actor as audit entries and messages do.
func (a Actor) String() string {
	switch {
	case a.MemberID != "":
		return "member:" + a.MemberID
	case a.Kind == TokenE2B:
		return "key:" + a.TokenID
	case a.UserID != "":
		return "user:" + a.UserID
	default:
		return "system"
	}
}

// IsAgent says whether the actor is a member, bounded to its task and sandbox.
func (a Actor) IsAgent() bool { return a.Kind == TokenAgent }

// Role is what the actor may be in a squad at most; empty means that the squad
// is not theirs to see. Agents have no role: they are bounded by identifiers.
func (a Actor) Role(squadID string) UserRole {
	if a.IsAgent() {
		return ""
	}
	role := RoleAdmin
	if !a.Admin {
		role = a.Roles[squadID]
	}
	return lesser(role, a.Ceiling)
}

// May says whether the actor has at least the given role in a squad.
func (a Actor) May(squadID string, least UserRole) bool {
	return roleRank(a.Role(squadID)) >= roleRank(least)
}

// OwnsSandbox says whether a sandbox is the actor's to use: an agent's own, or
// one of a squad in which a person is at least a member.
func (a Actor) OwnsSandbox(s Sandbox) bool {
	if a.IsAgent() {
		return a.SandboxID != "" && a.SandboxID == s.ID ||
			a.TaskID != "" && a.TaskID == s.TaskID && a.MemberID == s.AgentID
	}
	if s.SquadID == "" {
		return a.Admin && a.Ceiling == RoleAdmin
	}
	return a.May(s.SquadID, RoleMember)
}

func lesser(a, b UserRole) UserRole {
	if roleRank(a) < roleRank(b) {
		return a
	}
	return b
}

func roleRank(r UserRole) int {
	return slices.Index([]UserRole{"", RoleViewer, RoleMember, RoleAdmin}, r)
}
