package e2b

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Create makes a sandbox and returns it running. It is not repeated after a
// lost answer, since the sandbox may exist: put a label of your own into
// Metadata and look for it with [Client.List] where that matters.
func (c *Client) Create(ctx context.Context, opts CreateOptions) (*Sandbox, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	var out wireSandbox
	newer := call{op: "create sandbox", method: http.MethodPost, path: "/v2/sandboxes", body: opts.body(), out: &out}
	older := newer
	older.path, older.body = "/sandboxes", opts.olderBody()
	if err := c.newest(ctx, &c.paths.create, newer, older); err != nil {
		return nil, err
	}
	return c.handle(out, newer.op)
}

// ConnectOptions say how to come back to a sandbox.
type ConnectOptions struct {
	// Timeout extends the life of the sandbox to at least this long from now; it
	// never shortens it. Defaults to 300 s.
	Timeout time.Duration
	// Reboot starts a paused sandbox afresh from its files, without its memory.
	Reboot bool
}

// Connect returns a handle to a running sandbox, or resumes a paused one.
func (c *Client) Connect(ctx context.Context, id string, opts ConnectOptions) (*Sandbox, error) {
	if opts.Timeout <= 0 {
		opts.Timeout = 300 * time.Second
	}
	body := map[string]any{"timeout": seconds(opts.Timeout)}
	if opts.Reboot {
		body["memory"] = false
	}
	var out wireSandbox
	newer := call{op: "connect to sandbox", method: http.MethodPost, path: "/v2" + path(id, "connect"), body: body, out: &out, gone: true}
	older := newer
	older.path = path(id, "connect")
	if err := c.newest(ctx, &c.paths.connect, newer, older); err != nil {
		return nil, err
	}
	return c.handle(out, newer.op)
}

// Get tells about one sandbox, running or paused.
func (c *Client) Get(ctx context.Context, id string) (SandboxInfo, error) {
	var raw json.RawMessage
	err := c.do(ctx, call{op: "get sandbox", method: http.MethodGet, path: path(id, ""), out: &raw, gone: true})
	if err != nil {
		return SandboxInfo{}, err
	}
	var info SandboxInfo
	var secret struct {
		Token *string `json:"envdAccessToken"`
	}
	if err := json.Unmarshal(raw, &info); err != nil {
		return SandboxInfo{}, &Error{Op: "get sandbox", Message: "answer is not the JSON expected", Err: err}
	}
	if json.Unmarshal(raw, &secret) == nil && secret.Token != nil {
		info.accessToken = *secret.Token
	}
	return info, nil
}

// Open returns a handle made of what [Client.Get] told, without a request and
// without a change to the sandbox's time.
func (c *Client) Open(info SandboxInfo) *Sandbox {
	return c.sandbox(Sandbox{
		ID: info.ID, TemplateID: info.TemplateID, EnvdVersion: info.EnvdVersion,
		Domain: info.Domain, accessToken: info.accessToken,
	})
}

// Kill ends a sandbox, also a paused one. It reports whether there was one.
func (c *Client) Kill(ctx context.Context, id string) (bool, error) {
	err := c.do(ctx, call{op: "kill sandbox", method: http.MethodDelete, path: path(id, ""), gone: true})
	if isGone(err) {
		return false, nil
	}
	return err == nil, err
}

// ListOptions choose sandboxes; the zero value chooses all running and paused.
type ListOptions struct {
	// Metadata that a sandbox must have, each pair of it.
	Metadata map[string]string
	// States; empty means all.
	States []State
	// Template id or name, without a tag.
	Template string
	// StartedAfter leaves out what started before.
	StartedAfter time.Time
	// OldestFirst turns the order, which is newest first.
	OldestFirst bool
	// PageSize is how many one request asks for, at most 100, the default.
	PageSize int
}

// List walks over sandboxes, asking for page after page as the caller goes on.
// The walk ends after the first error.
func (c *Client) List(ctx context.Context, opts ListOptions) iter.Seq2[SandboxInfo, error] {
	return func(yield func(SandboxInfo, error) bool) {
		query := opts.query()
		for {
			var page []SandboxInfo
			var header http.Header
			newer := call{op: "list sandboxes", method: http.MethodGet, path: "/v2/sandboxes", query: query, out: &page, header: &header}
			older := newer
			older.path, older.query = "/sandboxes", only(query, "metadata")
			if err := c.newest(ctx, &c.paths.list, newer, older); err != nil {
				yield(SandboxInfo{}, err)
				return
			}
			for _, info := range page {
				if info.State == "" {
					info.State = StateRunning // the older path knows no other
				}
				if len(opts.States) > 0 && !slices.Contains(opts.States, info.State) {
					continue
				}
				if !yield(info, nil) {
					return
				}
			}
			next := header.Get("X-Next-Token")
			if next == "" || next == query.Get("nextToken") {
				return
			}
			query.Set("nextToken", next)
		}
	}
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	if len(o.Metadata) > 0 {
		q.Set("metadata", encodeMetadata(o.Metadata))
	}
	if len(o.States) > 0 {
		states := make([]string, len(o.States))
		for i, s := range o.States {
			states[i] = string(s)
		}
		q.Set("state", strings.Join(states, ","))
	}
	if o.Template != "" {
		q.Set("template", o.Template)
	}
	if !o.StartedAfter.IsZero() {
		q.Set("startedAfter", o.StartedAfter.UTC().Format(time.RFC3339Nano))
	}
	if o.OldestFirst {
		q.Set("order", "asc")
	}
	if o.PageSize > 0 {
		q.Set("limit", strconv.Itoa(min(o.PageSize, 100)))
	}
	return q
}

// encodeMetadata follows the official SDK: keys and values are escaped twice
// before the whole is escaped as a query value once more.
func encodeMetadata(m map[string]string) string {
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	pairs := make([]string, 0, len(m))
	for k, v := range m {
		pairs = append(pairs, escape(escape(k))+"="+escape(escape(v)))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// Check makes the cheapest request that needs a good key, and tells how long
// the answer took.
func (c *Client) Check(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	for _, err := range c.List(ctx, ListOptions{PageSize: 1}) {
		if err != nil {
			return 0, err
		}
		break
	}
	return time.Since(start), nil
}

func only(q url.Values, name string) url.Values {
	if v := q.Get(name); v != "" {
		return url.Values{name: {v}}
	}
	return nil
}

func path(id, verb string) string {
	p := "/sandboxes/" + url.PathEscape(id)
	if verb != "" {
		p += "/" + verb
	}
	return p
}
