package client

import (
	"context"
	"iter"
	"net/http"

	"agentsquad"
)

// Me is who the client's token stands for.
type Me struct {
	squad.User
	Actor squad.Actor               `json:"actor"`
	Roles map[string]squad.UserRole `json:"roles"`
}

// Me says who the client's token stands for.
func (c *Client) Me(ctx context.Context) (Me, error) { return get[Me](ctx, c, "/me") }

// Users lists users; for administrators.
func (c *Client) Users(ctx context.Context) iter.Seq2[squad.User, error] {
	return List[squad.User](ctx, c, "/users", nil)
}

// CreateUser makes a user.
func (c *Client) CreateUser(ctx context.Context, in squad.NewUser) (squad.User, error) {
	return create[squad.User](ctx, c, "/users", in)
}

// ChangeUser edits a user; "me" is oneself.
func (c *Client) ChangeUser(ctx context.Context, id string, in squad.UserChange) (squad.User, error) {
	return edit[squad.User](ctx, c, at("users", id), "", in)
}

// DeleteUser deletes a user with their tokens.
func (c *Client) DeleteUser(ctx context.Context, id string) error {
	return c.remove(ctx, at("users", id))
}

// SignInLink makes a one-time sign-in link; "me" is oneself.
func (c *Client) SignInLink(ctx context.Context, userID string) (squad.SignInLink, error) {
	return act[squad.SignInLink](ctx, c, at("users", userID, "sign-in-link"), nil)
}

// Tokens lists tokens, without their secrets.
func (c *Client) Tokens(ctx context.Context, filter Values) iter.Seq2[squad.APIToken, error] {
	return List[squad.APIToken](ctx, c, "/tokens", filter)
}

// CreateToken makes a token. Its secret is in the answer and nowhere else.
func (c *Client) CreateToken(ctx context.Context, in squad.NewToken) (squad.CreatedToken, error) {
	return act[squad.CreatedToken](ctx, c, "/tokens", in)
}

// DeleteToken revokes a token.
func (c *Client) DeleteToken(ctx context.Context, id string) error {
	return c.remove(ctx, at("tokens", id))
}

// Audit lists the audit log, newest first; for administrators.
func (c *Client) Audit(ctx context.Context, filter Values) iter.Seq2[squad.AuditEntry, error] {
	return List[squad.AuditEntry](ctx, c, "/audit", filter)
}

// Doctor examines the installation; for administrators.
func (c *Client) Doctor(ctx context.Context) ([]squad.Check, error) {
	return Collect(List[squad.Check](ctx, c, "/doctor", nil))
}

// Version says what the server runs.
func (c *Client) Version(ctx context.Context) (map[string]any, error) {
	return get[map[string]any](ctx, c, "/version")
}

// Ready says whether the server can work.
func (c *Client) Ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return squad.Wrap(squad.CodeUnavailable, err, "the server at %s does not answer", c.base)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return squad.Errorf(squad.CodeUnavailable, "the server at %s is not ready", c.base)
	}
	return nil
}
