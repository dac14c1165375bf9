package envd_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"agentsquad/internal/envd"
	"agentsquad/internal/envdpb/process"
)

func TestStart_OutputThenEnd(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		r := b.run(bounded(t), shell("echo out; echo err >&2; exit 3"))
		if r.err != nil || r.pid == 0 || r.stdout != "out\n" || r.stderr != "err\n" {
			t.Fatalf("%+v", r)
		}
		if r.end.GetExitCode() != 3 || !r.end.GetExited() || r.end.GetStatus() != "exit status 3" || r.end.GetError() != "exit status 3" {
			t.Fatalf("end: %v", r.end)
		}
		r = b.run(bounded(t), shell("true"))
		if r.end.GetExitCode() != 0 || !r.end.GetExited() || r.end.Error != nil {
			t.Fatalf("end: %v", r.end)
		}
	})
}

func TestStart_SignalledProcessHasNoExitCode(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	r := b.run(bounded(t), shell("kill -9 $$"))
	if r.end.GetExitCode() != -1 || r.end.GetExited() || r.end.GetStatus() != "signal: killed" || r.end.GetError() != "signal: killed" {
		t.Fatalf("end: %v", r.end)
	}
}

func TestStart_LargeOutputArrivesWholeAndInOrder(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		r := b.run(bounded(t), shell("seq 1 200000"))
		if r.err != nil || strings.Count(r.stdout, "\n") != 200000 || !strings.HasSuffix(r.stdout, "\n200000\n") || !strings.HasPrefix(r.stdout, "1\n2\n") {
			t.Fatalf("err %v, %d bytes", r.err, len(r.stdout))
		}
	})
}

func TestStart_SlowReaderLosesNothing(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	done := filepath.Join(t.TempDir(), "done")
	// 64 MB is more than all buffers on the way: the writer must be waiting for us.
	_, stream := b.begin(bounded(t), shell("head -c 67108864 /dev/zero; touch "+done))
	defer stream.Close()
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	if _, err := os.Stat(done); err == nil {
		t.Fatal("the process ended before its output was read")
	}
	total := len(stream.Msg().GetEvent().GetData().GetStdout())
	for stream.Receive() {
		total += len(stream.Msg().GetEvent().GetData().GetStdout())
	}
	if stream.Err() != nil || total != 64<<20 {
		t.Fatalf("%d bytes, %v", total, stream.Err())
	}
}

func TestStart_EnvironmentIsLayered(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{Env: map[string]string{"LOW": "config", "MID": "config"}})
	b.do("POST", "/init", strings.NewReader(`{"envVars":{"MID":"init","TOP":"init"}}`))
	req := shell(`echo $LOW $MID $TOP $USER $LOGNAME $HOME $E2B_SANDBOX; test -n "$PATH"`)
	req.Process.Envs = map[string]string{"TOP": "request"}
	r := b.run(bounded(t), req)
	home, _ := os.UserHomeDir()
	if want := "config init request " + me(t) + " " + me(t) + " " + home + " true\n"; r.stdout != want || r.end.GetExitCode() != 0 {
		t.Fatalf("got %q, want %q", r.stdout, want)
	}
	req.Process.Envs = map[string]string{"A=B": "x"}
	wantCode(t, b.run(bounded(t), req).err, connect.CodeInvalidArgument, "cannot be passed")
}

func TestStart_Cwd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, envd.Config{DefaultWorkdir: dir})
	if r := b.run(bounded(t), shell("pwd")); r.stdout != dir+"\n" {
		t.Fatalf("default: %q", r.stdout)
	}
	for cwd, text := range map[string]string{"/no/such": "cwd '/no/such' does not exist", "/etc/passwd": "not a directory", "~other": "another user"} {
		req := shell("pwd")
		req.Process.Cwd = &cwd
		wantCode(t, b.run(bounded(t), req).err, connect.CodeInvalidArgument, text)
	}
}

func TestStart_BadCommandIsInvalidArgument(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		for cmd, text := range map[string]string{"": "no command", "/no/such/program": "no such file", "no-such-program": "not found in $PATH", "/etc/passwd": "permission denied"} {
			r := b.run(bounded(t), &process.StartRequest{Process: &process.ProcessConfig{Cmd: cmd}})
			wantCode(t, r.err, connect.CodeInvalidArgument, text)
		}
	})
}

func TestStart_ScriptWithoutInterpreterLineRuns(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	script := filepath.Join(t.TempDir(), "s")
	os.WriteFile(script, []byte("echo \"plain $1\"\n"), 0o755)
	r := b.run(bounded(t), &process.StartRequest{Process: &process.ProcessConfig{Cmd: script, Args: []string{"x"}}})
	if r.err != nil || r.stdout != "plain x\n" {
		t.Fatalf("%+v", r)
	}
}

func TestStart_RunsAsTheNamedUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can run commands as another user: run the tests as root")
	}
	b := start(t, envd.Config{DefaultWorkdir: "/"})
	req := connect.NewRequest(shell("id -un; id -u; echo $HOME"))
	req.Header().Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("nobody:")))
	stream, err := b.procs.Start(bounded(t), req)
	if err != nil {
		t.Fatal(err)
	}
	var r result
	for stream.Receive() {
		r.add(stream.Msg().GetEvent())
	}
	if !strings.HasPrefix(r.stdout, "nobody\n65534\n") {
		t.Fatalf("%+v %v", r, stream.Err())
	}
}

func TestStdin_PipeAndNull(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		ctx := bounded(t)
		if r := b.run(ctx, shell("cat; echo end")); r.stdout != "end\n" {
			t.Fatalf("stdin false must be /dev/null: %+v", r)
		}
		req := shell("cat")
		req.Stdin = nil
		pid, stream := b.begin(ctx, req)
		defer stream.Close()
		in := &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: []byte("hello")}}
		if _, err := b.procs.SendInput(ctx, connect.NewRequest(&process.SendInputRequest{Process: byPID(pid), Input: in})); err != nil {
			t.Fatal(err)
		}
		if _, err := b.procs.CloseStdin(ctx, connect.NewRequest(&process.CloseStdinRequest{Process: byPID(pid)})); err != nil {
			t.Fatal(err)
		}
		var r result
		for stream.Receive() {
			r.add(stream.Msg().GetEvent())
		}
		if r.stdout != "hello" || r.end.GetExitCode() != 0 {
			t.Fatalf("%+v", r)
		}
	})
}

func TestSendInput_ClosedStdinIsInternal(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	ctx := bounded(t)
	pid, stream := b.begin(ctx, shell("sleep 60"))
	defer stream.Close()
	in := &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: []byte("x")}}
	_, err := b.procs.SendInput(ctx, connect.NewRequest(&process.SendInputRequest{Process: byPID(pid), Input: in}))
	wantCode(t, err, connect.CodeInternal, "stdin")
	_, err = b.procs.CloseStdin(ctx, connect.NewRequest(&process.CloseStdinRequest{Process: byPID(pid)}))
	wantCode(t, err, connect.CodeInternal, "stdin")
	b.kill(pid)
}

func TestStreamInput_FeedsInOrder(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		ctx := bounded(t)
		tag := "feed"
		req := shell("wc -c")
		req.Stdin, req.Tag = nil, &tag
		_, stream := b.begin(ctx, req)
		defer stream.Close()
		sel := &process.ProcessSelector{Selector: &process.ProcessSelector_Tag{Tag: tag}}
		in := b.procs.StreamInput(ctx)
		in.Send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Start{Start: &process.StreamInputRequest_StartEvent{Process: sel}}})
		for range 10 {
			data := &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: make([]byte, 100_000)}}
			in.Send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Data{Data: &process.StreamInputRequest_DataEvent{Input: data}}})
		}
		if _, err := in.CloseAndReceive(); err != nil {
			t.Fatal(err)
		}
		b.procs.CloseStdin(ctx, connect.NewRequest(&process.CloseStdinRequest{Process: sel}))
		var r result
		for stream.Receive() {
			r.add(stream.Msg().GetEvent())
		}
		if strings.TrimSpace(r.stdout) != "1000000" {
			t.Fatalf("%+v", r)
		}
	})
}

func (b *box) kill(pid uint32) {
	b.t.Helper()
	_, err := b.procs.SendSignal(bounded(b.t), connect.NewRequest(&process.SendSignalRequest{Process: byPID(pid), Signal: process.Signal_SIGNAL_SIGKILL}))
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestUnknownProcess_IsNotFound(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		ctx := bounded(t)
		const text = "process with pid 999999999 not found"
		_, err := b.procs.SendSignal(ctx, connect.NewRequest(&process.SendSignalRequest{Process: byPID(999999999), Signal: process.Signal_SIGNAL_SIGKILL}))
		wantCode(t, err, connect.CodeNotFound, text)
		_, err = b.procs.CloseStdin(ctx, connect.NewRequest(&process.CloseStdinRequest{Process: byPID(999999999)}))
		wantCode(t, err, connect.CodeNotFound, text)
		stream, err := b.procs.Connect(ctx, connect.NewRequest(&process.ConnectRequest{Process: byPID(999999999)}))
		if err == nil {
			stream.Receive()
			err = stream.Err()
		}
		wantCode(t, err, connect.CodeNotFound, text)
	})
}

func TestDisconnect_ProcessGoesOnAndCanBeJoined(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		ctx := bounded(t)
		gate := filepath.Join(t.TempDir(), "gate")
		syscall.Mkfifo(gate, 0o600)
		tag := "bg"
		req := shell("echo lost; read line < " + gate + "; echo got $line; exit 7")
		req.Tag = &tag
		pid, stream := b.begin(ctx, req)
		stream.Receive()
		stream.Close()
		list, err := b.procs.List(ctx, connect.NewRequest(&process.ListRequest{}))
		if err != nil || len(list.Msg.GetProcesses()) != 1 || list.Msg.GetProcesses()[0].GetTag() != tag || list.Msg.GetProcesses()[0].GetPid() != pid {
			t.Fatalf("list: %v %v", list, err)
		}
		joined, err := b.procs.Connect(ctx, connect.NewRequest(&process.ConnectRequest{Process: byPID(pid)}))
		if err != nil || !joined.Receive() || joined.Msg().GetEvent().GetStart().GetPid() != pid {
			t.Fatalf("connect: %v %v", err, joined.Err())
		}
		os.WriteFile(gate, []byte("it\n"), 0)
		var r result
		for joined.Receive() {
			r.add(joined.Msg().GetEvent())
		}
		if r.stdout != "got it\n" || r.end.GetExitCode() != 7 {
			t.Fatalf("%+v", r)
		}
		late, err := b.procs.Connect(ctx, connect.NewRequest(&process.ConnectRequest{Process: &process.ProcessSelector{Selector: &process.ProcessSelector_Tag{Tag: tag}}}))
		if err != nil {
			t.Fatal(err)
		}
		r = result{}
		for late.Receive() {
			r.add(late.Msg().GetEvent())
		}
		if r.pid != pid || r.end.GetExitCode() != 7 {
			t.Fatalf("late: %+v %v", r, late.Err())
		}
	})
}

func TestEnd_IsKeptForLateReadersForHalfAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		found := envd.Retired(7)
		time.Sleep(29 * time.Second)
		if !found() {
			t.Fatal("the end is forgotten after 29 s")
		}
		time.Sleep(2 * time.Second)
		if found() {
			t.Fatal("the end is kept for more than 30 s")
		}
	})
}

func TestKeepalive_ComesWhenIdle(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	req := connect.NewRequest(shell("read x < /dev/stdin"))
	req.Msg.Stdin = nil
	req.Header().Set("Keepalive-Ping-Interval", "1")
	stream, err := b.procs.Start(bounded(t), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	stream.Receive()
	pid := stream.Msg().GetEvent().GetStart().GetPid()
	if !stream.Receive() || stream.Msg().GetEvent().GetKeepalive() == nil {
		t.Fatalf("got %v, %v", stream.Msg(), stream.Err())
	}
	b.kill(pid)
}

func alive(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(data), ") Z ")
}

func waitGone(t *testing.T, what string, pid int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s (pid %d) still lives", what, pid)
		}
	}
}

// breed starts a child, a child in its own session, and a daemon whose parent
// is gone, and prints their pids.
const breed = `sleep 300 & echo $!; setsid sleep 300 & echo $!; (setsid sh -c 'echo $$; exec sleep 300' &) ; `

func pids(t *testing.T, text string) []int {
	t.Helper()
	var out []int
	for _, field := range strings.Fields(text) {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

func TestDeadline_KillsEverythingTheCommandStarted(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		req := connect.NewRequest(shell(breed + "wait"))
		ctx := bounded(t)
		req.Header().Set("Connect-Timeout-Ms", "1500")
		stream, err := b.procs.Start(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		var r result
		for stream.Receive() {
			r.add(stream.Msg().GetEvent())
		}
		wantCode(t, stream.Err(), connect.CodeDeadlineExceeded, "")
		if r.end != nil {
			t.Fatalf("a timed-out command must end with the error, got %v", r.end)
		}
		kids := pids(t, r.stdout)
		if len(kids) != 3 {
			t.Fatalf("children: %q", r.stdout)
		}
		for _, pid := range append(kids, int(r.pid)) {
			waitGone(t, "child of a timed-out command", pid)
		}
	})
}

func TestDeadline_ReachesWhatAFinishedLeaderLeftWriting(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	req := connect.NewRequest(shell("sleep 300 & echo $!; exec true"))
	req.Header().Set("Connect-Timeout-Ms", "700")
	stream, err := b.procs.Start(bounded(t), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var r result
	for stream.Receive() {
		r.add(stream.Msg().GetEvent())
	}
	wantCode(t, stream.Err(), connect.CodeDeadlineExceeded, "")
	waitGone(t, "what holds the output of a timed-out command", pids(t, r.stdout)[0])
}

func TestEnd_LeavesWhatWasSentToTheBackground(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	req := connect.NewRequest(shell("sleep 20 >/dev/null 2>&1 & echo $!"))
	req.Header().Set("Connect-Timeout-Ms", "3000")
	stream, err := b.procs.Start(bounded(t), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var r result
	for stream.Receive() {
		r.add(stream.Msg().GetEvent())
	}
	if r.end.GetExitCode() != 0 || r.end == nil {
		t.Fatalf("%+v %v", r, stream.Err())
	}
	kid := strconv.Itoa(pids(t, r.stdout)[0])
	// Past the deadline of the command that is over.
	if late := b.run(bounded(t), shell("sleep 3.2; kill "+kid+" && echo alive")); late.stdout != "alive\n" {
		t.Fatal("a process in the background was ended by a deadline that no longer counts")
	}
}

func TestKill_EndsTheWholeTree(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	pid, stream := b.begin(bounded(t), shell(breed+"wait"))
	defer stream.Close()
	var r result
	for strings.Count(r.stdout, "\n") < 3 && stream.Receive() {
		r.add(stream.Msg().GetEvent())
	}
	b.kill(pid)
	for stream.Receive() {
		r.add(stream.Msg().GetEvent())
	}
	if r.end.GetStatus() != "signal: killed" {
		t.Fatalf("%+v %v", r, stream.Err())
	}
	for _, kid := range pids(t, r.stdout) {
		waitGone(t, "child of a killed command", kid)
	}
}

func TestPty_EchoResizeAndEnd(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		ctx := bounded(t)
		req := &process.StartRequest{
			Process: &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-i"}, Envs: map[string]string{"PS1": "$ ", "TERM": "xterm"}},
			Pty:     &process.PTY{Size: &process.PTY_Size{Cols: 91, Rows: 17}},
		}
		pid, stream := b.begin(ctx, req)
		defer stream.Close()
		var r result
		type_ := func(text string) {
			in := &process.ProcessInput{Input: &process.ProcessInput_Pty{Pty: []byte(text)}}
			if _, err := b.procs.SendInput(ctx, connect.NewRequest(&process.SendInputRequest{Process: byPID(pid), Input: in})); err != nil {
				t.Fatal(err)
			}
		}
		await := func(text string) {
			for !strings.Contains(r.pty, text) {
				if !stream.Receive() {
					t.Fatalf("no %q in %q: %v", text, r.pty, stream.Err())
				}
				r.add(stream.Msg().GetEvent())
			}
		}
		type_("stty size; tty\n")
		await("17 91")
		await("/dev/pts/")
		size := &process.PTY{Size: &process.PTY_Size{Cols: 120, Rows: 40}}
		if _, err := b.procs.Update(ctx, connect.NewRequest(&process.UpdateRequest{Process: byPID(pid), Pty: size})); err != nil {
			t.Fatal(err)
		}
		type_("stty size\n")
		await("40 120")
		_, err := b.procs.CloseStdin(ctx, connect.NewRequest(&process.CloseStdinRequest{Process: byPID(pid)}))
		wantCode(t, err, connect.CodeUnknown, "")
		type_("sleep 5 & exit 5\n")
		for stream.Receive() {
			r.add(stream.Msg().GetEvent())
		}
		if r.end.GetExitCode() != 5 {
			t.Fatalf("%+v %v", r, stream.Err())
		}
	})
}

func TestJSON_WireFormIsExact(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	body := `{"process":{"cmd":"/bin/sh","args":["-c","printf a; exit 2"]},"stdin":false,"unknown":1}`
	frame := append([]byte{0, 0, 0, 0, byte(len(body))}, body...)
	res, data := b.do("POST", "/process.Process/Start", bytes.NewReader(frame), "Content-Type", "application/connect+json", "Connect-Protocol-Version", "1")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/connect+json" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	var messages []string
	for len(data) >= 5 {
		n := int(binary.BigEndian.Uint32(data[1:5]))
		messages = append(messages, fmt.Sprintf("%d %s", data[0], strings.ReplaceAll(string(data[5:5+n]), " ", "")))
		data = data[5+n:]
	}
	messages[0] = regexp.MustCompile(`\d+}}}$`).ReplaceAllString(messages[0], "N}}}")
	want := []string{
		`0 {"event":{"start":{"pid":N}}}`,
		`0 {"event":{"data":{"stdout":"YQ=="}}}`,
		`0 {"event":{"end":{"exitCode":2,"exited":true,"status":"exitstatus2","error":"exitstatus2"}}}`,
		`2 {}`,
	}
	if !slices.Equal(messages, want) {
		t.Fatalf("got %s", strings.Join(messages, "\n"))
	}
	res, data = b.do("POST", "/process.Process/SendSignal", strings.NewReader(`{"process":{"pid":999999999},"signal":"SIGNAL_SIGKILL"}`), "Content-Type", "application/json")
	if res.StatusCode != 404 || !strings.Contains(string(data), `"code":"not_found"`) {
		t.Fatalf("%d %s", res.StatusCode, data)
	}
}
