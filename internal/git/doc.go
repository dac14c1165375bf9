// Package git drives the git program safely, on the host and inside sandboxes.
//
// A [Runner] starts git with hooks off, prompts off, an allow-list of transports
// and no configuration of the machine; credentials travel only in the
// environment, scoped to one URL, and are cut out of all output. An [Exec]
// decides where the program runs: [Host] on this machine, an adapter of another
// room inside a sandbox.
//
// On it stand [Mirrors] (bare copies of upstream repositories, fetched on demand
// and shared), [Checkout] (clone, branch, status, diff, commit, push, pull and
// rebase of one working tree, one operation at a time), the in-memory merges of
// [MergeTree] and [Radar], the merges of bare repositories ([Merge]), and
// [ParseConventional], the check of commit messages.
//
// The package imports nothing of ours but the vocabulary, reads no environment
// and starts no goroutine that outlives the call that started it.
package git
