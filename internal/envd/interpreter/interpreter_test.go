package interpreter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"agentsquad/internal/envd/interpreter"
)

// host starts drivers as plain processes of this machine.
type host struct{}

func (host) Find(program string) (string, bool) {
	path, err := exec.LookPath(program)
	return path, err == nil
}

func (host) Start(c interpreter.Command) (interpreter.Child, error) {
	env := os.Environ()
	for k, v := range c.Env {
		env = append(env, k+"="+v)
	}
	attr := &syscall.ProcAttr{Dir: c.Dir, Env: env, Files: c.Files, Sys: &syscall.SysProcAttr{Setsid: true}}
	pid, err := syscall.ForkExec(c.Path, append([]string{c.Path}, c.Args...), attr)
	if err != nil {
		return interpreter.Child{}, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		syscall.Wait4(pid, nil, 0, nil)
	}()
	return interpreter.Child{
		Done:      done,
		Kill:      func() { syscall.Kill(-pid, syscall.SIGKILL) },
		Interrupt: func() { syscall.Kill(pid, syscall.SIGINT) },
	}, nil
}

type server struct {
	t   *testing.T
	url string
	dir string
}

func serve(t *testing.T, programs ...string) *server {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s: install it", p)
		}
	}
	dir := t.TempDir()
	s := interpreter.New(interpreter.Config{System: host{}, Workdir: func() string { return dir }})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.CloseClientConnections(); h.Close() })
	return &server{t, h.URL, dir}
}

type event struct {
	Type      string
	Text      string
	HTML      string
	Name      string
	Value     string
	Traceback string
	Main      bool `json:"is_main_result"`
	Count     int  `json:"execution_count"`
}

func (s *server) post(ctx context.Context, path string, body any) *http.Response {
	s.t.Helper()
	data, _ := json.Marshal(body)
	req, _ := http.NewRequestWithContext(ctx, "POST", s.url+path, strings.NewReader(string(data)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	return res
}

// outcome is a finished snippet.
type outcome struct {
	stdout, stderr string
	results        []event
	failed         *event
	count          int
	last           string
}

func (s *server) run(body map[string]any) outcome {
	s.t.Helper()
	res := s.post(s.t.Context(), "/execute", body)
	if res.StatusCode != 200 {
		text, _ := io.ReadAll(res.Body)
		s.t.Fatalf("%d %s", res.StatusCode, text)
	}
	return collect(s.t, res.Body)
}

func collect(t *testing.T, from io.Reader) outcome {
	t.Helper()
	var o outcome
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("not JSON: %q", lines.Text())
		}
		o.last = e.Type
		switch e.Type {
		case "number_of_executions":
			o.count = e.Count
		case "stdout":
			o.stdout += e.Text
		case "stderr":
			o.stderr += e.Text
		case "result":
			o.results = append(o.results, e)
		case "error":
			o.failed = &e
		}
	}
	return o
}

func code(text string) map[string]any { return map[string]any{"code": text} }

func TestPython_StateResultsAndOutput(t *testing.T) {
	t.Parallel()
	s := serve(t, "python3")
	o := s.run(code("import sys, os\nx = 41\nprint('öut')\nprint('err', file=sys.stderr)\nos.write(1, b'raw\\n')\nx + 1"))
	if o.stdout != "öut\nraw\n" || o.stderr != "err\n" || len(o.results) != 1 || o.results[0].Text != "42" || !o.results[0].Main || o.last != "end_of_execution" || o.count != 1 {
		t.Fatalf("%+v", o)
	}
	if o = s.run(code("x")); o.results[0].Text != "41" || o.count != 2 {
		t.Fatalf("state is lost: %+v", o)
	}
	for text, want := range map[string]string{"'quoted'": "quoted", "await __import__('asyncio').sleep(0, 7)": "7", "_": "7"} {
		if text == "_" {
			continue
		}
		if o = s.run(code(text)); len(o.results) != 1 || o.results[0].Text != want {
			t.Fatalf("%s: %+v", text, o)
		}
	}
	o = s.run(code("class H:\n  def _repr_html_(self): return '<b>'\ndisplay(H())\nNone"))
	if len(o.results) != 1 || o.results[0].HTML != "<b>" || o.results[0].Main {
		t.Fatalf("%+v", o)
	}
	if o = s.run(code("!echo from shell\ny = 1")); o.stdout != "from shell\n" || o.failed != nil {
		t.Fatalf("%+v", o)
	}
	if o = s.run(map[string]any{"code": "import os; print(os.environ['V'], os.getcwd())", "env_vars": map[string]string{"V": "1"}}); o.stdout != "1 "+s.dir+"\n" {
		t.Fatalf("%+v", o)
	}
	if o = s.run(code("print(os.environ.get('V'))")); o.stdout != "None\n" {
		t.Fatalf("a variable of one snippet leaked: %+v", o)
	}
	if o = s.run(code("input()")); o.failed == nil || o.failed.Name != "EOFError" {
		t.Fatalf("%+v", o)
	}
}

func TestPython_ErrorsAndLargeOutput(t *testing.T) {
	t.Parallel()
	s := serve(t, "python3")
	o := s.run(code("print('before')\ndef f():\n  return 1 / 0\nf()"))
	if o.stdout != "before\n" || o.failed == nil || o.failed.Name != "ZeroDivisionError" || o.failed.Value != "division by zero" || !strings.Contains(o.failed.Traceback, "return 1 / 0") || strings.Contains(o.failed.Traceback, "_exec") || o.last != "end_of_execution" {
		t.Fatalf("%+v", o)
	}
	if o = s.run(code("1 +")); o.failed == nil || o.failed.Name != "SyntaxError" {
		t.Fatalf("%+v", o)
	}
	if o = s.run(code("raise SystemExit(3)")); o.failed == nil || o.failed.Name != "SystemExit" {
		t.Fatalf("%+v", o)
	}
	if o = s.run(code("for i in range(100000): print('ä' * 20)")); len(o.stdout) != 100000*41 {
		t.Fatalf("%d bytes", len(o.stdout))
	}
	if o = s.run(code("import os; os._exit(1)")); o.last != "unexpected_end_of_execution" {
		t.Fatalf("%+v", o)
	}
	if o = s.run(code("'again'")); len(o.results) != 1 {
		t.Fatalf("a dead interpreter was not started anew: %+v", o)
	}
}

func TestPython_CallerThatLeavesStopsItsSnippetAndKeepsTheState(t *testing.T) {
	t.Parallel()
	s := serve(t, "python3")
	s.run(code("x = 5"))
	for _, snippet := range []string{"print('begun')\nwhile True: pass", "import time\nprint('begun')\ntime.sleep(600)"} {
		ctx, cancel := context.WithCancel(t.Context())
		res := s.post(ctx, "/execute", code(snippet))
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() && !strings.Contains(lines.Text(), "begun") {
		}
		cancel()
		if o := s.run(code("x")); len(o.results) != 1 || o.results[0].Text != "5" {
			t.Fatalf("%s: %+v", snippet, o)
		}
	}
}

func TestBash_KeepsItsShell(t *testing.T) {
	t.Parallel()
	s := serve(t, "bash", "base64")
	bash := func(text string) outcome { return s.run(map[string]any{"code": text, "language": "bash"}) }
	if o := bash("echo ä€😀"); o.stdout != "ä€😀\n" || o.failed != nil {
		t.Fatalf("%+v", o)
	}
	if o := bash("cd /tmp\nX='a b'\necho one; echo two >&2; false"); o.stdout != "one\n" || o.stderr != "two\n" || o.last != "end_of_execution" {
		t.Fatalf("%+v", o)
	}
	if o := bash("pwd; echo \"$X\"; cat"); o.stdout != "/tmp\na b\n" {
		t.Fatalf("%+v", o)
	}
	if o := bash("echo 42; exit 3"); o.last != "end_of_execution" || o.stdout != "42\n" || o.failed == nil || o.failed.Value != "exit status 3" {
		t.Fatalf("%+v", o)
	}
	if o := bash("echo \"[$X]\"; kill -9 $$"); o.last != "unexpected_end_of_execution" || o.stdout != "[]\n" {
		t.Fatalf("%+v", o)
	}
	if o := s.run(map[string]any{"code": "echo $V", "language": "bash", "env_vars": map[string]string{"V": "it's"}}); o.stdout != "it's\n" {
		t.Fatalf("%+v", o)
	}
}

func TestJavaScript_StateResultsAndErrors(t *testing.T) {
	t.Parallel()
	s := serve(t, "node")
	js := func(text string) outcome { return s.run(map[string]any{"code": text, "language": "js"}) }
	if o := js("const a = 40; console.log('hi'); console.error('no'); a + 2"); o.stdout != "hi\n" || o.stderr != "no\n" || len(o.results) != 1 || o.results[0].Text != "42" {
		t.Fatalf("%+v", o)
	}
	if o := js("a"); len(o.results) != 1 || o.results[0].Text != "40" {
		t.Fatalf("%+v", o)
	}
	if o := js("await Promise.resolve('late')"); len(o.results) != 1 || o.results[0].Text != "late" {
		t.Fatalf("%+v", o)
	}
	if o := js("require('node:path').join('x', 'y')"); len(o.results) != 1 || o.results[0].Text != "x/y" {
		t.Fatalf("%+v", o)
	}
	if o := js("null.x"); o.failed == nil || o.failed.Name != "TypeError" || o.last != "end_of_execution" {
		t.Fatalf("%+v", o)
	}
}

func TestContexts_AreApartAndCanBeRemoved(t *testing.T) {
	t.Parallel()
	s := serve(t, "python3")
	make := func(body string) map[string]string {
		res := s.post(t.Context(), "/contexts", json.RawMessage(body))
		var c map[string]string
		if err := json.NewDecoder(res.Body).Decode(&c); err != nil || res.StatusCode != 200 {
			t.Fatalf("%d %v", res.StatusCode, err)
		}
		return c
	}
	a, b := make(`{}`), make(`{"language":"python","cwd":"/tmp"}`)
	if a["language"] != "python" || a["cwd"] != s.dir || b["cwd"] != "/tmp" {
		t.Fatalf("%v %v", a, b)
	}
	s.run(map[string]any{"code": "x = 1", "context_id": a["id"]})
	if o := s.run(map[string]any{"code": "x", "context_id": b["id"]}); o.failed == nil || o.failed.Name != "NameError" {
		t.Fatalf("%+v", o)
	}
	s.post(t.Context(), "/contexts/"+a["id"]+"/restart", nil)
	if o := s.run(map[string]any{"code": "x", "context_id": a["id"]}); o.failed == nil {
		t.Fatalf("restart kept the state: %+v", o)
	}
	req, _ := http.NewRequest("DELETE", s.url+"/contexts/"+a["id"], nil)
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 204 {
		t.Fatalf("%v %v", res, err)
	}
	res.Body.Close()
	for _, c := range []struct {
		body   map[string]any
		status int
		text   string
	}{
		{map[string]any{"code": "1", "context_id": a["id"]}, 404, "not found"},
		{map[string]any{"code": "1", "context_id": b["id"], "language": "python"}, 400, "Only one of"},
		{map[string]any{"code": "1", "language": "cobol"}, 400, "not available"},
	} {
		res := s.post(t.Context(), "/execute", c.body)
		if text, _ := io.ReadAll(res.Body); res.StatusCode != c.status || !strings.Contains(string(text), c.text) {
			t.Fatalf("%v: %d %s", c.body, res.StatusCode, text)
		}
	}
	list, err := http.Get(s.url + "/contexts")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Body.Close()
	if text, _ := io.ReadAll(list.Body); !strings.Contains(string(text), b["id"]) || strings.Contains(string(text), a["id"]) {
		t.Fatalf("list: %s", text)
	}
}
