package e2b

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// PauseOptions say what of a sandbox is kept.
type PauseOptions struct {
	// DropMemory keeps the files only; processes are lost and the sandbox boots
	// afresh when it is resumed.
	DropMemory bool
}

// Pause stops a sandbox and keeps it until it is resumed or killed. Pausing a
// paused one is no error.
func (c *Client) Pause(ctx context.Context, id string, opts PauseOptions) error {
	var body any
	if opts.DropMemory {
		body = map[string]bool{"memory": false}
	}
	err := c.do(ctx, call{op: "pause sandbox", method: http.MethodPost, path: path(id, "pause"), body: body, gone: true})
	if errors.Is(err, ErrConflict) {
		// 409 means paused already or on its way elsewhere; only the first is well.
		if info, getErr := c.Get(ctx, id); getErr == nil && info.State == StatePaused {
			return nil
		}
	}
	return err
}

// Resume wakes a paused sandbox; on a running one it extends its time only.
// It is [Client.Connect], with the older resume path where connect is unknown.
func (c *Client) Resume(ctx context.Context, id string, opts ConnectOptions) (*Sandbox, error) {
	sb, err := c.Connect(ctx, id, opts)
	if !unknownPath(err) || c.paths.connect.state.Load() != 0 {
		return sb, err
	}
	timeout := opts.Timeout
	if timeout <= 0 {
		timeout = 300 * time.Second
	}
	var out wireSandbox
	older := c.do(ctx, call{
		op: "resume sandbox", method: http.MethodPost, path: path(id, "resume"), gone: true,
		body: map[string]any{"timeout": seconds(timeout)}, out: &out,
	})
	if older != nil {
		return nil, err
	}
	return c.handle(out, "resume sandbox")
}

// SetTimeout lets the sandbox end this long from now; it may shorten its life.
func (c *Client) SetTimeout(ctx context.Context, id string, d time.Duration) error {
	return c.do(ctx, call{
		op: "set sandbox timeout", method: http.MethodPost, path: path(id, "timeout"), gone: true,
		body: map[string]int64{"timeout": seconds(max(d, 0))},
	})
}

// Extend calls a verb that a server has beyond E2B's: POST /sandboxes/{id}/{verb}. The
// answer is decoded into out, which may be nil. A server that does not have it is
// [ErrNotFound].
func (c *Client) Extend(ctx context.Context, id, verb string, body, out any) error {
	return c.do(ctx, call{op: verb, method: http.MethodPost, path: path(id, verb), body: body, out: out})
}

// SetNetwork replaces what a sandbox may reach; what is not given is cleared.
func (c *Client) SetNetwork(ctx context.Context, id string, n Network) error {
	body := map[string]any{}
	if n.AllowOut != nil {
		body["allowOut"] = n.AllowOut
	}
	if n.DenyOut != nil {
		body["denyOut"] = n.DenyOut
	}
	if n.Rules != nil {
		body["rules"] = n.Rules
	}
	if n.EgressProxy != nil {
		body["egressProxy"] = n.EgressProxy
	}
	return c.do(ctx, call{op: "set sandbox network", method: http.MethodPut, path: path(id, "network"), body: body, gone: true})
}

// Metrics returns the samples taken between two times; zero times are open
// ends. A young sandbox has none yet.
func (c *Client) Metrics(ctx context.Context, id string, from, to time.Time) ([]Metric, error) {
	q := url.Values{}
	if !from.IsZero() {
		q.Set("start", strconv.FormatInt(from.Unix(), 10))
	}
	if !to.IsZero() {
		q.Set("end", strconv.FormatInt(to.Unix(), 10))
	}
	var out []Metric
	err := c.do(ctx, call{op: "get sandbox metrics", method: http.MethodGet, path: path(id, "metrics"), query: q, out: &out, gone: true})
	return out, err
}

// Snapshot keeps the state of a sandbox under a name (may be empty), while it
// goes on. New sandboxes are made of it by its ID as Template.
func (c *Client) Snapshot(ctx context.Context, id, name string) (Snapshot, error) {
	body := map[string]string{}
	if name != "" {
		body["name"] = name
	}
	var out Snapshot
	err := c.do(ctx, call{op: "snapshot sandbox", method: http.MethodPost, path: path(id, "snapshots"), body: body, out: &out, gone: true})
	return out, err
}

// SnapshotOptions choose snapshots; empty fields choose all.
type SnapshotOptions struct {
	SandboxID string
	Name      string
	PageSize  int
}

// Snapshots walks over snapshots.
func (c *Client) Snapshots(ctx context.Context, opts SnapshotOptions) iter.Seq2[Snapshot, error] {
	return func(yield func(Snapshot, error) bool) {
		q := url.Values{}
		for name, v := range map[string]string{"sandboxID": opts.SandboxID, "name": opts.Name} {
			if v != "" {
				q.Set(name, v)
			}
		}
		if opts.PageSize > 0 {
			q.Set("limit", strconv.Itoa(min(opts.PageSize, 100)))
		}
		for {
			var page []Snapshot
			var header http.Header
			if err := c.do(ctx, call{op: "list snapshots", method: http.MethodGet, path: "/snapshots", query: q, out: &page, header: &header}); err != nil {
				yield(Snapshot{}, err)
				return
			}
			for _, s := range page {
				if !yield(s, nil) {
					return
				}
			}
			next := header.Get("X-Next-Token")
			if next == "" || next == q.Get("nextToken") {
				return
			}
			q.Set("nextToken", next)
		}
	}
}

// DeleteSnapshot removes a snapshot and reports whether there was one.
func (c *Client) DeleteSnapshot(ctx context.Context, id string) (bool, error) {
	err := c.do(ctx, call{op: "delete snapshot", method: http.MethodDelete, path: "/templates/" + url.PathEscape(id)})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ForkOptions say how many copies are made of a sandbox and how long they live.
type ForkOptions struct {
	Count   int           // Defaults to 1, at most 100.
	Timeout time.Duration // Defaults to 300 s.
}

// Fork copies a running sandbox, memory and files, into new ones. Some copies
// may fail: those that were made are returned, together with the joined errors
// of the others.
func (c *Client) Fork(ctx context.Context, id string, opts ForkOptions) ([]*Sandbox, error) {
	if opts.Timeout <= 0 {
		opts.Timeout = 300 * time.Second
	}
	var out []struct {
		Sandbox *wireSandbox `json:"sandbox"`
		Error   *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	err := c.do(ctx, call{
		op: "fork sandbox", method: http.MethodPost, path: path(id, "fork"), gone: true, out: &out,
		body: map[string]int64{"timeout": seconds(opts.Timeout), "count": int64(max(1, opts.Count))},
	})
	if err != nil {
		return nil, err
	}
	var made []*Sandbox
	var failed []error
	for _, one := range out {
		switch {
		case one.Sandbox != nil:
			sb, err := c.handle(*one.Sandbox, "fork sandbox")
			if err != nil {
				failed = append(failed, err)
				continue
			}
			made = append(made, sb)
		case one.Error != nil:
			e := httpError("fork sandbox", one.Error.Code, nil, nil)
			e.Message = one.Error.Message
			failed = append(failed, e)
		}
	}
	return made, errors.Join(failed...)
}

// The same verbs on the handle.

// Pause is [Client.Pause].
func (s *Sandbox) Pause(ctx context.Context, opts PauseOptions) error {
	return s.client.Pause(ctx, s.ID, opts)
}

// Resume is [Client.Resume]. The handle stays good.
func (s *Sandbox) Resume(ctx context.Context, opts ConnectOptions) error {
	_, err := s.client.Resume(ctx, s.ID, opts)
	return err
}

// SetTimeout is [Client.SetTimeout].
func (s *Sandbox) SetTimeout(ctx context.Context, d time.Duration) error {
	return s.client.SetTimeout(ctx, s.ID, d)
}

// SetNetwork is [Client.SetNetwork].
func (s *Sandbox) SetNetwork(ctx context.Context, n Network) error {
	return s.client.SetNetwork(ctx, s.ID, n)
}

// Metrics is [Client.Metrics].
func (s *Sandbox) Metrics(ctx context.Context, from, to time.Time) ([]Metric, error) {
	return s.client.Metrics(ctx, s.ID, from, to)
}

// Snapshot is [Client.Snapshot].
func (s *Sandbox) Snapshot(ctx context.Context, name string) (Snapshot, error) {
	return s.client.Snapshot(ctx, s.ID, name)
}

// Fork is [Client.Fork].
func (s *Sandbox) Fork(ctx context.Context, opts ForkOptions) ([]*Sandbox, error) {
	return s.client.Fork(ctx, s.ID, opts)
}

// MetricsOf returns the newest sample of each of up to 100 running sandboxes in
// one request, by id. Those without a sample are left out.
func (c *Client) MetricsOf(ctx context.Context, ids []string) (map[string]Metric, error) {
	var out struct {
		Sandboxes map[string]Metric `json:"sandboxes"`
	}
	q := url.Values{"sandbox_ids": {strings.Join(ids, ",")}}
	err := c.do(ctx, call{op: "get metrics of sandboxes", method: http.MethodGet, path: "/sandboxes/metrics", query: q, out: &out})
	return out.Sandboxes, err
}
