//go:build !amd64

package filter

// builtIn is empty: gVisor compiles for itself.
var builtIn []byte
