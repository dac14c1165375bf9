//go:build !embedweb

package gvisor

// EmbeddedEnvd is empty in a binary that `make build` did not make; the program
// itself is the daemon then.
func EmbeddedEnvd() []byte { return nil }
