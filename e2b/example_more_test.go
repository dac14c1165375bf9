package e2b_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"strings"
	"time"

	"agentsquad/e2b"
)

// exampleSandbox is a running sandbox of [exampleClient].
func exampleSandbox(ctx context.Context) (*e2b.Sandbox, func()) {
	client, stop := exampleClient()
	sandbox, err := client.Create(ctx, e2b.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	return sandbox, stop
}

func ExampleClient_Connect() {
	ctx := context.Background()
	sandbox, stop := exampleSandbox(ctx)
	defer stop()
	client := sandbox.Client()

	if err := sandbox.Pause(ctx, e2b.PauseOptions{}); err != nil {
		log.Fatal(err)
	}
	info, err := client.Get(ctx, sandbox.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.State)
	again, err := client.Connect(ctx, sandbox.ID, e2b.ConnectOptions{Timeout: 10 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	running, err := again.Running(ctx)
	fmt.Println(running, err)
	// Output:
	// paused
	// true <nil>
}

func ExamplePty_Start() {
	ctx := context.Background()
	sandbox, stop := exampleSandbox(ctx)
	defer stop()

	terminal, err := sandbox.Pty.Start(ctx, e2b.PtyOptions{Cmd: "/bin/sh", Args: []string{"-c", "stty size"}, Size: e2b.Size{Cols: 100, Rows: 30}})
	if err != nil {
		log.Fatal(err)
	}
	screen, err := io.ReadAll(terminal)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.TrimSpace(string(screen)))
	// Output: 30 100
}

func ExampleFiles_Watch() {
	ctx := context.Background()
	sandbox, stop := exampleSandbox(ctx)
	defer stop()

	made, err := sandbox.Commands.Run(ctx, "mktemp -d", e2b.CommandOptions{})
	if err != nil {
		log.Fatal(err)
	}
	inbox := strings.TrimSpace(made.Stdout)
	watcher, err := sandbox.Files.Watch(ctx, inbox, e2b.WatchOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer watcher.Close()
	if _, err := sandbox.Files.WriteAll(ctx, inbox+"/letter.txt", []byte("hello")); err != nil {
		log.Fatal(err)
	}
	for event, err := range watcher.Events() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Type, event.Name)
		break
	}
	if err := sandbox.Files.Remove(ctx, inbox); err != nil {
		log.Fatal(err)
	}
	// Output: create letter.txt
}

func ExampleFiles_DownloadURL() {
	ctx := context.Background()
	sandbox, stop := exampleSandbox(ctx)
	defer stop()

	// Whoever has the address may read this file, without a key, for an hour.
	address, err := url.Parse(sandbox.Files.DownloadURL("report.txt", e2b.URLOptions{Expires: time.Hour}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(address.Query().Get("path"), address.Query().Has("signature"))
	// Output: report.txt true
}

func ExampleProcess_Write() {
	ctx := context.Background()
	sandbox, stop := exampleSandbox(ctx)
	defer stop()

	out, in := io.Pipe()
	process, err := sandbox.Commands.Start(ctx, "read name; echo hello $name", e2b.CommandOptions{OpenStdin: true, Stdout: in})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := process.Write([]byte("Ada\n")); err != nil {
		log.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	fmt.Print(line, err)
	// Output:
	// hello Ada
	// <nil>
}

func ExampleError() {
	ctx := context.Background()
	sandbox, stop := exampleSandbox(ctx)
	defer stop()

	_, err := sandbox.Commands.Run(ctx, "echo sorry >&2; exit 3", e2b.CommandOptions{})
	var exit *e2b.CommandExitError
	if errors.As(err, &exit) {
		fmt.Println(exit.ExitCode, strings.TrimSpace(exit.Stderr))
	}
	_, err = sandbox.Files.ReadAll(ctx, "no/such/file")
	fmt.Println(errors.Is(err, e2b.ErrNotFound))
	if err := sandbox.Kill(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = sandbox.Info(ctx)
	fmt.Println(errors.Is(err, e2b.ErrSandboxGone))
	// Output:
	// 3 sorry
	// true
	// true
}
