package inside_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"agentsquad/internal/envdpb/filesystem"
	"agentsquad/internal/envdpb/process"
	"agentsquad/internal/tunnel"
)

func TestInside_UsersSudoAndEnvironment(t *testing.T) {
	t.Parallel()
	s := create(t, nil)
	s.want("", "whoami; pwd; echo $HOME $USER; umask", "user\n/home/user\n/home/user user\n0022")
	s.want("root", "whoami; echo $HOME", "root\n/root")
	s.want("", "sudo whoami", "root")
	s.want("", "sudo -n -u user whoami; sudo -E bash -c 'echo $SUDO_USER'; sudo -i pwd; A=1 sudo B=2 bash -c 'echo $A$B'", "user\nuser\n/root\n2")
	s.want("", "sudo false; echo $?; sudo no-such-program 2>&1; echo $?", "1\nsudo: no-such-program: command not found\n1")
	s.want("", "echo $http_proxy $E2B_SANDBOX", "http://127.0.0.1:3128 true")
}

func TestInside_FilesWithMetadataAndWatch(t *testing.T) {
	t.Parallel()
	s := create(t, nil)
	watch, err := s.files.WatchDir(t.Context(), connect.NewRequest(&filesystem.WatchDirRequest{Path: "/home/user", Recursive: true, IncludeEntry: true}))
	if err != nil || !watch.Receive() || watch.Msg().GetStart() == nil {
		t.Fatalf("watch: %v %v", err, watch.Err())
	}
	defer watch.Close()
	data := make([]byte, 3<<20)
	rand.Read(data)
	req, _ := http.NewRequest("POST", "http://envd/files?path=d/e/f.bin", bytes.NewReader(data))
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("X-Metadata-Author", "Ann")
	res, err := s.http.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%v %v", res, err)
	}
	res.Body.Close()
	stat, err := s.files.Stat(t.Context(), connect.NewRequest(&filesystem.StatRequest{Path: "~/d/e/f.bin"}))
	if err != nil {
		t.Fatal(err)
	}
	e := stat.Msg.GetEntry()
	if e.GetSize() != int64(len(data)) || e.GetOwner() != "user" || e.GetGroup() != "user" || e.GetMode() != 0o644 || e.GetMetadata()["author"] != "Ann" {
		t.Fatalf("entry: %v", e)
	}
	back, err := s.http.Get("http://envd/files?path=d/e/f.bin")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(back.Body)
	back.Body.Close()
	if !bytes.Equal(got, data) {
		t.Fatal("the bytes differ")
	}
	s.sh("", "mkdir -p new/deep; echo x > new/deep/g; mv new/deep/g new/h; chmod 600 new/h; rm new/h")
	want := map[string]bool{"CREATE d": true, "CREATE d/e/f.bin": true, "CREATE new/deep": true, "CREATE new/h": true, "REMOVE new/h": true}
	timer := time.AfterFunc(20*time.Second, func() { watch.Close() })
	defer timer.Stop()
	for len(want) > 0 && watch.Receive() {
		ev := watch.Msg().GetFilesystem()
		delete(want, strings.TrimPrefix(ev.GetType().String(), "EVENT_TYPE_")+" "+ev.GetName())
	}
	if len(want) > 0 {
		t.Fatalf("events that did not come: %v (%v)", want, watch.Err())
	}
}

func TestInside_TerminalSignalsAndDeadline(t *testing.T) {
	t.Parallel()
	s := create(t, nil)
	stream := s.start("", &process.StartRequest{
		Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-i", "-l"}, Envs: map[string]string{"TERM": "xterm-256color"}},
		Pty:     &process.PTY{Size: &process.PTY_Size{Cols: 77, Rows: 33}},
	})
	var r result
	await := func(text string) {
		t.Helper()
		for !strings.Contains(r.pty, text) {
			if !stream.Receive() {
				t.Fatalf("no %q in %q: %v", text, r.pty, stream.Err())
			}
			r.add(stream.Msg().GetEvent())
		}
	}
	write := func(text string) {
		t.Helper()
		in := &process.ProcessInput{Input: &process.ProcessInput_Pty{Pty: []byte(text)}}
		sel := &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: r.pid}}
		if _, err := s.procs.SendInput(t.Context(), connect.NewRequest(&process.SendInputRequest{Process: sel, Input: in})); err != nil {
			t.Fatal(err)
		}
	}
	await("$")
	write("stty size; tty\n")
	await("33 77")
	await("/dev/pts/")
	// What was typed is echoed before it runs: wait for what only a running one prints.
	write("(echo star''ted; exec sleep 100)\n")
	await("started")
	write("\x03")
	write("echo inter''rupted $?\n")
	await("interrupted 130")
	write("exit 3\n")
	for stream.Receive() {
		r.add(stream.Msg().GetEvent())
	}
	if r.end.GetExitCode() != 3 {
		t.Fatalf("%+v %v", r, stream.Err())
	}
	late := s.sh("", "sleep 300 & setsid sleep 300 & (setsid setsid sleep 300 &); echo up; wait", "Connect-Timeout-Ms", "1500")
	if connect.CodeOf(late.err) != connect.CodeDeadlineExceeded {
		t.Fatalf("%+v", late)
	}
	s.want("root", "for i in $(seq 50); do n=$(pgrep -xc sleep); [ $n = 0 ] && break; sleep 0.1; done; echo $n", "0")
}

func TestInside_SurvivesPause(t *testing.T) {
	t.Parallel()
	s := create(t, nil)
	s.want("", "(while :; do date +%s%N > /tmp/alive; sleep 0.05; done) >/dev/null 2>&1 & echo started", "started")
	if err := s.box.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := s.box.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = attach(t, s.box)
	s.want("", "a=$(cat /tmp/alive); for i in $(seq 200); do [ \"$a\" != \"$(cat /tmp/alive)\" ] && echo ticking && break; sleep 0.05; done", "ticking")
}

func TestInside_CodeInterpreterAnswersOnItsPort(t *testing.T) {
	t.Parallel()
	s := create(t, nil)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		session, err := s.box.Tunnel(ctx)
		if err != nil {
			return nil, err
		}
		return session.Open(ctx, tunnel.Header{Kind: tunnel.KindPort, Port: 49999})
	}}}
	t.Cleanup(client.CloseIdleConnections)
	res, err := client.Get("http://code/health")
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("health: %v %v", res, err)
	}
	res.Body.Close()
	for code, want := range map[string]string{
		"import getpass, os; (getpass.getuser(), os.getcwd())": `"text":"('user', '/home/user')"`,
		"print(os.environ['http_proxy'])":                      `http://127.0.0.1:3128`,
	} {
		body, _ := json.Marshal(map[string]string{"code": "import os\n" + code})
		res, err := client.Post("http://code/execute", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		// JSON of Python is spaced.
		if got := strings.ReplaceAll(string(text), `": `, `":`); !strings.Contains(got, want) || !strings.Contains(got, "end_of_execution") {
			t.Errorf("%s: %s", code, text)
		}
	}
}

func TestInside_ManyAtOnce(t *testing.T) {
	t.Parallel()
	s := create(t, nil)
	done := make(chan result)
	for i := range 40 {
		go func() { done <- s.sh("", "echo "+strconv.Itoa(i)+"; head -c 200000 /dev/zero | wc -c") }()
	}
	for range 40 {
		if r := <-done; r.err != nil || !strings.HasSuffix(r.stdout, "200000\n") {
			t.Errorf("%+v", r)
		}
	}
}
