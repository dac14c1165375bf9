//go:build embedweb

package gvisor

import _ "embed"

//go:embed envd.bin
var embeddedEnvd []byte

// EmbeddedEnvd is the small daemon that `make build` puts into the binary, for
// [Config.Envd] and [Config.Sudo]: it is both.
func EmbeddedEnvd() []byte { return embeddedEnvd }
