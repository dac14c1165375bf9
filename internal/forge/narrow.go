package forge

import (
	"context"

	"github.com/google/go-github/v88/github"

	squad "agentsquad"
)

// Narrow returns user and password that read one repository and do nothing else, for
// about an hour: a GitHub App's token cut down to that repository and to reading its
// contents. It is what may be handed to a sandbox that cannot reach the gateway.
// Where only a wider credential is known it is an error that says what to do; where
// none is known both are empty, and the remote is read without.
func (c *Credentials) Narrow(ctx context.Context, repo squad.Repository) (user, secret string, err error) {
	cred, ok, err := c.ofForge(ctx, repo)
	if err != nil {
		return "", "", err
	}
	if !ok && c.ofEnv(repo) == "" {
		return "", "", nil
	}
	if !ok || cred.Kind != squad.CredentialGitHubApp {
		return "", "", squad.Errorf(squad.CodeRule, "the credential of %s is a token that opens more than this repository, and is not handed to a cloud sandbox: "+
			"set SQUAD_PUBLIC_URL to an address under which the sandbox reaches this server, or use a GitHub App, whose tokens can be narrowed", repo.Name)
	}
	_, name, err := ownerAndName(repo.Name)
	if err != nil {
		return "", "", err
	}
	secret, err = c.installationToken(ctx, cred, gitHubAPI(repo), &github.InstallationTokenOptions{
		Repositories: []string{name}, Permissions: &github.InstallationPermissions{Contents: github.Ptr("read"), Metadata: github.Ptr("read")},
	})
	return "x-access-token", secret, err
}
