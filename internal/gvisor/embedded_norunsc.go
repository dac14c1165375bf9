//go:build !embedrunsc

package gvisor

// embeddedRunsc is empty in a binary that was made without command runsc.
var embeddedRunsc []byte
