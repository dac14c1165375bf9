// Package app makes the house out of its rooms: it builds every room once, starts
// them in order, and stops them in the reverse order within a bounded time. It is
// the only package that knows all others.
//
// [Start] leaves nothing running when it fails.
package app

// Version is the version of the binary; the build sets it.
var Version = "dev"
