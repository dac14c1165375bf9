package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	squad "agentsquad"
)

// ModelConfig says how models are reached and paid.
type ModelConfig struct {
	// Upstreams are the addresses by provider; default the providers' own.
	Upstreams map[string]string
	// BaseURLs lists further addresses that a member's base_url may name. The real
	// key goes there, so the list is the installation's, not the squad's.
	BaseURLs []string
	// Prices add to and override [DefaultPrices].
	Prices map[string]Price
	// A model without a price is refused where a budget in dollars holds, since it
	// could not be kept; elsewhere its tokens are counted. CountUnknown lets it
	// through always, RefuseUnknown never.
	CountUnknown, RefuseUnknown bool
	// Budget bounds each task (TaskUSD, Tokens) and the whole installation.
	Budget squad.Budget
	// MaxBody bounds a request; default 32 MiB.
	MaxBody int64
	// MaxOutput is the output that is reserved for a call that names no limit of
	// its own; default 8192 tokens.
	MaxOutput int64
	Transport http.RoundTripper
	// Watch, where set, is told what an execution waits for: "model" while a call has
	// no answer yet, "rate_limited" once the provider asks to wait, "working" else.
	Watch func(executionID, state, detail string)
}

// models is the pass-through to model providers.
type models struct {
	cfg       Config
	transport http.RoundTripper
	ledger    *ledger
}

func newModels(cfg Config) *models {
	m := &cfg.Models
	upstreams := map[string]string{"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com", "gemini": "https://generativelanguage.googleapis.com"}
	for name, address := range m.Upstreams {
		if address != "" {
			upstreams[name] = address
		}
	}
	m.Upstreams = upstreams
	if m.MaxBody == 0 {
		m.MaxBody = 32 << 20
	}
	if m.MaxOutput == 0 {
		m.MaxOutput = 8192
	}
	transport := m.Transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true // the meter reads the answer as it passes
		t.ResponseHeaderTimeout = 10 * time.Minute
		t.MaxIdleConnsPerHost = 32
		transport = t
	}
	return &models{cfg: cfg, transport: transport, ledger: &ledger{held: map[string]*hold{}, told: map[string]time.Time{}, store: cfg.Store}}
}

// route is a path that is passed on; paid ones are metered.
type route struct {
	provider, method string
	path             *regexp.Regexp
	paid             bool
}

var routes = []route{
	{"anthropic", "POST", regexp.MustCompile(`^v1/messages$`), true},
	{"anthropic", "POST", regexp.MustCompile(`^v1/messages/count_tokens$`), false},
	{"anthropic", "GET", regexp.MustCompile(`^v1/models(/[A-Za-z0-9._:-]+)?$`), false},
	{"openai", "POST", regexp.MustCompile(`^v1/(chat/completions|responses|completions|embeddings)$`), true},
	{"openai", "GET", regexp.MustCompile(`^v1/models(/[A-Za-z0-9._:-]+)?$`), false},
	{"gemini", "POST", regexp.MustCompile(`^v1beta/models/[A-Za-z0-9._-]+:(generateContent|streamGenerateContent)$`), true},
	{"gemini", "POST", regexp.MustCompile(`^v1beta/models/[A-Za-z0-9._-]+:countTokens$`), false},
	{"gemini", "GET", regexp.MustCompile(`^v1beta/models(/[A-Za-z0-9._-]+)?$`), false},
}

// modelCall is one request on its way.
type modelCall struct {
	*caller
	provider string
	path     string
	upstream *url.URL
	body     []byte
	ask      modelRequest
	price    Price
	entered  tokens // what of it is in the books
	dropOwn  bool   // hold the usage event back that only we asked for
}

// modelRequest is what the gateway needs to know of a request.
type modelRequest struct {
	Model               string `json:"model"`
	Stream              bool   `json:"stream"`
	MaxTokens           int64  `json:"max_tokens"`
	MaxCompletionTokens int64  `json:"max_completion_tokens"`
	MaxOutputTokens     int64  `json:"max_output_tokens"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Background       bool `json:"background"`
	GenerationConfig struct {
		MaxOutputTokens int64 `json:"maxOutputTokens"`
	} `json:"generationConfig"` // Gemini's
}

func (g *Gateway) serveModel(w http.ResponseWriter, r *http.Request, c *caller, rest string) error {
	m := g.models
	provider, path, _ := strings.Cut(rest, "/")
	at := slices.IndexFunc(routes, func(x route) bool {
		return x.provider == provider && x.method == r.Method && x.path.MatchString(path)
	})
	if at < 0 {
		return squad.Errorf(squad.CodeNotFound, "%s /llm/%s is not passed on", r.Method, rest)
	}
	if err := c.working(); err != nil {
		return err
	}
	call := &modelCall{caller: c, provider: provider, path: path}
	var err error
	if call.upstream, err = m.upstream(c, provider); err != nil {
		return err
	}
	if call.body, err = m.readBody(r); err != nil {
		return err
	}
	key, err := g.cfg.Credentials.ModelKey(r.Context(), c.squad.ID, provider)
	if err != nil {
		return err
	}
	if key == "" {
		return squad.Errorf(squad.CodeUnavailable, "no key for %s is configured on this server", provider)
	}
	if !routes[at].paid {
		return m.pass(w, r, call, key, nil)
	}
	return m.paid(w, r, call, key)
}

// upstream is where the call goes. A member's own address must be on the list of
// the installation.
func (m *models) upstream(c *caller, provider string) (*url.URL, error) {
	address := m.cfg.Models.Upstreams[provider]
	if own := c.member.Config.BaseURL; own != "" && c.member.LLMProvider == provider {
		if !slices.Contains(m.cfg.Models.BaseURLs, own) {
			return nil, squad.Errorf(squad.CodeForbidden, "the member's base_url is not among the addresses that this server allows")
		}
		address = own
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, squad.Wrap(squad.CodeInternal, err, "the address of %s is not usable", provider)
	}
	return u, nil
}

func (m *models) readBody(r *http.Request) ([]byte, error) {
	in, err := requestBody(r, m.cfg.Models.MaxBody)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(in)
	if squad.CodeOf(err) == squad.CodeTooLarge {
		return nil, squad.Errorf(squad.CodeTooLarge, "the request is larger than %d MiB", m.cfg.Models.MaxBody>>20)
	}
	if err != nil {
		return nil, squad.Wrap(squad.CodeInvalid, err, "the request cannot be read")
	}
	return body, nil
}

// paid checks price and budget, passes the call on and enters it in the books.
func (m *models) paid(w http.ResponseWriter, r *http.Request, call *modelCall, key string) error {
	err := json.Unmarshal(call.body, &call.ask)
	if call.provider == "gemini" {
		if err := call.readPath(r.URL.Query()); err != nil {
			return err
		}
	}
	if err != nil || call.ask.Model == "" {
		return squad.Errorf(squad.CodeInvalid, "the request must be JSON and name a model")
	}
	if call.ask.Background {
		return squad.Errorf(squad.CodeForbidden, "answers in the background cannot be counted and are not passed on")
	}
	now := m.cfg.Now()
	limits := m.limits(call.caller, now)
	var known bool
	if call.price, known = priceOf(call.ask.Model, m.cfg.Models.Prices, DefaultPrices); !known && m.refuseUnknown(limits) {
		return squad.Errorf(squad.CodeForbidden, "model %q has no price in the configuration, so its cost cannot be bounded", call.ask.Model)
	}
	release, err := m.ledger.reserve(r.Context(), limits, m.estimate(call))
	if err != nil {
		var over *overBudget
		if errors.As(err, &over) {
			m.tell(r.Context(), call.caller, over, now)
		}
		return err
	}
	call.includeUsage()
	meter := newMeter(call.ask.Model)
	settle := func() {
		// What cannot be entered stays held: no budget is lost to a full disk. Released
		// after the books, a call counts twice for a moment rather than not at all.
		if m.record(context.WithoutCancel(r.Context()), call, meter) == nil {
			release()
		}
	}
	meter.atEnd = settle // who has the end of an answer asks again at once
	defer settle()
	return m.pass(w, r, call, key, meter)
}

func (m *models) refuseUnknown(limits []limit) bool {
	if m.cfg.Models.CountUnknown {
		return false
	}
	return m.cfg.Models.RefuseUnknown || slices.ContainsFunc(limits, func(l limit) bool { return l.usd > 0 })
}

// estimate is generous: three bytes a token, and all the output that may come.
func (m *models) estimate(call *modelCall) estimate {
	least := tokens{in: int64(len(call.body)) / 8}
	most := tokens{in: int64(len(call.body)) / 3, out: m.maxOutput(call)}
	return estimate{inUSD: call.price.cost(least, least), allUSD: call.price.cost(most, most), tokens: most.in + most.out}
}

// maxOutput is the longest answer that the call allows.
func (m *models) maxOutput(call *modelCall) int64 {
	if n := max(call.ask.MaxTokens, call.ask.MaxCompletionTokens, call.ask.MaxOutputTokens, call.ask.GenerationConfig.MaxOutputTokens); n > 0 {
		return n
	}
	return m.cfg.Models.MaxOutput
}

// readPath takes what Gemini says in the path: the model, and whether it streams. A
// stream that is one long array of JSON could not be counted on its way.
func (call *modelCall) readPath(query url.Values) error {
	model, verb, _ := strings.Cut(strings.TrimPrefix(call.path, "v1beta/models/"), ":")
	call.ask.Model, call.ask.Stream = model, verb == "streamGenerateContent"
	if call.ask.Stream && query.Get("alt") != "sse" {
		return squad.Errorf(squad.CodeInvalid, "streams are passed on with alt=sse only")
	}
	return nil
}

// includeUsage asks OpenAI's chat streams for their usage, which they leave out
// otherwise.
func (call *modelCall) includeUsage() {
	if call.path != "v1/chat/completions" && call.path != "v1/completions" || !call.ask.Stream ||
		(call.ask.StreamOptions != nil && call.ask.StreamOptions.IncludeUsage) {
		return
	}
	var whole map[string]json.RawMessage
	if json.Unmarshal(call.body, &whole) != nil {
		return
	}
	options := map[string]json.RawMessage{}
	if raw := whole["stream_options"]; len(raw) > 0 && !bytes.Equal(raw, []byte("null")) && json.Unmarshal(raw, &options) != nil {
		return
	}
	options["include_usage"] = json.RawMessage("true")
	raw, err := json.Marshal(options)
	if err != nil {
		return
	}
	whole["stream_options"] = raw
	if body, err := json.Marshal(whole); err == nil {
		call.body, call.dropOwn = body, true
	}
}
