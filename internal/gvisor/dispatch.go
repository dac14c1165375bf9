//go:build !embedrunsc

package gvisor

import "agentsquad/internal/gvisor/reexec"

// Dispatch hands this process over to gVisor when it was started as gVisor. It
// is the first line of main and of every TestMain that makes sandboxes, because
// sandboxes are made by running this very program again under another name
// (unless [Config.Runsc] gives a smaller one); in any other process it returns at
// once. See [reexec.Dispatch].
func Dispatch() { reexec.Dispatch() }
