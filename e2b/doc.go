// Package e2b is a client of the E2B protocol: sandboxes in which untrusted code
// runs, at E2B Cloud or on any server that speaks the same protocol. Which one is
// a matter of addresses; the code is the same.
//
// # A first sandbox
//
// A [Client] is made of a key. [FromEnv] reads the variables that the official
// SDKs read; [New] takes a [Config] and looks at nothing else.
//
//	client, err := e2b.New(e2b.Config{APIKey: key})
//	…
//	sandbox, err := client.Create(ctx, e2b.CreateOptions{Timeout: 10 * time.Minute})
//	…
//	defer sandbox.Kill(context.WithoutCancel(ctx))
//
//	result, err := sandbox.Commands.Run(ctx, "python3 -c 'print(6*7)'", e2b.CommandOptions{})
//	fmt.Print(result.Stdout) // 42
//
// For a server of your own set Config.APIURL and Config.SandboxURL (or
// E2B_API_URL and E2B_SANDBOX_URL) to its address; no DNS and no TLS are needed.
//
// # Time
//
// Three clocks run, and they are kept apart:
//
//   - A sandbox lives for [CreateOptions].Timeout; [Sandbox.SetTimeout] moves its
//     end, [Client.Connect] only ever extends it. Then it is killed, or paused
//     where [Lifecycle] says so.
//   - A command lives for [CommandOptions].Timeout, without limit if that is 0.
//   - A context bounds the call. When the context of [Commands.Run] ends, the
//     command is killed; when that of [Commands.Start] ends, its output is no
//     longer read and it goes on. A context's deadline is never sent as the
//     lifetime of a command.
//
// # Commands
//
// A command is a line for bash, or, with [CommandOptions].Args, a program with
// its arguments, which is the way to pass on what others wrote: nothing in it is
// interpreted. Output is collected, or streamed into writers as it comes:
//
//	_, err = sandbox.Commands.Run(ctx, "make test", e2b.CommandOptions{
//		Dir: "/home/user/project", Stdout: os.Stdout, Stderr: os.Stderr,
//	})
//	var exit *e2b.CommandExitError
//	if errors.As(err, &exit) {
//		fmt.Println("tests failed with", exit.ExitCode)
//	}
//
// [Commands.Start] returns a [Process] at once: write to it, signal it, wait for
// it, or leave it and come back with [Commands.Connect]. [Pty.Start] gives a
// terminal that can be resized.
//
// # Files
//
//	_, err = sandbox.Files.WriteAll(ctx, "data/in.csv", csv)
//	content, err := sandbox.Files.Read(ctx, "data/out.csv", e2b.ReadOptions{})
//	…
//	defer content.Close()
//
// [Files.Write] and [Files.Read] stream files of any size; [Files.WriteMany]
// sends many in one request; [Files.Watch] tells of changes;
// [Files.DownloadURL] and [Files.UploadURL] sign addresses for others.
// sandbox.Files.As("root") sees the files as another user.
//
// # Ports
//
// A server inside a sandbox is reached at [Sandbox.Host] where the installation
// has host names, and by [Sandbox.HTTPClient] everywhere, WebSockets included.
// [Sandbox.DialPort] carries any TCP.
//
// # Pausing, snapshots, forks
//
// [Sandbox.Pause] keeps memory and files, [Client.Connect] brings them back.
// [Sandbox.Snapshot] keeps a state that new sandboxes are made of, by its ID as
// Template. [Sandbox.Fork] makes running copies.
//
// # Errors
//
// What the server refused is an [*Error]; its kind is asked for with errors.Is:
//
//	switch {
//	case errors.Is(err, e2b.ErrQuota):       // too many sandboxes: wait for one to end
//	case errors.Is(err, e2b.ErrRateLimited): // Error.RetryAfter says how long
//	case errors.Is(err, e2b.ErrSandboxGone): // killed, paused or past its time
//	}
//
// Calls that may be repeated safely are, a few times: those refused with a
// Retry-After, and reads and deletes after a passing failure. A create whose
// answer is lost is not: find out with [Client.List] and metadata of your own.
//
// # Servers
//
// The newest paths are tried first; on a server that does not know them the older
// ones are used. Process and file calls use Connect with the binary codec, which
// saves the base64 that JSON needs for output; Config.JSON selects the codec of
// the official SDKs.
package e2b
