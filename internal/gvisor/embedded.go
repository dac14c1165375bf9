//go:build embedrunsc

package gvisor

import (
	_ "embed"
	"unsafe"
)

// As strings both lie among what is never written, so that their pages can be given
// back after use.
var (
	//go:embed runsc.bin.gz
	runscText string

	//go:embed envd.bin
	envdText string
)

// embeddedRunsc is command runsc, gzipped. It must not be written to.
var embeddedRunsc = unsafe.Slice(unsafe.StringData(runscText), len(runscText))

// EmbeddedEnvd is the small daemon that `make build` puts into the binary, for
// [Config.Envd] and [Config.Sudo]: it is both. It must not be written to.
func EmbeddedEnvd() []byte { return unsafe.Slice(unsafe.StringData(envdText), len(envdText)) }

// Dispatch has nothing to hand over: gVisor is a program of its own in this one, so
// that its code is not in it twice.
func Dispatch() {}
