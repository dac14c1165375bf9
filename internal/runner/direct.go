package runner

import (
	"context"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/git"
)

// direct is the forge itself, for a cloud sandbox that cannot reach this server. It
// gets a credential for reading this one repository, through a credential helper that
// reads it once from a pipe: it is in no file, argument, environment or configuration.
// Pushes are carried by the server, under the gateway's rules, and need none.
func (o *Outward) direct(ctx context.Context, sb squad.Sandbox, repo squad.Repository) (string, git.Auth, error) {
	if repo.Forge == squad.ForgeLocal || o.Narrow == nil {
		return "", git.Auth{}, squad.Errorf(squad.CodeRule, "a cloud sandbox cannot reach %s on this server: set SQUAD_PUBLIC_URL to an address that it can", repo.Name)
	}
	user, secret, err := o.Narrow(ctx, repo)
	kind := "a token that reads this one repository for an hour"
	if err != nil && o.ShareWide && squad.CodeOf(err) == squad.CodeRule {
		user, secret, err = o.Wide(ctx, repo.ID)
		kind = "the repository's own token, as share-forge-token allows"
	}
	if err != nil {
		return "", git.Auth{}, err
	}
	if secret == "" {
		return repo.URL, git.Auth{}, nil
	}
	o.warn(ctx, sb, repo, kind)
	return repo.URL, git.Auth{URL: repo.URL, User: user, Secret: secret, Helper: true}, nil
}

// warn says once for each sandbox that it was given a credential.
func (o *Outward) warn(ctx context.Context, sb squad.Sandbox, repo squad.Repository, kind string) {
	o.mu.Lock()
	told := o.warned[sb.ID]
	if o.warned == nil {
		o.warned = map[string]bool{}
	}
	o.warned[sb.ID] = true
	o.mu.Unlock()
	if told {
		return
	}
	if o.Log != nil {
		o.Log.WarnContext(ctx, "a cloud sandbox is given a credential of the forge; set public-url to avoid it",
			"sandbox_id", sb.ID, "repository_id", repo.ID, "credential", kind)
	}
	if o.Events == nil {
		return
	}
	text := "Warning: this cloud sandbox cannot reach the server, so its git is given " + kind + ", in memory only. Set SQUAD_PUBLIC_URL and it needs none."
	err := o.Events.Append(ctx, squad.Event{
		Type: squad.EventLog, SquadID: sb.SquadID, TaskID: sb.TaskID, ExecutionID: sb.ExecutionID, MemberID: sb.AgentID, SandboxID: sb.ID, RepositoryID: repo.ID,
		Payload: event.Payload(squad.LogChunk{Stream: "system", Text: text}),
	})
	if err != nil && o.Log != nil {
		o.Log.WarnContext(ctx, "the warning was not told", "error", err)
	}
}
