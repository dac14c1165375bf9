package gateway

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

const pushCapabilities = "report-status delete-refs side-band-64k quiet ofs-delta object-format=sha1 agent=squad"

// mayPush says whether the caller may push to the repository at all. One whose
// execution is over may still store checkpoints, so that its last work is safe
// before its sandbox goes; see checkRefs.
func (t *target) mayPush() error {
	if t.caller.task.ID == "" {
		return t.caller.working()
	}
	if !t.own() {
		return squad.Errorf(squad.CodeForbidden, "this sandbox works on another repository and may only read %s", t.repo.Name)
	}
	return nil
}

func (g *Gateway) advertisePush(w http.ResponseWriter, r *http.Request, t *target) error {
	if err := t.mayPush(); err != nil {
		return err
	}
	if err := g.fresh(r.Context(), t); err != nil {
		return err
	}
	res, err := g.runner.Run(r.Context(), git.Call{Dir: t.mirror.Dir(), MaxOutput: 64 << 20, Args: []string{
		"for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/", "refs/tags/", "refs/squad/checkpoints/" + t.checkpoints(),
	}})
	if err != nil {
		return git.Explain(err, "read "+t.repo.Name)
	}
	noCache(w, "application/x-git-receive-pack-advertisement")
	var b strings.Builder
	b.WriteString(git.Packet("# service=git-receive-pack\n") + git.Flush)
	lines := strings.Split(strings.TrimSpace(string(res.Stdout)), "\n")
	if lines[0] == "" {
		lines = []string{git.ZeroSHA + " capabilities^{}"}
	}
	for i, line := range lines {
		if i == 0 {
			line += "\x00" + pushCapabilities
		}
		b.WriteString(git.Packet(line + "\n"))
	}
	b.WriteString(git.Flush)
	io.WriteString(w, b.String()) //nolint:errcheck // the client is gone
	return nil
}

// checkpoints is the part of the checkpoint refs that is the caller's own.
func (t *target) checkpoints() string {
	if id := t.caller.execution.ID; id != "" {
		return id + "/"
	}
	return "none/"
}

// push is one push on its way through the checks.
type push struct {
	g       *Gateway
	t       *target
	req     pushRequest
	body    *bufio.Reader
	whole   io.Reader // what body reads from
	out     *sideband
	entry   *entry
	scratch *git.Scratch
	limit   int64

	commits []squad.Commit // new on the task's branch, oldest first
}

func (g *Gateway) receivePack(w http.ResponseWriter, r *http.Request, t *target) error {
	if err := t.mayPush(); err != nil {
		return err
	}
	limit := t.repo.Policy.MaxPushBytes
	if limit <= 0 {
		limit = g.cfg.MaxPushBytes
	}
	whole, err := requestBody(r, limit+1<<20)
	if err != nil {
		return err
	}
	p := &push{g: g, t: t, whole: whole, body: bufio.NewReaderSize(whole, 64<<10), limit: limit}
	if p.req, err = readPush(p.body); err != nil {
		return squad.Wrap(squad.CodeInvalid, err, "the push cannot be read: %v", err)
	}
	noCache(w, "application/x-git-receive-pack-result")
	if len(p.req.updates) == 0 {
		return nil // git asks with an empty request whether it may send a large one
	}
	p.out = &sideband{w: w, banded: p.req.caps["side-band-64k"], flush: func() {
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}}
	kind := "checkpoint"
	for _, u := range p.req.updates {
		if !strings.HasPrefix(u.ref, "refs/squad/checkpoints/") {
			kind = "push"
		}
	}
	if p.entry, err = g.begin(r.Context(), t.caller, kind); err != nil {
		p.drain(r.Body)
		return err
	}
	p.run(r)
	return nil
}

// run takes the push through all stages and answers. Whatever happens, the books
// are closed and the client is told.
func (p *push) run(r *http.Request) {
	refusals, err := p.checked(r)
	// From here on the client may go: what was accepted is finished.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Minute)
	defer cancel()
	var add func(*store.Tx) error
	if err == nil && len(refusals) == 0 {
		refusals, add, err = p.accept(ctx)
	}
	if p.scratch != nil {
		if cerr := p.scratch.Close(); cerr != nil {
			p.g.cfg.Log.WarnContext(ctx, "quarantine was not removed", "error", cerr)
		}
	}
	outcome := err
	if outcome == nil {
		for _, u := range p.req.updates {
			if why := refusals[u.ref]; why != "" {
				outcome = squad.Errorf(squad.CodeRule, "%s: %s", u.ref, why)
				break
			}
		}
	}
	if ferr := p.entry.finish(ctx, outcome, add); ferr != nil {
		p.g.cfg.Log.ErrorContext(ctx, "push is not in the books", "sandbox_id", p.t.caller.sandbox.ID, "error", ferr)
	}
	p.answer(ctx, refusals, err)
}

func (p *push) answer(ctx context.Context, refusals map[string]string, err error) {
	unpack := "ok"
	if err != nil {
		if squad.CodeOf(err) == squad.CodeInternal {
			p.g.cfg.Log.ErrorContext(ctx, "push failed", "sandbox_id", p.t.caller.sandbox.ID, "error", err)
		}
		p.out.say("%s", message(err))
		if refusals == nil {
			refusals = map[string]string{}
		}
		for _, u := range p.req.updates {
			if refusals[u.ref] == "" {
				refusals[u.ref] = message(err)
			}
		}
	} else if len(refusals) > 0 {
		// One refused ref refuses the push: half a push is nobody's intent.
		for _, u := range p.req.updates {
			if refusals[u.ref] == "" {
				refusals[u.ref] = "another ref of this push was refused"
			}
		}
	}
	p.out.report(unpack, p.req.updates, refusals)
}

// checked receives the objects into quarantine and applies every rule. The whole
// request has been read when it returns.
func (p *push) checked(r *http.Request) (map[string]string, error) {
	ctx := r.Context()
	defer p.drain(r.Body)
	refusals, err := p.checkRefs(ctx)
	if err != nil || len(refusals) > 0 {
		return refusals, err
	}
	if p.scratch, err = git.NewScratch(p.t.mirror.Dir()); err != nil {
		return nil, err
	}
	if err := p.unpack(ctx); err != nil {
		return nil, err
	}
	return p.checkContent(ctx)
}

// drain reads what the client still sends, within bounds: a client that is cut off
// while it sends does not read why.
func (p *push) drain(body io.Reader) {
	const most = 2 << 30
	if _, err := io.Copy(io.Discard, io.LimitReader(body, most)); err != nil {
		p.g.cfg.Log.Debug("rest of push was not read", "error", err)
	}
}

// unpack brings the pack into quarantine: few objects as they are, many as a pack,
// as git itself does. Broken objects and links are refused.
func (p *push) unpack(ctx context.Context) error {
	head, err := p.body.Peek(12)
	if err != nil || string(head[:4]) != "PACK" {
		return squad.Errorf(squad.CodeInvalid, "the push holds no pack")
	}
	limit := fmt.Sprintf("--max-input-size=%d", p.limit)
	args := []string{"index-pack", "--stdin", "--fix-thin", "--strict", limit}
	if binary.BigEndian.Uint32(head[8:]) < 100 {
		args = []string{"unpack-objects", "-q", "--strict", limit}
	}
	pack, feed := io.Pipe()
	guarded := make(chan error, 1)
	go func() { // ends with the body, or when nobody reads the pack any more
		err := guardPack(p.body, feed, len(git.ZeroSHA)/2, unpackFactor*p.limit)
		feed.CloseWithError(err)
		guarded <- err
	}()
	_, err = p.g.runner.Run(ctx, git.Call{
		Dir: p.t.mirror.Dir(), Args: args, Stdin: pack, Timeout: 10 * time.Minute,
		Env:    append(p.scratch.Env(), "GIT_ALLOC_LIMIT=768m"),
		Config: []string{"core.bigFileThreshold=16m", "pack.threads=1"},
	})
	pack.Close()
	lie := <-guarded
	if l, ok := p.whole.(*limited); ok && l.over {
		return p.tooLarge()
	}
	var failed *git.Error
	switch {
	case errors.Is(lie, errUnpacks):
		return squad.Errorf(squad.CodeTooLarge, "the push unpacks to more than the %d MiB that this repository allows", unpackFactor*p.limit>>20)
	case errors.As(err, &failed) && strings.Contains(failed.Stderr, "exceeds maximum allowed size"):
		return p.tooLarge()
	case failed != nil && failed.Err == nil:
		return squad.Wrap(squad.CodeInvalid, err, "git refuses the objects of the push: %s", oneLine(failed.Stderr))
	case lie != nil:
		return squad.Wrap(squad.CodeInvalid, lie, "the push holds a pack that cannot be read")
	}
	return err
}

// unpackFactor is how many times the limit of a push its files may have in all.
// Text shrinks to a fourth or so; what shrinks more is made to.
const unpackFactor = 8

func (p *push) tooLarge() error {
	return squad.Errorf(squad.CodeTooLarge, "the push is larger than the %d MiB that this repository allows", p.limit>>20)
}
