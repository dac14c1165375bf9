//go:build embedrunsc

package gvisor

import _ "embed"

// embeddedRunsc is command runsc, gzipped.
//
//go:embed runsc.bin.gz
var embeddedRunsc []byte
