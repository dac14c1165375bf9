package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// kept are the request headers that reach the provider. All others stay here:
// whatever the sandbox sends as a credential is not one.
var kept = []string{"Content-Type", "Accept", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "X-Stainless-Lang", "X-Stainless-Package-Version", "X-Goog-Api-Client", "Idempotency-Key"}

// dropped are the answer's headers that stay here, besides those of the connection.
var dropped = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Transfer-Encoding": true, "Upgrade": true, "Trailer": true, "Proxy-Authenticate": true, "Set-Cookie": true,
	"Alt-Svc": true, "Strict-Transport-Security": true, "Openai-Organization": true, "Openai-Project": true, "Anthropic-Organization-Id": true,
}

// pass sends a call to the provider and its answer back, byte for byte. With a
// meter the answer is read on the way.
func (m *models) pass(w http.ResponseWriter, r *http.Request, call *modelCall, key string, meter *meter) error {
	address := *call.upstream
	// SDKs of OpenAI have /v1 in the base address, and so may a member's.
	base := strings.TrimSuffix(strings.TrimSuffix(address.Path, "/"), "/v1")
	address.Path, address.RawQuery = base+"/"+call.path, r.URL.RawQuery
	if query := r.URL.Query(); query.Has("key") { // Google's other place for a credential
		query.Del("key")
		address.RawQuery = query.Encode()
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, address.String(), bytes.NewReader(call.body))
	if err != nil {
		return fmt.Errorf("make model request: %w", err)
	}
	for _, name := range kept {
		if v := r.Header.Values(name); len(v) > 0 {
			req.Header[name] = v
		}
	}
	switch call.provider {
	case "anthropic":
		req.Header.Set("X-Api-Key", key)
	case "gemini":
		req.Header.Set("X-Goog-Api-Key", key)
	default:
		req.Header.Set("Authorization", "Bearer "+key)
	}
	m.watch(call, "model", call.ask.Model)
	resp, err := m.transport.RoundTrip(req)
	m.watch(call, waitState(resp), waitDetail(call, resp))
	if err != nil {
		if r.Context().Err() != nil {
			meter.cutOff()
			return nil
		}
		return squad.Wrap(squad.CodeUnavailable, err, "%s could not be reached", call.provider)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		// The provider's own words may quote the key.
		return squad.Errorf(squad.CodeProvider, "%s refused the server's key (status %d)", call.provider, resp.StatusCode)
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return squad.Errorf(squad.CodeProvider, "%s answered with a redirect (status %d), which is not followed", call.provider, resp.StatusCode)
	}
	for name, values := range resp.Header {
		if !dropped[name] && !holdsKey(values, key) {
			w.Header()[name] = values
		}
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") && resp.StatusCode < 300 {
		w.Header().Del("Content-Length") // an event may be held back, a key taken out
		w.WriteHeader(resp.StatusCode)
		if meter == nil {
			meter = newMeter("")
		}
		m.stream(w, resp.Body, &events{meter: meter, drop: call.dropOwn}, key)
		return nil
	}
	return m.whole(w, resp, meter, key)
}

func (m *models) watch(call *modelCall, state, detail string) {
	if told := m.cfg.Models.Watch; told != nil && call.execution.ID != "" {
		told(call.execution.ID, state, detail)
	}
}

// waitState is what the caller does after an answer, or none.
func waitState(resp *http.Response) string {
	const overloaded = 529 // Anthropic's own
	if resp != nil && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == overloaded) {
		return "rate_limited"
	}
	return "working"
}

func waitDetail(call *modelCall, resp *http.Response) string {
	if waitState(resp) == "working" {
		return ""
	}
	if after := resp.Header.Get("Retry-After"); after != "" && len(after) < 40 {
		return fmt.Sprintf("%s asks to wait (Retry-After: %s)", call.provider, after)
	}
	return call.provider + " asks to wait"
}

// Providers do not quote the key that they were sent, but what stands between them
// and us might: a proxy that tells what it was asked. So it is looked for.

func holdsKey(values []string, key string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, key) })
}

func withoutKey(b []byte, key string) []byte {
	return bytes.ReplaceAll(b, []byte(key), []byte("[redacted]"))
}

const maxAnswer = 64 << 20

// whole passes a single answer on.
func (m *models) whole(w http.ResponseWriter, resp *http.Response, meter *meter, key string) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if meter != nil && resp.StatusCode < 300 {
		meter.read(body)
	}
	if err != nil && len(body) == 0 {
		return squad.Wrap(squad.CodeProvider, err, "the answer broke off")
	}
	clean := withoutKey(body, key)
	if err != nil || len(clean) != len(body) {
		w.Header().Del("Content-Length") // it is no longer what it was, or the client is to see the end
	}
	w.WriteHeader(resp.StatusCode)
	w.Write(clean) //nolint:errcheck // the client is gone; what came is counted
	return nil
}

// stream passes events on as they come. When the client goes, the provider's stream
// ends with the request's context, and what was seen so far is counted.
func (m *models) stream(w http.ResponseWriter, body io.Reader, cut *events, key string) {
	out := &flusher{w: w}
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if send := withoutKey(cut.write(buf[:n]), key); len(send) > 0 {
				if _, err := out.Write(send); err != nil {
					break
				}
			}
		}
		if err != nil {
			break
		}
	}
	if rest := withoutKey(cut.rest(), key); len(rest) > 0 {
		out.Write(rest) //nolint:errcheck // the client is gone
	}
}

// record enters a call in the books. One whose usage never came, because it was cut
// off, is estimated from what passed; one that failed cost nothing. One that the
// client left before the answer began goes on at the provider: it is counted as if
// all had come, or leaving early would be a way around every budget. Called again, it
// enters what was added since.
func (m *models) record(ctx context.Context, call *modelCall, meter *meter) error {
	used := meter.tokens
	if meter.text == 0 && !meter.cut {
		return nil
	}
	if !meter.done {
		used.in = max(used.in, int64(len(call.body))/4)
		used.out = max(used.out, meter.text/16)
	}
	if meter.cut && !call.ask.Stream {
		used.out = m.maxOutput(call)
	}
	total := used
	if used = total.since(call.entered); used == (tokens{}) {
		return nil
	}
	u := squad.Usage{
		ExecutionID: call.execution.ID, TaskID: call.task.ID, MemberID: call.member.ID, SquadID: call.squad.ID, SandboxID: call.sandbox.ID,
		Provider: call.provider, Model: meter.model, TokensIn: used.in, TokensOut: used.out, TokensCached: used.cacheRead, CostUSD: call.price.cost(used, total),
	}
	err := m.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		u.ID = ""
		if err := tx.AddUsage(ctx, &u); err != nil {
			return err
		}
		return tx.Append(ctx, call.event(squad.EventUsage, event.Payload(u)))
	})
	if err != nil {
		m.cfg.Log.ErrorContext(ctx, "model call is not in the books", "task_id", call.task.ID, "model", u.Model, "cost_usd", u.CostUSD, "error", err)
		return err
	}
	call.entered = total
	return nil
}
