package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"

	"agentsquad"
)

// Sandboxes lists sandboxes.
func (c *Client) Sandboxes(ctx context.Context, filter Values) iter.Seq2[squad.Sandbox, error] {
	return List[squad.Sandbox](ctx, c, "/sandboxes", filter)
}

// Sandbox reads a sandbox.
func (c *Client) Sandbox(ctx context.Context, id string) (squad.Sandbox, error) {
	return get[squad.Sandbox](ctx, c, at("sandboxes", id))
}

// CreateSandbox makes a sandbox and waits until it runs.
func (c *Client) CreateSandbox(ctx context.Context, in squad.SandboxRequest) (squad.Sandbox, error) {
	return create[squad.Sandbox](ctx, c, "/sandboxes", in)
}

// DeleteSandbox destroys a sandbox.
func (c *Client) DeleteSandbox(ctx context.Context, id string) error {
	return c.remove(ctx, at("sandboxes", id))
}

// Execute runs a command in a sandbox to its end.
func (c *Client) Execute(ctx context.Context, id string, in squad.Command) (squad.CommandResult, error) {
	return act[squad.CommandResult](ctx, c, at("sandboxes", id, "execute"), in)
}

// PauseSandbox pauses a sandbox, keeping its memory.
func (c *Client) PauseSandbox(ctx context.Context, id string) (squad.Sandbox, error) {
	return act[squad.Sandbox](ctx, c, at("sandboxes", id, "pause"), nil)
}

// ResumeSandbox resumes a sandbox.
func (c *Client) ResumeSandbox(ctx context.Context, id string) (squad.Sandbox, error) {
	return act[squad.Sandbox](ctx, c, at("sandboxes", id, "resume"), nil)
}

// ForkSandbox makes copies of a sandbox as it is now.
func (c *Client) ForkSandbox(ctx context.Context, id string, count int) ([]squad.Sandbox, error) {
	out, err := act[struct {
		Items []squad.Sandbox `json:"items"`
	}](ctx, c, at("sandboxes", id, "fork"), map[string]int{"count": count})
	return out.Items, err
}

// SandboxMetrics are the newest measurements of a sandbox.
func (c *Client) SandboxMetrics(ctx context.Context, id string) iter.Seq2[squad.SandboxSample, error] {
	return List[squad.SandboxSample](ctx, c, at("sandboxes", id, "metrics"), nil)
}

// Files lists a directory of a sandbox.
func (c *Client) Files(ctx context.Context, id, path string) iter.Seq2[squad.FileInfo, error] {
	return List[squad.FileInfo](ctx, c, at("sandboxes", id, "files"), Values{"path": path})
}

// Upload writes a file into a sandbox. It reads r to its end.
func (c *Client) Upload(ctx context.Context, id, path string, r io.Reader) (squad.FileInfo, error) {
	var out squad.FileInfo
	err := c.do(ctx, call{
		method: http.MethodPut, path: at("sandboxes", id, "files", "content"), query: url.Values{"path": {path}}, body: r, out: &out,
	})
	return out, err
}

// Download opens a file of a sandbox; the caller closes it. Size is -1 where
// the server does not tell it.
func (c *Client) Download(ctx context.Context, id, path string) (r io.ReadCloser, size int64, err error) {
	resp, err := c.send(ctx, call{method: http.MethodGet, path: at("sandboxes", id, "files", "content"), query: url.Values{"path": {path}}}, nil)
	if err != nil {
		return nil, 0, err
	}
	return resp.Body, resp.ContentLength, nil
}

// RemoveFile deletes a file or directory of a sandbox.
func (c *Client) RemoveFile(ctx context.Context, id, path string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: at("sandboxes", id, "files"), query: url.Values{"path": {path}}})
}

// Git does a git verb in a sandbox: clone, branch, commit, push or pull.
func (c *Client) Git(ctx context.Context, id, verb string, in squad.GitRequest) (squad.GitOperation, error) {
	return act[squad.GitOperation](ctx, c, at("sandboxes", id, verb), in)
}

// OpenPull opens the pull request of the sandbox's branch, or finds it.
func (c *Client) OpenPull(ctx context.Context, id string, in squad.GitRequest) (squad.PullRequest, error) {
	return act[squad.PullRequest](ctx, c, at("sandboxes", id, "pr"), in)
}

// GitStatus is where the checkout in a sandbox stands.
func (c *Client) GitStatus(ctx context.Context, id, repositoryID string) (squad.GitStatus, error) {
	var out squad.GitStatus
	q := Values{"repository_id": repositoryID}.encode()
	err := c.do(ctx, call{method: http.MethodGet, path: at("sandboxes", id, "status"), query: q, out: &out})
	return out, err
}

// GitDiff is what the checkout in a sandbox changes against its base.
func (c *Client) GitDiff(ctx context.Context, id, repositoryID string) (squad.Diff, error) {
	var out squad.Diff
	q := Values{"repository_id": repositoryID}.encode()
	err := c.do(ctx, call{method: http.MethodGet, path: at("sandboxes", id, "diff"), query: q, out: &out})
	return out, err
}

// Templates lists what sandboxes may start from, with the state of their builds.
func (c *Client) Templates(ctx context.Context) iter.Seq2[squad.Template, error] {
	return List[squad.Template](ctx, c, "/templates", nil)
}

// BuildTemplate begins to build a template; [Client.Templates] tells how it goes.
func (c *Client) BuildTemplate(ctx context.Context, in squad.NewTemplate) (squad.Template, error) {
	return act[squad.Template](ctx, c, "/templates", in)
}

// PutTemplate makes or replaces a template: base, and at /opt/<name> the files of
// a tar archive. It reads r to its end.
func (c *Client) PutTemplate(ctx context.Context, name string, r io.Reader) (squad.Template, error) {
	var out squad.Template
	err := c.do(ctx, call{method: http.MethodPut, path: at("templates", name), body: r, out: &out})
	return out, err
}

// DeleteTemplate deletes a template; sandboxes that stand on it go on.
func (c *Client) DeleteTemplate(ctx context.Context, id string) error {
	return c.remove(ctx, at("templates", id))
}
