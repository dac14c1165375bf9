package e2b_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/user"
	"strings"

	"agentsquad/e2b"
	"agentsquad/e2b/e2btest"
	"agentsquad/internal/envd"
)

// exampleClient speaks to a server in this process, where an example for E2B
// Cloud would say e2b.FromEnv().
func exampleClient() (*e2b.Client, func()) {
	home, err := os.MkdirTemp("", "e2b-example")
	if err != nil {
		log.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		log.Fatal(err)
	}
	server := e2btest.New(e2btest.Options{Envd: func(_, token string) http.Handler {
		return envd.NewServer(envd.Config{AccessToken: token, DefaultUser: me.Username, DefaultWorkdir: home, Env: map[string]string{"HOME": home}})
	}})
	client, err := e2b.New(e2b.Config{APIKey: "e2b_0", APIURL: server.URL, SandboxURL: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() { server.CloseClientConnections(); server.Close(); os.RemoveAll(home) }
}

func Example() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()

	sandbox, err := client.Create(ctx, e2b.CreateOptions{Metadata: map[string]string{"for": "example"}})
	if err != nil {
		log.Fatal(err)
	}
	defer sandbox.Kill(ctx)

	result, err := sandbox.Commands.Run(ctx, "echo $((6 * 7))", e2b.CommandOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(result.Stdout)
	// Output: 42
}

func ExampleCommands_Run_streaming() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	sandbox, err := client.Create(ctx, e2b.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}

	_, err = sandbox.Commands.Run(ctx, "seq 3; exit 2", e2b.CommandOptions{Stdout: os.Stdout})
	var exit *e2b.CommandExitError
	if errors.As(err, &exit) {
		fmt.Println("exit code", exit.ExitCode)
	}
	// Output:
	// 1
	// 2
	// 3
	// exit code 2
}

func ExampleCommands_Start() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	sandbox, err := client.Create(ctx, e2b.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}

	process, err := sandbox.Commands.Start(ctx, "tr a-z A-Z", e2b.CommandOptions{OpenStdin: true, Stdout: os.Stdout})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(process, "hello")
	if err := process.CloseStdin(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := process.Wait(); err != nil {
		log.Fatal(err)
	}
	// Output: HELLO
}

func ExampleFiles() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	sandbox, err := client.Create(ctx, e2b.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "e2b-files")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	if _, err := sandbox.Files.Write(ctx, dir+"/notes.txt", strings.NewReader("remember the milk\n")); err != nil {
		log.Fatal(err)
	}
	content, err := sandbox.Files.Read(ctx, dir+"/notes.txt", e2b.ReadOptions{Offset: 13})
	if err != nil {
		log.Fatal(err)
	}
	defer content.Close()
	if _, err := io.Copy(os.Stdout, content); err != nil {
		log.Fatal(err)
	}
	_, err = sandbox.Files.ReadAll(ctx, dir+"/other.txt")
	fmt.Println(errors.Is(err, e2b.ErrNotFound))
	// Output:
	// milk
	// true
}

func ExampleClient_List() {
	client, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	for _, who := range []string{"ada", "alan", "ada"} {
		if _, err := client.Create(ctx, e2b.CreateOptions{Metadata: map[string]string{"who": who}}); err != nil {
			log.Fatal(err)
		}
	}

	n := 0
	for info, err := range client.List(ctx, e2b.ListOptions{Metadata: map[string]string{"who": "ada"}}) {
		if err != nil {
			log.Fatal(err)
		}
		n++
		_ = info.ID
	}
	fmt.Println(n, "sandboxes")
	// Output: 2 sandboxes
}
