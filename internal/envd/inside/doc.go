// Package inside holds the tests that run the daemon as process 1 of real
// gVisor sandboxes. It has no code of its own.
package inside
