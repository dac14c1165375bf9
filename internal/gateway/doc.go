// Package gateway is the only way out of a sandbox: git, models and egress.
//
// [Gateway.For] answers one sandbox's requests to http://squad.internal/, where
// the tunnel already says who asks; [Gateway.Public] answers cloud sandboxes, who
// prove it with a token of their own. Both know the caller's execution, task,
// member and squad from the database, and nothing the caller says about itself
// counts.
//
//   - /git/<repository>.git: smart HTTP. Reads come from the host's mirror. A push
//     may move the branch of the caller's own task and its checkpoints, after the
//     objects were checked in a quarantine (size, rewriting, messages, secrets); it
//     is then forwarded upstream with the server's credential. Commits that upstream
//     did not take stay in the mirror and are tried again by [Gateway.Run].
//   - /llm/anthropic/ and /llm/openai/: the providers' own APIs, passed through with
//     the real key; tokens are counted from the answer and budgets are asked first.
//   - /mcp: the squad's tools, with the token of the member that works in the sandbox.
//   - [Gateway.Allow]: which hosts a sandbox may connect to.
//   - [Gateway.PrepareTree]: images of checkouts, so that a clone costs nothing.
//   - [Gateway.Conflicts]: the radar over a repository's active tasks.
//
// No credential is ever part of an answer. Background work runs in [Gateway.Run]
// only.
package gateway
