//go:build !embedrunsc

package gvisor

// embeddedRunsc is empty in a binary that was made without command runsc.
var embeddedRunsc []byte

// EmbeddedEnvd is empty in a binary that `make build` did not make; the program
// itself is the daemon then.
func EmbeddedEnvd() []byte { return nil }
