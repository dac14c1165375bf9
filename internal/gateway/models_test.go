package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/gateway"
	"agentsquad/internal/store"
)

// model is a scripted provider: it answers each path with what the test says and
// keeps what it was asked.
type model struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	header http.Header
	answer func(w http.ResponseWriter, r *http.Request)
}

func newModel(t *testing.T, answer func(http.ResponseWriter, *http.Request)) *model {
	t.Helper()
	m := &model{answer: answer}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		m.mu.Lock()
		m.bodies = append(m.bodies, string(body))
		m.header = r.Header.Clone()
		m.mu.Unlock()
		m.answer(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *model) asked() (string, http.Header) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.bodies) == 0 {
		return "", m.header
	}
	return m.bodies[len(m.bodies)-1], m.header
}

func modelKit(t *testing.T, answer func(http.ResponseWriter, *http.Request), change func(*gateway.Config)) (*kit, *model) {
	t.Helper()
	m := newModel(t, answer)
	return newKit(t, func(c *gateway.Config) {
		c.Models.Upstreams = map[string]string{"anthropic": m.URL, "openai": m.URL, "gemini": m.URL}
		c.Models.Prices = map[string]gateway.Price{"test-*": {In: 10, Out: 100, CacheRead: 1, CacheWrite: 20}}
		if change != nil {
			change(c)
		}
	}), m
}

// call posts to the gateway as an agent does, with a key of its own that is none.
func (k *kit) call(t *testing.T, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.url+path, strings.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", "sandbox-placeholder")
	req.Header.Set("Authorization", "Bearer sandbox-placeholder")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	if bytes.Contains(text, []byte(modelKey)) {
		t.Error("the key is in the answer")
	}
	return resp.StatusCode, string(text)
}

func (k *kit) usage(t *testing.T) []squad.Usage {
	t.Helper()
	list, err := k.store.Usages(t.Context(), store.UsageFilter{TaskID: k.task.ID})
	must(t, err)
	return list
}

func sse(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, part := range strings.SplitAfter(text, "\n") {
		io.WriteString(w, part) //nolint:errcheck // a test server
		w.(http.Flusher).Flush()
	}
}

// Answers of the four APIs, whole and as streams, that tell of the same usage.
const (
	anthropic       = `{"id":"msg_1","type":"message","model":"test-big","content":[{"type":"text","text":"usage"}],"usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":7}}`
	anthropicStream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"test-big\",\"usage\":{\"input_tokens\":100,\"cache_creation_input_tokens\":20,\"cache_read_input_tokens\":30,\"output_tokens\":1}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hel\"}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":7}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	chat       = `{"id":"c1","object":"chat.completion","model":"test-big","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":150,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":30}}}`
	chatBegin  = "data: {\"id\":\"c1\",\"model\":\"test-big\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n"
	chatUsage  = "data: {\"id\":\"c1\",\"model\":\"test-big\",\"choices\":[],\"usage\":{\"prompt_tokens\":150,\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":30}}}\n\n"
	chatEnd    = "data: [DONE]\n\n"
	responses  = `{"id":"r1","object":"response","model":"test-big","output":[],"usage":{"input_tokens":150,"input_tokens_details":{"cached_tokens":30},"output_tokens":7}}`
	respStream = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"test-big\",\"usage\":null}}\n\n" +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"test-big\",\"usage\":{\"input_tokens\":150,\"input_tokens_details\":{\"cached_tokens\":30},\"output_tokens\":7}}}\n\n"
	gemini       = `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":140,"toolUsePromptTokenCount":10,"cachedContentTokenCount":30,"candidatesTokenCount":4,"thoughtsTokenCount":3},"modelVersion":"test-big"}`
	geminiStream = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"h\"}]}}],\"usageMetadata\":{\"promptTokenCount\":150,\"candidatesTokenCount\":1},\"modelVersion\":\"test-big\"}\r\n\r\n" +
		"data: " + gemini + "\r\n\r\n"
)

func TestModels_AllAPIsAreMeteredAndUnchanged(t *testing.T) {
	t.Parallel()
	plain := (120*10.0 + 30*1 + 7*100) / 1e6           // 150 in, 30 of them cached
	written := (100*10.0 + 20*20 + 30*1 + 7*100) / 1e6 // 20 of them put into the cache
	for _, c := range []struct {
		name, path, body, answer, want string
		stream                         bool
		cost                           float64
	}{
		{"messages", "/llm/anthropic/v1/messages?beta=true", `{"model":"test-big","max_tokens":10}`, anthropic, anthropic, false, written},
		{"messages stream", "/llm/anthropic/v1/messages", `{"model":"test-big","max_tokens":10,"stream":true}`, anthropicStream, anthropicStream, true, written},
		{"chat", "/llm/openai/v1/chat/completions", `{"model":"test-big"}`, chat, chat, false, plain},
		{"chat stream", "/llm/openai/v1/chat/completions", `{"model":"test-big","stream":true}`, chatBegin + chatUsage + chatEnd, chatBegin + chatEnd, true, plain},
		{"chat stream asked", "/llm/openai/v1/chat/completions", `{"model":"test-big","stream":true,"stream_options":{"include_usage":true}}`, chatBegin + chatUsage + chatEnd, chatBegin + chatUsage + chatEnd, true, plain},
		{"responses", "/llm/openai/v1/responses", `{"model":"test-big"}`, responses, responses, false, plain},
		{"responses stream", "/llm/openai/v1/responses", `{"model":"test-big","stream":true}`, respStream, respStream, true, plain},
		{"gemini", "/llm/gemini/v1beta/models/test-big:generateContent", `{"contents":[]}`, gemini, gemini, false, plain},
		{"gemini stream", "/llm/gemini/v1beta/models/test-big:streamGenerateContent?alt=sse&key=placeholder", `{"contents":[]}`, geminiStream, geminiStream, true, plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k, m := modelKit(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("key") {
					t.Error("the sandbox's key went on in the address")
				}
				if c.stream {
					sse(w, c.answer)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, c.answer) //nolint:errcheck // a test server
			}, nil)
			status, got := k.call(t, c.path, c.body)
			if status != 200 || got != c.want {
				t.Errorf("status %d, answer\n%s\nwant\n%s", status, got, c.want)
			}
			asked, header := m.asked()
			sent := header.Get("X-Api-Key") + header.Get("Authorization") + header.Get("X-Goog-Api-Key")
			if !strings.Contains(sent, modelKey) || strings.Contains(sent, "placeholder") {
				t.Errorf("the provider saw %q", sent)
			}
			if c.name == "chat stream" && !strings.Contains(asked, `"include_usage":true`) {
				t.Errorf("usage was not asked for: %s", asked)
			}
			list := k.usage(t)
			if len(list) != 1 {
				t.Fatalf("%d entries", len(list))
			}
			u := list[0]
			if u.TokensIn != 150 || u.TokensOut != 7 || u.TokensCached != 30 || math.Abs(u.CostUSD-c.cost) > 1e-9 || u.ExecutionID != k.execution.ID || u.Model != "test-big" {
				t.Errorf("entry %+v, want cost %g", u, c.cost)
			}
			if n := len(k.events(t, squad.EventUsage)); n != 1 {
				t.Errorf("%d events", n)
			}
			task, err := k.store.Task(t.Context(), k.task.ID)
			must(t, err)
			if math.Abs(task.CostUSD-c.cost) > 1e-9 {
				t.Errorf("the task cost %g", task.CostUSD)
			}
		})
	}
}

// dollar answers with a message of 10,000 output tokens: one dollar.
func dollar(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"type":"message","model":"test-big","usage":{"input_tokens":0,"output_tokens":10000}}`) //nolint:errcheck // a test server
}

const ask = `{"model":"test-big","max_tokens":10000}`

func TestModels_BudgetsFailClosedBeforeTheCall(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(k *kit){
		"task":   func(k *kit) { k.task.Budget.TaskUSD = 2.5 },
		"member": func(k *kit) { k.member.Config.Budget.DayUSD = 2.5 },
		"squad":  func(k *kit) { k.squad.Config.Budget.TotalUSD = 2.5 },
		"tokens": func(k *kit) { k.task.Budget.Tokens = 25_000 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, m := modelKit(t, dollar, nil)
			set(k)
			ctx := t.Context()
			must(t, k.store.Tx(ctx, func(tx *store.Tx) error {
				task, err := tx.Task(ctx, k.task.ID)
				if err != nil {
					return err
				}
				task.Budget = k.task.Budget
				if err := tx.UpdateTask(ctx, &task); err != nil {
					return err
				}
				if err := tx.UpdateMember(ctx, &k.member); err != nil {
					return err
				}
				return tx.UpdateSquad(ctx, &k.squad)
			}))
			for i := range 5 {
				status, text := k.call(t, "/llm/anthropic/v1/messages", ask)
				if want := i < 3; (status == 200) != want {
					t.Errorf("call %d: status %d %s", i, status, text)
				}
				if i >= 3 && (status != 403 || !strings.Contains(text, "budget")) {
					t.Errorf("refusal %d: %d %s", i, status, text)
				}
			}
			if n := len(m.bodies); n != 3 {
				t.Errorf("the provider was asked %d times", n)
			}
			if n := len(k.events(t, squad.EventBudgetReached)); n != 1 {
				t.Errorf("%d events", n)
			}
		})
	}
}

func TestModels_CallsAtOnceCannotEachTakeTheLastDollar(t *testing.T) {
	t.Parallel()
	inside, proceed := make(chan struct{}, 100), make(chan struct{})
	k, m := modelKit(t, func(w http.ResponseWriter, r *http.Request) {
		inside <- struct{}{}
		<-proceed
		dollar(w, r)
	}, func(c *gateway.Config) { c.Models.Budget = squad.Budget{DayUSD: 3.2} })
	var wg sync.WaitGroup
	refused := make(chan int, 100)
	for range 10 {
		wg.Go(func() {
			if status, _ := k.call(t, "/llm/anthropic/v1/messages", ask); status != 200 {
				refused <- status
			}
		})
	}
	// Seven are refused while three hold all that is left.
	for range 7 {
		if s := <-refused; s != 403 {
			t.Errorf("status %d", s)
		}
	}
	for range 3 {
		<-inside
	}
	close(proceed)
	wg.Wait()
	if n := len(m.bodies); n != 3 {
		t.Errorf("the provider was asked %d times", n)
	}
}

// Whoever has the end of an answer may ask again at once, so what it cost is in the
// books before that end leaves.
func TestModels_AnswerIsInTheBooksBeforeItsEndLeaves(t *testing.T) {
	t.Parallel()
	for path, answer := range map[string]string{
		"/llm/openai/v1/chat/completions":                                  chatBegin + strings.Replace(chatUsage, `"completion_tokens":7`, `"completion_tokens":20000`, 1) + chatEnd,
		"/llm/anthropic/v1/messages":                                       strings.Replace(anthropicStream, `"output_tokens":7`, `"output_tokens":20000`, 1),
		"/llm/gemini/v1beta/models/test-big:streamGenerateContent?alt=sse": strings.Replace(geminiStream, `"candidatesTokenCount":4`, `"candidatesTokenCount":20000`, 1),
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			hung := make(chan struct{})
			defer close(hung)
			k, m := modelKit(t, func(w http.ResponseWriter, r *http.Request) {
				sse(w, answer)
				<-hung // the connection stays: only the words say that it is over
			}, func(c *gateway.Config) { c.Models.Budget = squad.Budget{TaskUSD: 1} })
			body := `{"model":"test-big","stream":true,"messages":[]}`
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.url+path, strings.NewReader(body))
			must(t, err)
			resp, err := http.DefaultClient.Do(req)
			must(t, err)
			defer resp.Body.Close()
			end := answer[len(answer)-10:]
			for seen, buf := "", make([]byte, 4096); !strings.HasSuffix(seen, end); {
				n, err := resp.Body.Read(buf)
				must(t, err)
				seen += string(buf[:n])
			}
			if status, text := k.call(t, path, body); status != http.StatusForbidden || len(m.bodies) != 1 {
				t.Errorf("asked %d times, status %d: %s", len(m.bodies), status, text)
			}
			if u := k.usage(t); len(u) != 1 || u[0].CostUSD < 2 {
				t.Errorf("in the books: %+v", u)
			}
		})
	}
}

// Some providers tell a total with every piece: the last one counts, once.
func TestModels_UsageWithEveryPieceIsCountedOnce(t *testing.T) {
	t.Parallel()
	var answer string
	for i, end := range []string{"null", "null", `"stop"`} {
		answer += fmt.Sprintf("data: {\"model\":\"test-big\",\"choices\":[{\"delta\":{},\"finish_reason\":%s}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":%d}}\n\n", end, i+5)
	}
	k, _ := modelKit(t, func(w http.ResponseWriter, r *http.Request) { sse(w, answer+chatEnd) }, nil)
	if status, text := k.call(t, "/llm/openai/v1/chat/completions", `{"model":"test-big","stream":true}`); status != 200 || text != answer+chatEnd {
		t.Errorf("status %d: %s", status, text)
	}
	if u := k.usage(t); len(u) != 1 || u[0].TokensIn != 10 || u[0].TokensOut != 7 {
		t.Errorf("in the books: %+v", u)
	}
}

func TestModels_WhatIsNotPassedOn(t *testing.T) {
	t.Parallel()
	k, m := modelKit(t, dollar, func(c *gateway.Config) {
		c.Models.MaxBody = 1000
		c.Models.Budget.DayUSD = 1000 // so that what has no price cannot be let through
	})
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/llm/anthropic/v1/files", ask, 404},
		{"/llm/anthropic/v1/messages/../organizations", ask, 404},
		{"/llm/openai/v1/files", ask, 404},
		{"/llm/openai/v1/responses", `{"model":"test-big","background":true}`, 403},
		{"/llm/gemini/v1/messages", ask, 404},
		{"/llm/gemini/v1beta/cachedContents", ask, 404},
		{"/llm/gemini/v1beta/models/unpriced:generateContent", `{}`, 403},
		{"/llm/gemini/v1beta/models/test-big:streamGenerateContent", `{}`, 400}, // one long array
		{"/llm/gemini/v1beta/models/test-big:generateContent", `no`, 400},
		{"/llm/anthropic/v1/messages", `{"model":"unpriced"}`, 403},
		{"/llm/anthropic/v1/messages", `not json`, 400},
		{"/llm/anthropic/v1/messages", `{"model":"test-big","x":"` + strings.Repeat("x", 2000) + `"}`, 413},
		{"/other", "", 404},
	} {
		if status, text := k.call(t, c.path, c.body); status != c.status {
			t.Errorf("%s %.30s: status %d %s", c.path, c.body, status, text)
		}
	}
	if len(m.bodies) != 0 {
		t.Errorf("the provider was asked %d times", len(m.bodies))
	}
}

func TestModels_ProvidersErrorsPassButNotWordsAboutTheKey(t *testing.T) {
	t.Parallel()
	status := 529
	k, _ := modelKit(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"key %s is bad"}}`, map[bool]string{true: modelKey, false: "x"}[status == 401])
	}, nil)
	if got, text := k.call(t, "/llm/anthropic/v1/messages", ask); got != 529 || !strings.Contains(text, "is bad") {
		t.Errorf("overloaded: %d %s", got, text)
	}
	status = 401
	if got, text := k.call(t, "/llm/openai/v1/responses", ask); got != 502 || strings.Contains(text, "is bad") {
		t.Errorf("refused key: %d %s", got, text)
	}
	if n := len(k.usage(t)); n != 0 {
		t.Errorf("%d entries for calls that failed", n)
	}
}

func TestModels_CutOffStreamIsCounted(t *testing.T) {
	t.Parallel()
	k, _ := modelKit(t, func(w http.ResponseWriter, _ *http.Request) {
		sse(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"test-big\",\"usage\":{\"input_tokens\":500,\"output_tokens\":1}}}\n\n"+
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\""+strings.Repeat("word ", 400)+"\"}}\n\n")
		panic(http.ErrAbortHandler)
	}, func(c *gateway.Config) { c.Models.CountUnknown = true })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.url+"/llm/anthropic/v1/messages", strings.NewReader(`{"model":"test-big","stream":true}`))
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	io.Copy(io.Discard, resp.Body) //nolint:errcheck // it is cut off on purpose
	resp.Body.Close()
	list := k.usage(t)
	if len(list) != 1 || list[0].TokensIn != 500 || list[0].TokensOut < 50 {
		t.Errorf("got %+v", list)
	}
}

// Who leaves before the answer begins has still spent: the provider goes on.
func TestModels_ClientThatLeavesEarlyIsCounted(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	k, _ := modelKit(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the server notices a lost client only after the body
		close(arrived)
		<-r.Context().Done()
	}, func(c *gateway.Config) { c.Models.CountUnknown = true })
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.url+"/llm/anthropic/v1/messages", strings.NewReader(`{"model":"test-big","max_tokens":700,"x":"`+strings.Repeat("word ", 400)+`"}`))
	must(t, err)
	go func() {
		<-arrived
		leave()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("it was answered")
	}
	// The books are closed after the client is gone: wait for the entry.
	k.waitFor(t, func() bool { return len(k.usage(t)) == 1 })
	if u := k.usage(t)[0]; u.TokensIn < 500 || u.TokensOut != 700 {
		t.Errorf("got %+v", u)
	}
}

func TestModels_PublicTakesTheTokenAsKey(t *testing.T) {
	t.Parallel()
	k, m := modelKit(t, dollar, nil)
	srv := httptest.NewServer(k.g.Public())
	defer srv.Close()
	for secret, want := range map[string]int{"sk-wrong": 401, k.token(t, k.sandbox.ID): 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/llm/anthropic/v1/messages", strings.NewReader(ask))
		must(t, err)
		req.Header.Set("X-Api-Key", secret)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("status %d, want %d", resp.StatusCode, want)
		}
	}
	if _, h := m.asked(); h.Get("X-Api-Key") != modelKey {
		t.Errorf("the provider saw %q", h.Get("X-Api-Key"))
	}
}

func TestModels_UnknownPriceWithoutBudgetCountsTokens(t *testing.T) {
	t.Parallel()
	for refuse, want := range map[bool]int{false: 200, true: 403} {
		k, _ := modelKit(t, dollar, func(c *gateway.Config) { c.Models.RefuseUnknown = refuse })
		if status, text := k.call(t, "/llm/anthropic/v1/messages", `{"model":"unpriced"}`); status != want {
			t.Errorf("refuse %v: status %d %s", refuse, status, text)
		}
		if list := k.usage(t); !refuse && (len(list) != 1 || list[0].TokensOut != 10000 || list[0].CostUSD != 0) {
			t.Errorf("got %+v", list)
		}
	}
}

func TestModels_MembersOwnAddressMustBeAllowed(t *testing.T) {
	t.Parallel()
	own := newModel(t, dollar)
	for allowed, want := range map[bool]int{false: 403, true: 200} {
		k, m := modelKit(t, dollar, func(c *gateway.Config) {
			if allowed {
				c.Models.BaseURLs = []string{own.URL + "/v1"}
			}
		})
		ctx := t.Context()
		k.member.LLMProvider, k.member.Config.BaseURL = "openai", own.URL+"/v1"
		must(t, k.store.Tx(ctx, func(tx *store.Tx) error { return tx.UpdateMember(ctx, &k.member) }))
		if status, text := k.call(t, "/llm/openai/v1/responses", ask); status != want {
			t.Errorf("allowed %v: status %d %s", allowed, status, text)
		}
		if len(m.bodies) != 0 {
			t.Error("the provider's own address was asked")
		}
	}
	if len(own.bodies) != 1 {
		t.Errorf("the member's address was asked %d times", len(own.bodies))
	}
}

func TestTransport_StreamsAndIsMetered(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	k, _ := modelKit(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for part := range next {
			io.WriteString(w, part) //nolint:errcheck // a test server
			w.(http.Flusher).Flush()
		}
	}, nil)
	client := http.Client{Transport: k.g.Transport(k.sandbox.ID)}
	first := "data: {\"type\":\"response.created\"}\n\n"
	last := "data: {\"type\":\"response.completed\",\"response\":{\"model\":\"test-big\",\"usage\":{\"input_tokens\":5,\"output_tokens\":6}}}\n\n"
	go func() { next <- first }()
	resp, err := client.Post("http://squad.internal/llm/openai/v1/responses", "application/json", strings.NewReader(`{"model":"test-big","stream":true}`))
	must(t, err)
	defer resp.Body.Close()
	got := make([]byte, len(first))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != first {
		t.Fatalf("before the end came %q, %v", got, err)
	}
	next <- last
	close(next)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != last {
		t.Errorf("got %q, %v", rest, err)
	}
	if list := k.usage(t); len(list) != 1 || list[0].TokensOut != 6 {
		t.Errorf("got %+v", list)
	}
	resp, err = client.Get("http://squad.internal/nothing")
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != 404 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// What an execution waits for is seen here for every kind of agent.
func TestModels_WaitingIsTold(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string
	limited := true
	k, _ := modelKit(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if limited {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"model":"test-1","usage":{"input_tokens":1,"output_tokens":1}}`) //nolint:errcheck // a test server
	}, func(c *gateway.Config) {
		c.Models.Watch = func(_, state, detail string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, state+": "+detail)
		}
	})
	ask := func() { k.call(t, "/llm/anthropic/v1/messages", `{"model":"test-1","max_tokens":5}`) }
	ask()
	mu.Lock()
	limited = false
	mu.Unlock()
	ask()
	mu.Lock()
	defer mu.Unlock()
	want := []string{"model: test-1", "rate_limited: anthropic asks to wait (Retry-After: 7)", "model: test-1", "working: "}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
