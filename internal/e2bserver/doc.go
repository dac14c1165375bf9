// Package e2bserver speaks the E2B protocol in front of the sandboxes of this
// machine, so that the official E2B SDKs work against squad unmodified.
//
// It owns the control plane (create, connect, list, pause, snapshot, fork,
// templates and their builds), the traffic proxy to what runs inside a sandbox
// (envd and any TCP port, over the sandbox's tunnel), the life of a sandbox
// (time to live, pause at its end, resume by traffic, recovery after a
// restart), and the policy on what a sandbox may reach.
//
// It promises that a key sees its own sandboxes only and that others are not
// found; that a bad request changes nothing; that each sandbox changes state
// under one lock; that a stream is cut when its sandbox ends; and that private,
// loopback, link-local and metadata addresses are never reached for a sandbox,
// whatever name leads to them.
//
// It refuses what it cannot do (volumes, secrets, header rules, egress proxies)
// in plain words instead of ignoring it.
//
// Goroutines: [Server.Run] starts the timer of lifetimes and the sampler of
// metrics and ends them with its context; each build of a template runs in one
// that [Server.Run] also waits for; each live sandbox has one that waits for its
// end.
package e2bserver
