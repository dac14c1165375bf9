package client

import (
	"context"
	"iter"
	"net/http"

	"agentsquad"
)

// Squads lists the squads that the caller may see.
func (c *Client) Squads(ctx context.Context, filter Values) iter.Seq2[squad.Squad, error] {
	return List[squad.Squad](ctx, c, "/squads", filter)
}

// Squad reads a squad.
func (c *Client) Squad(ctx context.Context, id string) (squad.Squad, error) {
	return get[squad.Squad](ctx, c, at("squads", id))
}

// CreateSquad makes a squad.
func (c *Client) CreateSquad(ctx context.Context, in squad.NewSquad) (squad.Squad, error) {
	return create[squad.Squad](ctx, c, "/squads", in)
}

// ChangeSquad edits a squad.
func (c *Client) ChangeSquad(ctx context.Context, id string, in squad.SquadChange) (squad.Squad, error) {
	return edit[squad.Squad](ctx, c, at("squads", id), "", in)
}

// DeleteSquad deletes a squad with what belongs to it.
func (c *Client) DeleteSquad(ctx context.Context, id string) error {
	return c.remove(ctx, at("squads", id))
}

// SquadUsers lists the people of a squad.
func (c *Client) SquadUsers(ctx context.Context, squadID string) iter.Seq2[squad.SquadUser, error] {
	return List[squad.SquadUser](ctx, c, at("squads", squadID, "users"), nil)
}

// PutSquadUser gives a person a role in a squad.
func (c *Client) PutSquadUser(ctx context.Context, squadID, userID string, role squad.UserRole) (squad.SquadUser, error) {
	var out squad.SquadUser
	body := map[string]squad.UserRole{"role": role}
	err := c.do(ctx, call{method: http.MethodPut, path: at("squads", squadID, "users", userID), body: body, out: &out})
	return out, err
}

// DeleteSquadUser takes a person out of a squad.
func (c *Client) DeleteSquadUser(ctx context.Context, squadID, userID string) error {
	return c.remove(ctx, at("squads", squadID, "users", userID))
}

// Members lists members.
func (c *Client) Members(ctx context.Context, filter Values) iter.Seq2[squad.Member, error] {
	return List[squad.Member](ctx, c, "/members", filter)
}

// Member reads a member.
func (c *Client) Member(ctx context.Context, id string) (squad.Member, error) {
	return get[squad.Member](ctx, c, at("members", id))
}

// CreateMember makes a member.
func (c *Client) CreateMember(ctx context.Context, in squad.NewMember) (squad.Member, error) {
	return create[squad.Member](ctx, c, "/members", in)
}

// ChangeMember edits a member.
func (c *Client) ChangeMember(ctx context.Context, id string, in squad.MemberChange) (squad.Member, error) {
	return edit[squad.Member](ctx, c, at("members", id), "", in)
}

// DeleteMember deletes a member.
func (c *Client) DeleteMember(ctx context.Context, id string) error {
	return c.remove(ctx, at("members", id))
}

// Repositories lists repositories.
func (c *Client) Repositories(ctx context.Context, filter Values) iter.Seq2[squad.Repository, error] {
	return List[squad.Repository](ctx, c, "/repositories", filter)
}

// Repository reads a repository.
func (c *Client) Repository(ctx context.Context, id string) (squad.Repository, error) {
	return get[squad.Repository](ctx, c, at("repositories", id))
}

// CreateRepository adds a repository.
func (c *Client) CreateRepository(ctx context.Context, in squad.NewRepository) (squad.Repository, error) {
	return create[squad.Repository](ctx, c, "/repositories", in)
}

// ChangeRepository edits a repository.
func (c *Client) ChangeRepository(ctx context.Context, id string, in squad.RepositoryChange) (squad.Repository, error) {
	return edit[squad.Repository](ctx, c, at("repositories", id), "", in)
}

// DeleteRepository removes a repository.
func (c *Client) DeleteRepository(ctx context.Context, id string) error {
	return c.remove(ctx, at("repositories", id))
}

// Branches lists the branches of a repository.
func (c *Client) Branches(ctx context.Context, repositoryID string) iter.Seq2[string, error] {
	return List[string](ctx, c, at("repositories", repositoryID, "branches"), nil)
}

// Conflicts lists overlapping work in a repository.
func (c *Client) Conflicts(ctx context.Context, repositoryID string) iter.Seq2[squad.Conflict, error] {
	return List[squad.Conflict](ctx, c, at("repositories", repositoryID, "conflicts"), nil)
}

// Credentials lists credentials, without their secrets.
func (c *Client) Credentials(ctx context.Context, filter Values) iter.Seq2[squad.Credential, error] {
	return List[squad.Credential](ctx, c, "/credentials", filter)
}

// CreateCredential stores a secret, sealed.
func (c *Client) CreateCredential(ctx context.Context, in squad.NewCredential) (squad.Credential, error) {
	return create[squad.Credential](ctx, c, "/credentials", in)
}

// ChangeCredential renames a credential or replaces its secret.
func (c *Client) ChangeCredential(ctx context.Context, id string, in squad.CredentialChange) (squad.Credential, error) {
	return edit[squad.Credential](ctx, c, at("credentials", id), "", in)
}

// DeleteCredential deletes a credential.
func (c *Client) DeleteCredential(ctx context.Context, id string) error {
	return c.remove(ctx, at("credentials", id))
}

// Messages lists messages.
func (c *Client) Messages(ctx context.Context, filter Values) iter.Seq2[squad.Message, error] {
	return List[squad.Message](ctx, c, "/messages", filter)
}

// SendMessage writes to a member, a person or the squad.
func (c *Client) SendMessage(ctx context.Context, in squad.NewMessage) (squad.Message, error) {
	return create[squad.Message](ctx, c, "/messages", in)
}
