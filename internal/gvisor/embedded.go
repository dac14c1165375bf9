//go:build embedrunsc

package gvisor

import _ "embed"

// embeddedRunsc is command runsc, gzipped.
//
//go:embed runsc.bin.gz
var embeddedRunsc []byte

//go:embed envd.bin
var embeddedEnvd []byte

// EmbeddedEnvd is the small daemon that `make build` puts into the binary, for
// [Config.Envd] and [Config.Sudo]: it is both.
func EmbeddedEnvd() []byte { return embeddedEnvd }

// Dispatch has nothing to hand over: gVisor is a program of its own in this one, so
// that its code is not in it twice.
func Dispatch() {}
