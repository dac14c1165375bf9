package api

import (
	"context"

	"agentsquad"
)

// actorOf is who asks; the door has refused strangers before.
func actorOf(ctx context.Context) squad.Actor {
	a, _ := ActorFrom(ctx)
	return a
}

// mayAdminister wants an administrator of the installation with a full token.
func mayAdminister(a squad.Actor) error {
	if a.Admin && a.Ceiling == squad.RoleAdmin {
		return nil
	}
	return squad.Errorf(squad.CodeForbidden, "only an administrator of the installation may do this")
}

// isFull says whether a person asks with a token that is not narrowed.
func isFull(a squad.Actor) bool { return !a.IsAgent() && a.Ceiling == squad.RoleAdmin }

// mayInSquad wants a role in a squad. Who may not even see the squad is told
// that the thing asked for does not exist.
func mayInSquad(a squad.Actor, squadID string, least squad.UserRole, kind, id string) error {
	switch {
	case a.May(squadID, least):
		return nil
	case a.May(squadID, squad.RoleViewer):
		return squad.Errorf(squad.CodeForbidden, "this needs the role %s in the squad, yours is %s", least, a.Role(squadID))
	default:
		return squad.NotFound(kind, id)
	}
}

// seesSquad says whether a squad's own row, and its members, may be read.
func seesSquad(a squad.Actor, squadID string) bool {
	if a.IsAgent() {
		return squadID != "" && a.SquadID == squadID
	}
	return a.May(squadID, squad.RoleViewer)
}

// manages says whether an agent is its squad's project manager, who may read
// and write the tasks of the whole squad.
func manages(a squad.Actor, squadID string) bool {
	return a.IsAgent() && a.MemberRole == squad.RoleProjectManager && squadID != "" && a.SquadID == squadID
}

// seesTask says whether a task, and what belongs to it, may be read.
func seesTask(a squad.Actor, squadID, taskID string) bool {
	if a.IsAgent() {
		return manages(a, squadID) || taskID != "" && a.TaskID == taskID
	}
	return a.May(squadID, squad.RoleViewer)
}

// mayWriteTask wants someone who may change a task.
func mayWriteTask(a squad.Actor, squadID, taskID string) error {
	if manages(a, squadID) {
		return nil
	}
	if a.IsAgent() && seesTask(a, squadID, taskID) {
		return squad.Errorf(squad.CodeForbidden, "a member may not change its own task; write to the project manager")
	}
	return mayInSquad(a, squadID, squad.RoleMember, "task", taskID)
}

// seesEvent is the rule of the streams: by squad for people, by task and
// sandbox for agents. Events of no squad are for administrators.
func seesEvent(a squad.Actor, e *squad.Event) bool {
	if a.IsAgent() {
		return seesTask(a, e.SquadID, e.TaskID) || e.SandboxID != "" && e.SandboxID == a.SandboxID
	}
	if e.SquadID == "" {
		return a.Admin
	}
	return a.May(e.SquadID, squad.RoleViewer)
}
