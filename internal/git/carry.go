package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Via is a remote that this program reaches itself, by smart HTTP.
type Via struct {
	Transport http.RoundTripper
	URL       string // of the repository
}

// cargo is one ref to bring to a remote.
type cargo struct {
	ref, sha string
	base     string // a commit that the remote is known to have, or ""
	force    bool   // replace what the remote has
}

// carry takes the objects out of the checkout and pushes them from here. The packs
// are git's own on both ends; in between stands only their list of refs.
func (c *Checkout) carry(ctx context.Context, op *operation, via *Via, x cargo) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	attempts, err := c.r.cfg.Retry.do(ctx, func() error { return c.carryOnce(ctx, op, via, x) })
	op.entry.Attempts = max(op.entry.Attempts, attempts)
	return err
}

func (c *Checkout) carryOnce(ctx context.Context, op *operation, via *Via, x cargo) error {
	old, err := via.ref(ctx, x.ref)
	if err != nil || old == x.sha {
		return err
	}
	after := ""
	if old != "" && !x.force {
		after = old
	}
	args := []string{x.sha, after}
	if x.base != "" {
		args = append(args, x.base)
	}
	pack, in := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := c.pack(ctx, op, in, args)
		packed <- err // before the remote can answer to the end of the pack
		in.CloseWithError(err)
	}()
	answer := via.send(WithProgress(ctx, op.progress), x.ref, old, x.sha, pack)
	select {
	case err := <-packed:
		if err != nil {
			return err // the remote's answer is to half a pack
		}
	default: // it answered before it had all
		pack.CloseWithError(errAnswered)
		<-packed
	}
	return answer
}

var errAnswered = errors.New("the remote has answered")

// pack writes the objects that the script's arguments name.
func (c *Checkout) pack(ctx context.Context, op *operation, w io.Writer, args []string) error {
	res, err := c.r.script(ctx, "pack-objects", packScript, Call{
		Dir: c.dir, Args: args, Stdout: w, Progress: op.progress, Timeout: 15 * time.Minute, Accept: []int{exitNotAncestor},
	})
	if err == nil && res.ExitCode == exitNotAncestor {
		return &Error{Op: "push", Kind: KindRejected, ExitCode: 1, Stderr: "the remote contains work that you do not have (fetch first)"}
	}
	return err
}

// ref is where a ref of the remote is, "" where it is not.
func (v *Via) ref(ctx context.Context, name string) (string, error) {
	res, err := v.do(ctx, http.MethodGet, "/info/refs?service=git-receive-pack", nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	r := bufio.NewReader(io.LimitReader(res.Body, 64<<20))
	for flushes := 0; flushes < 2; {
		data, err := ReadPacket(r)
		if err != nil {
			return "", fmt.Errorf("read refs of remote: %w", err)
		}
		if data == nil {
			flushes++
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\x00")
		if sha, ref, ok := strings.Cut(line, " "); ok && ref == name && ValidSHA(sha) {
			return sha, nil
		}
	}
	return "", nil
}

// send moves a ref of the remote, with the objects that it needs.
func (v *Via) send(ctx context.Context, ref, old, sha string, pack io.Reader) error {
	if old == "" {
		old = ZeroSHA
	}
	head := Packet(old+" "+sha+" "+ref+"\x00report-status agent=squad\n") + Flush
	res, err := v.do(ctx, http.MethodPost, "/git-receive-pack", io.MultiReader(strings.NewReader(head), pack))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return readReport(bufio.NewReader(io.LimitReader(res.Body, 1<<20)), ref)
}

// readReport reads what became of the push.
func readReport(r io.Reader, ref string) error {
	for {
		data, err := ReadPacket(r)
		if err != nil || data == nil {
			return &Error{Op: "push", Kind: KindNetwork, ExitCode: 1, Stderr: "the remote did not say what became of the push"}
		}
		line := strings.TrimSuffix(string(data), "\n")
		if why, ok := strings.CutPrefix(line, "unpack "); ok && why != "ok" {
			return refused(ref, "unpacker error: "+why)
		}
		if why, ok := strings.CutPrefix(line, "ng "+ref+" "); ok {
			return refused(ref, why)
		}
		if line == "ok "+ref {
			return nil
		}
	}
}

// refused is the error of a git program that was told the same.
func refused(ref, why string) error {
	text := fmt.Sprintf("! [remote rejected] %s (%s)", strings.TrimPrefix(ref, "refs/heads/"), Redact(why))
	return &Error{Op: "push", Kind: classify(text), ExitCode: 1, Stderr: text}
}

func (v *Via) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(v.URL, "/")+path, body)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-git-receive-pack-request")
		req.Header.Set("Accept", "application/x-git-receive-pack-result")
	}
	res, err := v.Transport.RoundTrip(req)
	if err != nil {
		return nil, &Error{Op: "push", Kind: KindNetwork, ExitCode: -1, Stderr: err.Error(), Err: err}
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	kind := KindRefused
	switch {
	case res.StatusCode >= 500, res.StatusCode == http.StatusTooManyRequests:
		kind = KindNetwork
	case res.StatusCode == http.StatusNotFound:
		kind = KindNotFound
	case res.StatusCode == http.StatusUnauthorized:
		kind = KindAuth
	}
	return nil, &Error{Op: "push", Kind: kind, ExitCode: 1, Stderr: Redact(strings.TrimSpace(string(text)))}
}
